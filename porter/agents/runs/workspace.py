"""Folders in which candidates for one port are worked on, one each, laid out as the user's own.

Where the port's folder is in a git repository a place is a worktree of the last commit, with the kernel's files as they
are now laid over it; elsewhere it is a copy of these files. Nothing that the user has is written to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from porter.agents.record import ELSEWHERE
from porter.files.atomic import write_atomic, writing_failed
from porter.files.git import git

SECONDS = 120.0  # for git
_lock = threading.Lock()  # git locks its list of worktrees, and gives up at once when another holds it


@dataclass(frozen=True)
class WorkPlace:
    """`port` is the candidate's text, where the port stands in the user's folder. `worktree`: git knows of it."""

    root: Path
    port: Path
    worktree: bool

    def write(self, text: str) -> None:
        """Show a text that was kept, as long as the place is there."""
        with contextlib.suppress(OSError):
            if self.port.parent.is_dir():
                write_atomic(self.port, text)


def make_place(root: Path, target: Path, text: str, files: Sequence[Path]) -> WorkPlace:
    """A place for a candidate of the port `target`, which starts as `text`; `files` are what it is about: source, case.

    What an earlier process left at `root` is removed first. Raises PorterError PRT953.
    """
    remove_place(root)
    top = repository_of(target, files)
    worktree = top is not None and _add_worktree(top, root)
    if top is None or not worktree:
        top = Path(os.path.commonpath([p.resolve().parent for p in (target, *files)]))
    port = root / target.resolve().relative_to(top)
    try:
        for file in files:
            copy = root / file.resolve().relative_to(top)
            _make_room(root, copy)
            shutil.copyfile(file, copy)
        _make_room(root, port)
        write_atomic(port, text)
    except OSError as error:
        remove_place(root)
        raise writing_failed(root, error, ELSEWHERE) from error
    return WorkPlace(root, port, worktree)


def _make_room(root: Path, path: Path) -> None:
    """Folders for a file below `root`, where the commit may have something else: a link would lead out of the place."""
    for folder in reversed(path.relative_to(root).parents):
        if folder != Path() and ((root / folder).is_symlink() or (root / folder).is_file()):
            (root / folder).unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_place(root: Path) -> None:
    """Remove a place and what git knows of it. Does nothing where there is none."""
    with _lock:
        mark, known = root / ".git", None
        with contextlib.suppress(OSError):
            if mark.is_file():  # gitdir: REPOSITORY/.git/worktrees/NAME, as seen from the place
                known = (root.absolute() / mark.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        if known is not None and known.parent.name == "worktrees":
            repository = ("--git-dir", str(known.parents[1]))
            removed = git(None, *repository, "worktree", "remove", "--force", str(root.absolute()), seconds=SECONDS)
            if not removed.ok:  # `prune` would also forget worktrees of the user's that are away just now
                shutil.rmtree(known, ignore_errors=True)
        for _ in range(3):  # a thread that is being stopped may still put a draft there
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():
                break
        with contextlib.suppress(OSError):
            root.parent.rmdir()  # the folder of places, after the last


def repository_of(target: Path, files: Sequence[Path]) -> Path | None:
    """The top of the git work tree that has all of these paths, None where there is none or it has no commit."""
    folder = next(p for p in target.resolve().parents if p.is_dir())
    top = git(folder, "rev-parse", "--show-toplevel", seconds=SECONDS).line
    if not top:
        return None
    path = Path(top).resolve()
    if any(path not in p.resolve().parents for p in (target, *files)):
        return None
    return path if git(path, "rev-parse", "--verify", "--quiet", "HEAD", seconds=SECONDS).line else None


def _add_worktree(top: Path, root: Path) -> bool:
    with _lock:
        # without hooks: they are for people's checkouts
        add = ("-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--force")
        return git(top, *add, str(root.absolute()), "HEAD", seconds=SECONDS).ok
