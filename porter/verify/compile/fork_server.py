"""A process that imports what children need, once, and then forks one for each request: a child costs milliseconds.

The server itself never runs what it serves; each child does, in a fence and for one file only, so nothing that one
file does to the modules of its process is there for the next. Linux only, as CuTeDSL is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from porter.verify.compile.fence import Fence, raise_fence

STARTED, ENDED = "started", "ended"  # lines on a child's status pipe; `ended` with the exit code, negative: a signal
_PR_SET_PDEATHSIG = 1

Serve = Callable[[Any, Any], None]  # a child's work: requests (a text file to read), answers (one to write)


def run_server(control: socket.socket, serve: Serve) -> None:
    """Fork children as `control` asks for, until it is closed; then end them all.

    A message is a line of JSON. {"start": n, "folder", "files"} comes with four files: the child's requests (read),
    answers, log and status (written). {"kill": n} ends a child.
    """
    children: dict[int, tuple[int, int, int]] = {}  # number -> pid, pidfd, status
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ, None)
        while True:
            for ready, _ in selector.select():
                if ready.data is not None:
                    _bury(children, ready.data, selector)
                    continue
                data, files, _, _ = socket.recv_fds(control, 1 << 20, 8)
                if not data:
                    for number in list(children):
                        _kill(children, number)
                        _bury(children, number, selector)
                    return
                message = json.loads(data)
                if "kill" in message:
                    _kill(children, message["kill"])
                    continue
                number, (requests, answers, log, status) = message["start"], files
                pid = os.fork()
                if not pid:
                    _child(message, requests, answers, log, serve)
                for file in (requests, answers, log):
                    os.close(file)
                pidfd = os.pidfd_open(pid)
                children[number] = (pid, pidfd, status)
                selector.register(pidfd, selectors.EVENT_READ, number)
                _tell(status, f"{STARTED} {pid}")


def _kill(children: Mapping[int, tuple[int, int, int]], number: int) -> None:
    if number in children:  # not yet waited for, so the number is its own
        with contextlib.suppress(ProcessLookupError):
            os.killpg(children[number][0], signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(children[number][0], signal.SIGKILL)  # before it has a group of its own


def _bury(children: dict[int, tuple[int, int, int]], number: int, selector: selectors.BaseSelector) -> None:
    pid, pidfd, status = children.pop(number)
    selector.unregister(pidfd)
    os.close(pidfd)
    _, code = os.waitpid(pid, 0)
    _tell(status, f"{ENDED} {os.waitstatus_to_exitcode(code)}")
    os.close(status)


def _tell(status: int, line: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(status, line.encode() + b"\n")


def _child(message: Mapping[str, Any], requests: int, answers: int, log: int, serve: Serve) -> None:
    """Never returns. Its files: 0 requests, 1 and 2 the log, 3 answers; all others are closed."""
    code = 1
    try:
        os.setsid()
        high = max(requests, answers, log, 3) + 1
        os.dup2(answers, high)
        os.dup2(requests, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(high, 3)
        os.closerange(4, 1 << 20)
        _die_with_the_server()
        folder = Path(message["folder"])
        os.chdir(folder)
        os.environ |= {"HOME": str(folder), "TMPDIR": str(folder), "PORTER_CACHE": str(folder / "cache")}
        os.environ.pop("XDG_CACHE_HOME", None)
        tempfile.tempdir = None  # the server may have looked it up
        sys.dont_write_bytecode = True
        raise_fence(Fence(folder, tuple(Path(f) for f in message["files"])))
        serve(os.fdopen(0, encoding="utf-8", closefd=False), os.fdopen(3, "w", encoding="utf-8", closefd=False))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def _die_with_the_server() -> None:
    server = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server:
        os._exit(1)  # it died before the call
