"""How far into each buffer of global memory the threads of a launch read and wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from porter.verify.emulator.checks.taps import Taps
from porter.verify.emulator.decode.program import Atomic, Copy, Load, MemoryOperand, Step, Store
from porter.verify.emulator.decode.types import U32
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter
from porter.verify.emulator.machine.wave import Wave
from porter.verify.emulator.memory.access import address_getter
from porter.verify.emulator.memory.buffers import MemoryRegion


@dataclass
class Reached:
    """One past the last byte read, and written; 0: none. `read_first`: some byte was read before a thread wrote it."""

    read: int = 0
    written: int = 0
    read_first: bool = False
    bytes_written: np.ndarray | None = field(default=None, repr=False)


@dataclass
class Touched(Taps):
    """An observer of accesses to global memory alone, which keeps no events. Accesses outside of buffers are left to
    the emulator's own checks."""

    buffers: dict[str, Reached] = field(default_factory=dict)

    def barrier(self, source: object, lanes: np.ndarray, wave: Wave) -> None:
        """Barriers say nothing of memory."""

    def wrap(self, step: Step, run: Runner) -> Runner:
        """`run`, and a note of the bytes that it accesses."""
        match step:
            case Load() if _is_global(step.place):
                return self._noting(run, step.place, step.type.bytes * len(step.dsts), "load")
            case Store() if _is_global(step.place):
                return self._noting(run, step.place, step.type.bytes * len(step.srcs), "store")
            case Atomic() if _is_global(step.place):
                return self._noting(run, step.place, step.type.bytes, "atomic")
            case Copy():
                return self._copying(step, run)
        return run

    def _noting(self, run: Runner, place: MemoryOperand, width: int, kind: str) -> Runner:
        address = address_getter(place)

        def noted(e: Env) -> None:
            self._note(e, e.each(address(e)), width, kind)
            run(e)

        return noted

    def _copying(self, step: Copy, run: Runner) -> Runner:
        assert step.size is not None
        size = getter(step.size, U32)
        sides = [
            (address_getter(place), kind)
            for place, kind in ((step.origin, "load"), (step.target, "store"))
            if _is_global(place)
        ]

        def noted(e: Env) -> None:
            sizes = e.full(size(e)).astype(np.int64)
            for width in np.unique(sizes):
                for address, kind in sides:
                    if width:
                        self._note(e, e.each(address(e))[sizes == width], int(width), kind)
            run(e)

        return noted

    def _note(self, e: Env, at: np.ndarray, width: int, kind: str) -> None:
        for region, starts in _by_region(e, at, width):
            found = self.buffers.setdefault(region.name, Reached())
            end = int(starts.max()) + width
            if kind != "store":
                found.read = max(found.read, end)
                if not found.read_first:
                    known = found.bytes_written
                    found.read_first = known is None or not known[_every(starts, width)].all()
            if kind != "load":
                found.written = max(found.written, end)
                if found.bytes_written is None:
                    found.bytes_written = np.zeros(region.size, bool)
                found.bytes_written[_every(starts, width)] = True


def _is_global(place: MemoryOperand) -> bool:
    return place.space in ("global", "")


def _every(starts: np.ndarray, width: int) -> np.ndarray:
    return (starts[:, None] + np.arange(width)).reshape(-1)


def _by_region(e: Env, at: np.ndarray, width: int) -> Iterator[tuple[MemoryRegion, np.ndarray]]:
    """The buffers of global memory that addresses lie in, with the offsets of the accesses that are inside."""
    regions = e.wave.space
    if not at.size:
        return
    index = regions.index_of(at)
    first = int(index[0])
    for k in (first,) if (index == first).all() else np.unique(index):
        if k < 0:
            continue
        region = regions.regions[int(k)]
        starts = (at[index == k] - np.uint64(region.base)).astype(np.int64)
        starts = starts[starts + width <= region.size]
        if region.space == "global" and starts.size:
            yield region, starts
