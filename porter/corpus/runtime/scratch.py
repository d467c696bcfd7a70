"""Temporary folders that do not outlive their process: what a killed one leaves is deleted by the next that starts.

A folder is held by a lock of the system on it, which ends with the process however that ends, in other containers too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

_NEW, _HELD = "porter-new-", "porter-run-"
_NEW_SECONDS = 3600.0  # nobody takes that long between making and holding a folder

_swept: set[str] = set()  # temporary folders that this process has looked through


class Scratch:
    """A folder of one's own below the system's temporary folder, deleted by `close`; also a context with its path."""

    def __init__(self, label: str = ""):
        root = tempfile.gettempdir()
        if root not in _swept:
            _swept.add(root)
            sweep(Path(root))
        new = tempfile.mkdtemp(prefix=f"{_NEW}{label}{'-' if label else ''}", dir=root)
        self.path = Path(new)
        self._held = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a file system without locks: the name then says that nobody may judge
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.path.join(root, _HELD + os.path.basename(new).removeprefix(_NEW))
            os.rename(new, held)
            self.path = Path(held)

    def close(self) -> None:
        if self._held >= 0:
            remove(self.path)
            os.close(self._held)
            self._held = -1

    def __enter__(self) -> str:
        return str(self.path)

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(root: Path) -> None:
    """Delete the folders that processes of this user have left in `root`. Never raises OSError."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith((_NEW, _HELD)):
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                        _remove_if_left(entry, found.st_mtime)


def _remove_if_left(entry: os.DirEntry[str], changed: float) -> None:
    if entry.name.startswith(_NEW):
        if changed < time.time() - _NEW_SECONDS:
            remove(Path(entry.path))
        return
    file = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: somebody works there
        remove(Path(entry.path))
    finally:
        os.close(file)


def remove(folder: Path) -> None:
    """Delete a folder, also where those below it have been made unreadable. What cannot be deleted stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for inner, folders, _ in os.walk(folder):
            for name in folders:
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(inner, name), 0o700, follow_symlinks=False)
        shutil.rmtree(folder, ignore_errors=True)
