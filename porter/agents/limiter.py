"""One pace for all requests of a process, however many kernels are worked on at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable


class Limiter:
    """At most `per_minute` requests in any 60 s (0: no limit), and none while a server has asked to wait."""

    def __init__(
        self,
        per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.per_minute, self.clock, self.sleep = per_minute, clock, sleep
        self.sent: deque[float] = deque()
        self.held_until = 0.0
        self.lock = threading.Lock()

    def wait(self) -> None:
        """Return when a request may be sent, and count it."""
        while True:
            with self.lock:
                now = self.clock()
                while self.sent and self.sent[0] <= now - 60:
                    self.sent.popleft()
                pause = self.held_until - now
                if self.per_minute and len(self.sent) >= self.per_minute:
                    pause = max(pause, self.sent[0] + 60 - now)
                if pause <= 0:
                    self.sent.append(now)
                    return
            self.sleep(pause)

    def hold(self, seconds: float) -> None:
        """No request of anybody for so long."""
        with self.lock:
            self.held_until = max(self.held_until, self.clock() + seconds)
