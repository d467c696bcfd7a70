"""How much work a launch may do."""

from __future__ import annotations

import time

from porter.verify.emulator.decode.program import Segment


class OutOfBudget(Exception):
    """The launch did more work than it was allowed."""


class Budget:
    """Counts executions of segments by threads; ends a launch that does too much."""

    def __init__(self, segments: int, limit: int, seconds: float):
        self.executions = [0] * segments
        self.visits = [0] * segments
        self.left = limit
        self.until = time.thread_time() + seconds
        self.looks = 0

    def spend(self, segment: Segment, threads: int, overhead: int = 256) -> None:
        """`threads` have executed a segment; `overhead` is what a visit by the interpreter costs beside them."""
        index = segment.index
        self.executions[index] += threads
        self.visits[index] += 1
        self.left -= (threads + overhead) * (len(segment.steps) + 1)
        self.looks += 1
        if self.left < 0 or (self.looks % 256 == 0 and time.thread_time() > self.until):
            raise OutOfBudget
