"""The other side of fork_server: starts one, asks it for children, talks to these, takes what they made.

Trusts no child: answers have a limit, files are only taken from the child's own folder, and only plain ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from porter.corpus.runtime.scratch import Scratch
from porter.verify.compile.fork_server import ENDED

_ANSWER_BYTES = 32 << 20
_FILE_BYTES = 256 << 20
_FOLDER_BYTES = 512 << 20  # of a child's folder; the system only limits each file
_LOOK_SECONDS = 0.5
_LOG_LINES, _LOG_BYTES = 8, 4096


class CompilerDied(Exception):
    """A child is gone. `error_id`: CRASH or TIMEOUT."""

    def __init__(self, error_id: str, text: str):
        super().__init__(text)
        self.error_id = error_id


class ForkServer:
    """A server process of `module`, run by `python`. Its standard input is the socket that it is asked through.

    It has a temporary folder of its own: what it imports makes folders there and leaves them.
    """

    def __init__(self, python: str, module: str, env: Mapping[str, str]):
        self._scratch = Scratch("server")
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the server)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._count = 0
        self.process = subprocess.Popen(
            [python, "-m", module],
            stdin=theirs.fileno(),
            stdout=self.log,
            stderr=self.log,
            env={**env, "TMPDIR": str(self._scratch.path)},
            cwd=self._scratch.path,
            start_new_session=True,  # Ctrl-C is for porter, which then ends its children
        )
        theirs.close()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def child(self, files: Sequence[Path] = ()) -> ForkedChild:
        """A new child that may read these files and what is installed. Raises CompilerDied when the server is gone."""
        return ForkedChild(self, files)

    def send(self, message: Mapping[str, Any], files: Sequence[int] = ()) -> int:
        """Ask for something; returns the number given to a started child. Raises CompilerDied."""
        with self._lock:
            self._count += 1
            data = json.dumps({**message, **({"start": self._count} if files else {})}).encode()
            try:
                socket.send_fds(self.control, [data], list(files))
            except OSError:
                raise CompilerDied("CRASH", self.last_words("the compiler process died")) from None
            return self._count

    def last_words(self, text: str) -> str:
        """The text, with how the server ended if it did, and the end of its log."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            text += f" ({_how(self.process.wait(timeout=2))})"
        return _with_log(text, self.log.fileno())

    def close(self) -> None:
        """End it and its children: they die with it."""
        self.control.close()
        self.process.kill()  # leaving by itself it would take a second to unload what it has imported
        self.process.wait()
        self.log.close()
        self._scratch.close()


class ForkedChild:
    """A forked child: its folder, which is all that it can write, and the pipes to it."""

    def __init__(self, server: ForkServer, files: Sequence[Path]):
        self.server = server
        self._scratch = Scratch("child")
        self.folder = self._scratch.path
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._status, status = os.pipe()
        self._rest = bytearray()
        self._closed = self._ended = False
        message = {"folder": str(self.folder), "files": [str(f) for f in files]}
        theirs = (requests, answers, self._log.fileno(), status)
        try:
            self._number = server.send({"start": 0, **message}, theirs)
        except CompilerDied:
            self._number = 0
            self.close()
            raise
        finally:
            for file in (requests, answers, status):
                os.close(file)

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to a request. Raises CompilerDied (the child is gone then) on a crash or after `timeout` s."""
        deadline = time.monotonic() + timeout
        try:
            _write_all(self._requests, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._died() from None
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            data = bytes(self._rest)
            while b"\n" not in data:
                ready = selector.select(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
                if folder_bytes(self.folder) > _FOLDER_BYTES:
                    self.close()
                    raise CompilerDied("CRASH", f"the port wrote more than {_FOLDER_BYTES >> 20} MiB into its folder")
                if not ready and time.monotonic() < deadline:
                    continue
                if not ready:
                    self.close()
                    raise CompilerDied("TIMEOUT", f"the compiler did not finish within {timeout:g} s")
                data = os.read(self._answers, 1 << 16)
                if not data:
                    raise self._died()
                self._rest += data
                if len(self._rest) > _ANSWER_BYTES:
                    self.close()
                    raise CompilerDied("CRASH", "the compiler process sent an endless answer")
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        try:
            answer = json.loads(line)
            if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
                raise ValueError
        except ValueError:
            self.close()
            raise CompilerDied("CRASH", "the compiler process gave an invalid answer") from None
        return answer

    def take(self, folder: str, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, bytes]:
        """Files that the child wrote into a folder below its own cache. Raises ValueError for anything but plain files.

        No link is followed: the child is still there, and what it wrote may be made to point elsewhere.
        """
        parts = PurePosixPath(folder).parts
        if not parts or any(p in ("..", "/") for p in parts):
            raise ValueError(f"not a folder of the child: {folder}")
        at = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in ("cache", *parts):
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
                os.close(at)
                at = inner
            found = {}
            for name in (*names, *optional):
                with contextlib.suppress(*([FileNotFoundError] if name in optional else [])):
                    found[name] = _plain_file(name, at)
            return found
        except OSError as error:
            raise ValueError(f"the child has no such file: {error}") from None
        finally:
            os.close(at)

    def _died(self) -> CompilerDied:
        ended = _last_line(self._status, ENDED)
        self._ended = bool(ended)
        if not ended:  # the server is gone too, and had nothing to say
            text = self.server.last_words("the compiler process died")
        else:
            text = _with_log(f"the compiler process died ({_how(int(ended.split()[1]))})", self._log.fileno())
        self.close()
        return CompilerDied("CRASH", text)

    def close(self) -> None:
        """End it and delete its folder."""
        if self._closed:
            return
        self._closed = True
        if self._number and not self._ended:
            with contextlib.suppress(CompilerDied):
                self.server.send({"kill": self._number})
            if not _last_line(self._status, ENDED, 2.0) and self.server.alive:
                self.server.process.kill()  # it does not answer: still importing, or stuck
        for file in (self._requests, self._answers, self._status):
            os.close(file)
        self._log.close()
        self._scratch.close()


def folder_bytes(folder: Path) -> int:
    """What the files below a folder take on the disk. A folder that may not be read counts as full: it hides them."""
    total = 0
    todo = [str(folder)]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return _FOLDER_BYTES + 1
    return total


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _plain_file(name: str, folder: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{name} is not a regular file")
        data = opened.read(_FILE_BYTES + 1)
    if len(data) > _FILE_BYTES:
        raise ValueError(f"{name} is larger than {_FILE_BYTES} bytes")
    return data


def _last_line(status: int, word: str, timeout: float = 10.0) -> str:
    """The line of a status pipe that begins with a word, "" when it is closed or silent for `timeout` seconds."""
    deadline = time.monotonic() + timeout
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(status, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            data = os.read(status, 4096)
            text += data
            lines = [line for line in text.decode().splitlines() if line.startswith(word)]
            if lines or not data:
                return lines[-1] if lines else ""
    return ""


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _with_log(text: str, log: int) -> str:
    size = os.fstat(log).st_size
    tail = os.pread(log, _LOG_BYTES, max(0, size - _LOG_BYTES)).decode(errors="replace")
    return "\n".join([text, *tail.strip().splitlines()[-_LOG_LINES:]]).strip()
