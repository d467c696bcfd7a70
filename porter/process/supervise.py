"""The process that the shell starts only waits: the work is done in a fork of it, which a library may take down.

libclang overflows its stack on deeply nested source, and compiled kernels run in the process. Whatever ends the child,
the parent is there to say so, with an exit code of porter's and without a traceback.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from porter.process.limits import watch_over
from porter.source import NO_SPAN, Span

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BOARD_BYTES = 1 << 16
_PR_SET_PDEATHSIG = 1
_TWICE_SECONDS = 1.0  # a second Ctrl-C within that time is the first one, passed on


def supervised(mourn: Callable[[int, str, Span], None]) -> int | None:
    """Fork. The parent returns the exit code when the child has ended; the child returns None and does the work.

    `mourn` says what ended the child: a signal, what it was doing and where.
    In the child PASSED_ON are blocked until `released` is called, inside the code that handles KeyboardInterrupt.
    """
    board = mmap.mmap(-1, _BOARD_BYTES)  # what the child is doing, for the message about its end
    signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return _ended(_wait(child), board, mourn)
    with contextlib.suppress(OSError):  # the parent alone would be missed by nobody
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    watch_over(lambda doing, span: _write(board, doing, span))
    return None


def released() -> None:
    """Take signals from here on. A second SIGINT right after the first comes from the parent, and is the same."""
    last = 0.0

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > _TWICE_SECONDS:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # `nohup` and shells' `&` ignore it
        signal.signal(signal.SIGINT, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*PASSED_ON, signal.SIGCHLD})


def leaving() -> None:
    """The work is done, and Python is about to end: an interrupt now would only make it print a traceback."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _wait(child: int) -> int:
    """Pass signals on until the child has ended; its wait status."""
    while True:
        info = signal.sigwaitinfo({*PASSED_ON, signal.SIGCHLD})
        if info.si_signo != signal.SIGCHLD:
            # What somebody sent goes on. Ctrl-C of the terminal reaches the child as well, its hang-up only the leader.
            if info.si_code <= 0 or info.si_signo == signal.SIGHUP:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, info.si_signo)
            continue
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status


def _ended(status: int, board: mmap.mmap, mourn: Callable[[int, str, Span], None]) -> int:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    if -code == signal.SIGINT:
        print("interrupted", file=sys.stderr)
        return 130
    if -code in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):  # as if there had been one process
        signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    with contextlib.suppress(OSError):
        mourn(-code, *_read(board))
    return 2


def _write(board: mmap.mmap, doing: str, span: Span) -> None:
    rows = "\n".join((doing.replace("\n", " ")[:4096], span.file.replace("\n", " ")[:4096], f"{span.line} {span.col}"))
    data = rows.encode("utf-8", "replace")
    board.seek(0)
    board.write(len(data).to_bytes(4, "little") + data)


def _read(board: mmap.mmap) -> tuple[str, Span]:
    board.seek(0)
    size = int.from_bytes(board.read(4), "little")
    rows = board.read(size).decode("utf-8", "replace").split("\n")
    if len(rows) != 3 or not rows[0]:
        return "", NO_SPAN
    line, col = rows[2].split()
    return rows[0], Span(rows[1], int(line), int(col))
