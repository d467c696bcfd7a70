"""Write a file so that no reader, crash or Ctrl-C sees half of it. All that a user keeps is written through here."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import time
from pathlib import Path

from porter import codes
from porter.model import Diagnostic, PorterError
from porter.source import Span

_LEFT_SECONDS = 60.0  # no write takes that long


def write_atomic(path: Path, text: str) -> None:
    """Replace `path` by `text` (UTF-8). The folder must exist. Raises OSError; the old file is then untouched."""
    _sweep(path)
    name = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    # Made with the mode of any new file: to ask for the umask is to set it, for all threads.
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, path.stat().st_mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _sweep(path: Path) -> None:
    """Delete what a process that was killed in the middle of this has left."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????????.tmp"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - _LEFT_SECONDS:
                left.unlink()


def writing_failed(path: Path, error: OSError, way: str = "choose another folder with -o") -> PorterError:
    """The one message for an output that cannot be written: disk full, read-only folder, a file in the way.

    `way` is how the person has it written elsewhere.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message, help_ = f"no space left to write {path}", f"free some space, or {way}"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        message, help_ = f"no permission to write {path}", f"you cannot write to the folder: {way}"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        message, help_ = f"cannot write {path}: a file is where a folder should be", way
    else:
        message, help_ = f"cannot write {path}: {error.strerror or error}", way
    return PorterError(Diagnostic(codes.CANNOT_WRITE, message, Span(str(path), 0, 0), help=help_))
