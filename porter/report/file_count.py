"""How far a run over several files is: "3 of 10 files, about 2 min left"."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from porter.report.console import Progress, StageEvent

STAGE = "file"


class FileCount:
    """Told of each file that is done; tells a Progress. Time left is that of the files so far; known ones took none."""

    def __init__(
        self, total: int, progress: Progress, known: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.known, self.progress, self.clock = total, known, progress, clock
        self.done = known
        self.began = clock()
        self.lock = threading.Lock()

    def add(self, path: Path) -> None:
        if self.total < 2:
            return
        with self.lock:
            self.done += 1
            passed = self.clock() - self.began
            note = f"{self.done} of {self.total} files"
            left = passed / (self.done - self.known) * (self.total - self.done)
            if self.done < self.total:
                note += f", about {duration(left)} left"
            self.progress(StageEvent(str(path), STAGE, "done", note, passed))


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
