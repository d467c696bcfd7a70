"""A program in a terminal of its own (a pty): keys go in, what it draws comes out. For benches and tests; POSIX."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

CONTROLS = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>]|[P\]^_].*?(?:\x07|\x1b\\))|[\x00-\x08\x0e-\x1f]")
KEYS = {
    "down": "\x1b[B", "up": "\x1b[A", "pagedown": "\x1b[6~", "pageup": "\x1b[5~", "home": "\x1b[H", "end": "\x1b[F",
    "enter": "\r", "escape": "\x1b", "tab": "\t", "ctrl+s": "\x13",
}  # fmt: skip


class Terminal:
    """Starts `command` with a terminal of (columns, rows) as its controlling one."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.drawn = b""
        self.code: int | None = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:  # the child
            try:
                _resize(0, size)
                os.chdir(folder)
                os.execvpe(command[0], list(command), {**env, "TERM": "xterm-256color"})
            finally:
                os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(5.0)

    def press(self, *keys: str) -> None:
        """Send keys, by name or as the text that is typed."""
        for key in keys:
            os.write(self.master, KEYS.get(key, key).encode())

    def read(self, seconds: float) -> bytes:
        """What is drawn within some seconds; less when something is drawn before, or the program has ended."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        try:
            data = os.read(self.master, 1 << 16) if ready else b""
        except OSError:  # what reading gives when the other side is gone
            data = b""
        self.drawn += data
        return data

    @property
    def text(self) -> str:
        """Everything that was drawn since `forget`, without colours and places: pieces in the order of drawing."""
        return CONTROLS.sub(b"", self.drawn).decode(errors="replace")

    def forget(self) -> None:
        self.drawn = b""

    def wait_for(self, text: str, seconds: float = 20.0) -> None:
        """Read until `text` has been drawn since `forget`. Raises TimeoutError with what was drawn instead."""
        end = time.monotonic() + seconds
        while text not in self.text:
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} was not drawn within {seconds:.0f} s; drawn was:\n{self.text[-4000:]}")
            self.read(0.1)

    def resize(self, columns: int, rows: int) -> None:
        _resize(self.master, (columns, rows))

    def close(self) -> None:
        """Close the window: the program is told that its terminal is gone."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def wait(self, seconds: float = 10.0) -> int | None:
        """The exit code, negative for a signal; None while the program runs."""
        end = time.monotonic() + seconds
        while self.code is None and time.monotonic() < end:
            if self.master >= 0:
                self.read(0.02)
            else:
                time.sleep(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code


def _resize(fd: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
