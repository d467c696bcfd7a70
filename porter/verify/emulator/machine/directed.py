"""Orders of blocks or warps that are chosen, not drawn: those in which what relies on an order goes wrong, if it can.

A barrier over the grid that is used again breaks where one block is a whole use ahead of another; random orders seldom
drive blocks that far apart. `ahead` and `behind` let one block run until it spins, waits or ends, and then the next one
(or the one before); `turns` gives the turn away after every change of memory that others may see. `warps` is as
`behind`, warp by warp: the last warp comes first, which atomics of a block show. `alone`: a block starts when the one
before it has ended, as may happen to a launch that is not cooperative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from porter.verify.emulator.machine.wave import WARP

if TYPE_CHECKING:
    from porter.verify.emulator.machine.scheduler import Scheduler

DIRECTED = ("ahead", "behind", "turns", "warps", "alone")
SPIN = 4  # visits of a segment of a spin loop, with memory as it was, after which a block or warp is taken to wait


class Director:
    """Whose turn it is, in one wave."""

    def __init__(self, scheduler: Scheduler, how: str):
        self.scheduler, self.how = scheduler, how
        wave = scheduler.wave
        self.unit_of = np.arange(wave.threads) // WARP if how == "warps" else wave.slot_of  # of each thread
        units = range(wave.threads // WARP if how == "warps" else wave.slots)
        self.order = list(units)[::-1] if how in ("behind", "warps") else list(units)
        self.at = 0  # in `order`
        self.visits: dict[int, int] = {}  # of the unit whose turn it is, by segment, since memory changed
        self.version = -1
        self.passed = 0  # units in a row that could not go on, with memory as it was

    def next(self) -> tuple[int, np.ndarray] | None:
        """A ready segment and the threads of one block or warp that go on there, taken off the ready; None: as ever.

        None as well while none gets on by itself: then the scheduler finds out whether any ever will.
        """
        s = self.scheduler
        version = s.wave.memory_version
        if version != self.version:
            if self.how == "turns" and self.version >= 0:
                self.pass_on()
            self.version, self.passed = version, 0
            self.visits.clear()
        while self.passed < len(self.order):
            unit = self.order[self.at]
            found = self.lowest(unit)
            if found is not None:
                index, here = found
                self.visits[index] = self.visits.get(index, 0) + 1
                if not s.program.segments[index].spins or self.visits[index] <= SPIN:
                    pieces = s.merged(s.ready.pop(index))
                    mine = self.unit_of[pieces] == unit
                    s.push(index, pieces[~mine])
                    return index, here
            self.pass_on()
            self.passed += 1
        return None

    def pass_on(self) -> None:
        self.at = (self.at + 1) % len(self.order)
        self.visits.clear()

    def lowest(self, unit: int) -> tuple[int, np.ndarray] | None:
        """The lowest segment where threads of a block or warp are ready, and these threads."""
        s = self.scheduler
        for index in sorted(s.ready):
            lanes = s.merged(s.ready[index])
            mine = lanes[self.unit_of[lanes] == unit]
            if mine.size:
                return index, mine
        return None
