"""Where the traceback of an internal error goes: a file in the cache folder, named in the message."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TextIO

from porter import codes
from porter.corpus.runtime.cache import cache_root
from porter.model import Diagnostic
from porter.source import NO_SPAN, Span


def internal_error(error: BaseException, traceback_text: str, doing: str = "", span: Span = NO_SPAN) -> Diagnostic:
    """The PRT950 message for an error porter did not expect; keeps the traceback in a file."""
    where = f" while {doing}" if doing else ""
    known = _not_a_defect(error, doing or "the work", span)
    if known is not None:
        return known
    return Diagnostic(
        codes.INTERNAL_ERROR,
        f"internal error{where}: {type(error).__name__}: {error}".rstrip(": "),
        span,
        help=f"this is a defect of porter; the traceback is in {save_traceback(traceback_text)}",
    )


def _not_a_defect(error: BaseException, what: str, span: Span) -> Diagnostic | None:
    """The message where a machine or a limit is at its end, not porter."""
    number = error.errno if isinstance(error, OSError) else 0
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        help_ = "smaller sizes in the case need less; `memory_limit` in [tool.porter] allows more where there is more"
        return Diagnostic(codes.LIMIT_REACHED, f"{what} was stopped: there was not enough memory", span, help=help_)
    if isinstance(error, RecursionError):
        help_ = "write what is nested that deeply in several steps"
        return Diagnostic(codes.LIMIT_REACHED, f"{what} was stopped: something is nested too deeply", span, help=help_)
    if number in (errno.ENOSPC, errno.EDQUOT) and isinstance(error, OSError):
        place = f" for {error.filename}" if error.filename else ""
        help_ = "free some space, or name other folders: PORTER_CACHE for the cache, TMPDIR for temporary files"
        return Diagnostic(codes.CANNOT_WRITE, f"{what} was stopped: no space left{place}", span, help=help_)
    return None


def ended_by(number: int, doing: str = "", span: Span = NO_SPAN) -> Diagnostic:
    """The message for a process of porter's that a signal ended while it was `doing` something.

    PRT967 where a limit did it, PRT968 for everything else.
    """
    what = doing or "the work"
    if number == signal.SIGXCPU:
        message = f"{what} was stopped: it took too much CPU time, or waited for input that never came"
        help_ = "split it, or allow more with `cpu_limit` in [tool.porter] of pyproject.toml"
        return Diagnostic(codes.LIMIT_REACHED, message, span, help=help_)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    message = f"the process was ended by {name}" + (f" while {doing}" if doing else "")
    if number == signal.SIGKILL:
        return Diagnostic(codes.PROCESS_KILLED, message, span, help="the system does that when memory runs out")
    help_ = "a library that porter calls crashed on this input: look for code that is nested very deeply"
    return Diagnostic(codes.PROCESS_KILLED, message, span, help=help_)


def output_failed(error: Exception) -> Diagnostic | None:
    """PRT953 where the standard output itself cannot be written (closed, on a full disk); None for other errors."""
    closed = isinstance(error, ValueError) and "closed file" in str(error)
    lost = isinstance(error, OSError) and error.errno in (errno.EBADF, errno.ENOSPC, errno.EIO) and not error.filename
    if not (closed or lost or sys.stdout is None) or _can_be_written(sys.stdout):
        return None
    why = error.strerror if isinstance(error, OSError) and error.strerror else "it is closed"
    return Diagnostic(
        codes.CANNOT_WRITE, f"cannot write the standard output: {why}", help="give it a file, a pipe or a terminal"
    )


def _can_be_written(stream: TextIO | None) -> bool:
    if stream is None or stream.closed:
        return False
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return os.write(stream.fileno(), b"") == 0
    return False


def traceback_of(error: BaseException) -> str:
    """The traceback as Python prints it."""
    return "".join(traceback.format_exception(error))


def save_traceback(text: str) -> str:
    """Keep `text` and return the path to name in the message. Never raises: the last resort is a temporary folder."""
    name = f"crash-{hashlib.sha256(text.encode()).hexdigest()[:10]}.txt"
    for folder in (cache_root() / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            return str(folder / name)
        except OSError:
            continue
    return "not saved: no folder is writable"
