"""Limits of CPU time and memory for one piece of work, such as the parse of a file.

CPU time, not wall time: on a busy machine the same work succeeds. The first limit is an exception in Python code, which
becomes a message of the kernel. Where that cannot get through (a library in a loop), a process that others watch over
is ended by the system a little later, and whoever watches reports what it was doing.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from porter import codes
from porter.model import Diagnostic, PorterError
from porter.source import NO_SPAN, Span

GRACE_SECONDS = 3  # between the exception and the end of the process
REPEAT_SECONDS = 0.2  # until the exception gets through
IDLE_SECONDS = 10.0  # twice without any CPU time: the work waits for something that does not come


class _Watched:
    """Who watches over this process: `tell` takes what it is doing, for the message about its end."""

    tell: Callable[[str, Span], None] | None = None


def watch_over(tell: Callable[[str, Span], None]) -> None:
    """This process may be ended when it goes beyond a limit: somebody hears by `tell` what it does and reports it."""
    _Watched.tell = tell


_active = False


@contextlib.contextmanager
def limited(doing: str, span: Span, cpu_seconds: float, key: str, memory_gib: float = 0) -> Iterator[None]:
    """Limit what happens inside. `doing` ("parsing k.cu") and `span` are for the message, `key` is the setting's name.

    `memory_gib` also says that the work waits for nobody, so that it is ended when it does.
    Raises PorterError PRT967 in the work itself. Does nothing outside the main thread, where Python has no signals, and
    inside another `limited`, whose limit goes on.
    """
    global _active
    if _active or threading.current_thread() is not threading.main_thread() or not cpu_seconds:
        yield
        return
    over = PorterError(over_limit(doing, span, f"{cpu_seconds:g} s of CPU time", key))
    tell = _Watched.tell
    began = time.process_time()

    def give_up(_signal: int, frame: FrameType | None) -> None:
        # In a callback of libclang an exception would be printed and forgotten: the next signal comes soon.
        if time.process_time() - began >= cpu_seconds and not _in_callback(frame):
            raise over

    before = signal.signal(signal.SIGPROF, give_up)
    _active = True
    with contextlib.ExitStack() as undo:
        undo.callback(_end, before)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds, REPEAT_SECONDS)
        if tell is not None:
            tell(doing, span)
            undo.callback(tell, "", NO_SPAN)
            undo.enter_context(_lowered(resource.RLIMIT_CPU, int(time.process_time() + cpu_seconds) + GRACE_SECONDS))
            if memory_gib:
                undo.enter_context(_lowered(resource.RLIMIT_AS, _address_space() + int(memory_gib * (1 << 30))))
                undo.enter_context(_ended_when_idle(began))
        yield


def over_limit(doing: str, span: Span, what: str, key: str) -> Diagnostic:
    """PRT967: `doing` took more than `what`, which the setting `key` limits."""
    help_ = f"split it, or allow more with `{key}` in [tool.porter] of pyproject.toml"
    return Diagnostic(codes.LIMIT_REACHED, f"{doing} was stopped after {what}", span, help=help_)


def _end(before: Any) -> None:
    global _active
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
    _active = False


def _in_callback(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith("clang/cindex.py") and frame.f_code.co_name == "visitor":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _lowered(limit: int, value: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(limit)
    known = [v for v in (soft, hard) if v != resource.RLIM_INFINITY]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (min([value, *known]), hard))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (soft, hard))


def _address_space() -> int:
    """Bytes that the process has mapped."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 4 << 30


@contextlib.contextmanager
def _ended_when_idle(began: float) -> Iterator[None]:
    """End the process when the work inside has used next to no CPU time for long: a FIFO that a macro includes, say.

    A busy machine gives a little to everybody, so that work goes on there, however slowly.
    """
    done = threading.Event()

    def look() -> None:
        used, idle = began, 0
        while not done.wait(IDLE_SECONDS):
            now = time.process_time()
            idle = idle + 1 if now - used < 0.02 else 0
            if idle == 2:  # once: the process may just have been stopped and gone on with
                os.kill(os.getpid(), signal.SIGXCPU)
            used = now

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
