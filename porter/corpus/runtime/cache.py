"""The artefact cache on disk: one directory per key, complete or absent, checked on every read.

Used for compiled ports, for the originals' PTX and for the emulator's compiled code. Locks only save double work:
an entry becomes visible by one rename, so a lost or deleted lock never makes a wrong entry.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from filelock import FileLock

from porter.corpus.runtime.scratch import Scratch

MANIFEST = "manifest.json"


def digest(parts: Iterable[str | bytes]) -> str:
    """sha256 over parts, each with its length in front, so that no two different lists of parts give one key."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def cache_root() -> Path:
    """The cache folder: $PORTER_CACHE, or porter/ in the user's cache folder ($XDG_CACHE_HOME, ~/.cache).

    A folder that cannot be written is replaced, with a warning, by one that lasts as long as the process.
    """
    return _usable_root(os.environ.get("PORTER_CACHE", ""), os.environ.get("XDG_CACHE_HOME", ""))


@cache
def _usable_root(porter_cache: str, xdg: str) -> Path:
    root = _named_root(porter_cache, xdg)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError as error:
        scratch = Scratch("cache")
        atexit.register(scratch.close)
        fallback = scratch.path
        warnings.warn(f"the cache folder {root} cannot be written ({error}); using {fallback}", stacklevel=3)
        return fallback


def _named_root(porter_cache: str, xdg: str) -> Path:
    if porter_cache:
        return Path(porter_cache).expanduser()
    return (Path(xdg) if xdg else Path.home() / ".cache") / "porter"


class ArtifactCache:
    """Entries of one kind (`"port"`, `"original"`, ...) below the cache root.

    With `shipped` the folder that the user named is read even where it cannot be written, as in a container's image.
    """

    def __init__(self, kind: str, root: Path | None = None, shipped: bool = False):
        self.kind = kind
        self._root = root
        self._shipped = shipped

    @property
    def folder(self) -> Path:
        return (self._root or cache_root()) / self.kind

    def entry(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def get(self, key: str) -> Path | None:
        """The entry's folder when it is there and whole; a damaged entry counts as absent."""
        path = self.entry(key)
        if not _whole(path):
            return self._in_named_root(key)
        with contextlib.suppress(OSError):  # another user's, say
            os.utime(path / MANIFEST)  # last use, for prune
        return path

    def _in_named_root(self, key: str) -> Path | None:
        if not self._shipped or self._root is not None:
            return None
        named = _named_root(os.environ.get("PORTER_CACHE", ""), os.environ.get("XDG_CACHE_HOME", ""))
        if named == cache_root():
            return None
        path = named / self.kind / key[:2] / key
        return path if _whole(path) else None

    def get_or_build(self, key: str, build: Callable[[Path], None]) -> Path:
        """The entry's folder, made by `build(empty folder)` if need be. What `build` raises is passed on.

        Of several processes that want one key, one builds and the others wait for it.
        """
        found = self.get(key)
        if found is not None:
            return found
        path = self.entry(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.parent / f"{key}.lock"):
            found = self.get(key)
            if found is not None:
                return found
            for left in path.parent.glob(f".building-{key[:16]}-*"):  # by one that was killed: the lock is ours
                shutil.rmtree(left, ignore_errors=True)
            work = Path(tempfile.mkdtemp(prefix=f".building-{key[:16]}-", dir=path.parent))
            try:
                build(work)
                _write_manifest(work)
                _put_in_place(work, path)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return path

    def put(self, key: str, files: dict[str, bytes]) -> Path:
        """Store ready bytes under a key (kept as they are when the entry exists)."""

        def write(folder: Path) -> None:
            for name, data in files.items():
                (folder / name).write_bytes(data)

        return self.get_or_build(key, write)

    def size(self) -> int:
        """Bytes that all entries of this kind take."""
        return sum(bytes_ for _, bytes_, _ in self._entries())

    def prune(self, max_bytes: int, keep_seconds: float = 3600.0) -> int:
        """Delete the entries unused longest until at most max_bytes are left; returns the bytes freed.

        Entries used within keep_seconds stay: another process may be about to read them. What processes left behind
        that were killed while they built goes too.
        """
        for left in (*self.folder.glob("*/.building-*"), *self.folder.glob("*/.damaged-*")):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < time.time() - keep_seconds:
                    shutil.rmtree(left, ignore_errors=True)
        entries = sorted(self._entries())
        total = sum(bytes_ for _, bytes_, _ in entries)
        freed = 0
        for used, bytes_, path in entries:
            if total - freed <= max_bytes or used > time.time() - keep_seconds:
                break
            shutil.rmtree(path, ignore_errors=True)
            path.with_name(path.name + ".lock").unlink(missing_ok=True)
            freed += bytes_
        return freed

    def _entries(self) -> list[tuple[float, int, Path]]:
        found = []
        for manifest in self.folder.glob(f"*/*/{MANIFEST}"):
            try:
                files = [p.stat() for p in manifest.parent.rglob("*") if p.is_file()]
                found.append((manifest.stat().st_mtime, sum(f.st_size for f in files), manifest.parent))
            except OSError:
                continue  # deleted meanwhile
        return found


def _write_manifest(folder: Path) -> None:
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / MANIFEST).write_text(json.dumps({"schema": 1, "files": sums}))


def _whole(folder: Path) -> bool:
    try:
        files = json.loads((folder / MANIFEST).read_text())["files"]
        return all(hashlib.sha256((folder / n).read_bytes()).hexdigest() == s for n, s in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _put_in_place(work: Path, path: Path) -> None:
    if path.exists():  # damaged, or get() would have returned it: move it away, then delete
        away = Path(tempfile.mkdtemp(prefix=".damaged-", dir=path.parent))
        os.replace(path, away / path.name)
        shutil.rmtree(away, ignore_errors=True)
    try:
        os.rename(work, path)
    except OSError:
        if not _whole(path):  # else another process was quicker, which is as good
            raise
