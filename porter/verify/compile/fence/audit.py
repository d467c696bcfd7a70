"""Python's audit events: the same refusals once more, with a message and the port's line; all there is on some systems.

Code that gets hold of ctypes could go round this layer, so it is the last of several where there are others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OUTSIDE = (  # how events of networks, processes and limits begin
    "socket.", "subprocess.", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
    "os.startfile", "pty.spawn", "ftplib.", "http.client.", "imaplib.", "poplib.", "smtplib.", "telnetlib.", "nntplib.",
    "urllib.Request", "webbrowser.open", "resource.", "signal.pthread_kill", "os.kill", "syslog.", "sqlite3.",
)  # fmt: skip
_CHANGING = {  # event -> which arguments are paths that change
    "os.remove": (0,), "os.rename": (0, 1), "os.rmdir": (0,), "os.mkdir": (0,), "os.chmod": (0,), "os.chown": (0,),
    "os.lchown": (0,), "os.chflags": (0,), "os.link": (0, 1), "os.symlink": (1,), "os.truncate": (0,), "os.utime": (0,),
    "os.setxattr": (0,), "os.removexattr": (0,), "os.mknod": (0,), "os.mkfifo": (0,), "os.chroot": (0,),
    "shutil.rmtree": (0,), "shutil.move": (0, 1), "shutil.copyfile": (1,),
}  # fmt: skip
_LOOKING = ("os.listdir", "os.scandir", "os.listxattr", "os.getxattr", "ctypes.dlopen")


def refuse_events(readable: Sequence[Path], listed: Sequence[Path], folder: Path) -> None:
    """From now on raise PermissionError for what leaves the fence. `folder` may be written. Cannot be undone."""
    reads = tuple(os.path.realpath(p) for p in (*readable, folder))
    lists = frozenset(os.path.realpath(p) for p in listed)
    inside = (os.path.realpath(folder), "/dev/null")
    own = os.getpid()

    def opened(event: str, args: tuple[Any, ...]) -> None:
        path, mode, flags = args
        if flags & _WRITING or any(c in "wax+" for c in mode or ""):
            if not _below(path, inside):
                raise PermissionError(f"ports write nothing: {os.fsdecode(path)}")
        elif not _below(path, reads):
            raise PermissionError(f"ports read nothing but what is installed: {os.fsdecode(path)}")

    def changed(event: str, args: tuple[Any, ...]) -> None:
        for at in _CHANGING[event]:
            if at < len(args) and not _below(args[at], inside):
                raise PermissionError(f"ports change nothing: {event} {args[at]}")

    def looked(event: str, args: tuple[Any, ...]) -> None:
        path = args[0]
        if event == "ctypes.dlopen" and (not path or os.sep not in os.fsdecode(path)):
            return  # by its name: one of the system's libraries
        if not _below(path, reads) and os.path.realpath(os.fsdecode(path)) not in lists:
            raise PermissionError(f"ports read nothing but what is installed: {os.fsdecode(path)}")

    def outside(event: str, args: tuple[Any, ...]) -> None:
        if not (event == "os.kill" and args[0] == own) and not (event == "resource.prlimit" and args[2] is None):
            raise PermissionError(f"ports run offline and alone: {event} {' '.join(str(a)[:80] for a in args)}".strip())

    known: dict[str, Callable[[str, tuple[Any, ...]], None] | None] = {"open": opened}
    known |= dict.fromkeys(_CHANGING, changed)
    known |= dict.fromkeys(_LOOKING, looked)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        try:
            action = known[event]
        except KeyError:
            action = known[event] = outside if event.startswith(_OUTSIDE) else None
        if action is not None:
            action(event, args)

    sys.addaudithook(hook)


def _below(path: Any, roots: Sequence[str]) -> bool:
    if isinstance(path, int) or path is None:
        return True  # an open file, or the process's own folder
    real = os.path.realpath(os.fsdecode(path))
    return any(real == r or real.startswith(r + os.sep) for r in roots)
