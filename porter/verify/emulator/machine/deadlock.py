"""A deadlock: who waits where, and which of the kinds of violation that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Segment
from porter.verify.emulator.machine.wave import WARP

if TYPE_CHECKING:
    from porter.verify.emulator.machine.scheduler import Scheduler

Waiting = tuple[Instr | None, np.ndarray, str]  # where, threads, what they do


def report_deadlock(scheduler: Scheduler, why: str) -> None:
    """Adds a violation for each place where threads of a wave that cannot go on wait."""
    wave, waiting = scheduler.wave, _waiting(scheduler)
    summary = "; ".join(
        f"{lanes.size} threads of {np.unique(wave.slot_of[lanes]).size} blocks {what}"
        + (f" (PTX line {instr.line})" if instr else "")
        for instr, lanes, what in waiting
    )
    parts = np.full(wave.threads, -1)
    for k, (_, lanes, _) in enumerate(waiting):
        parts[lanes] = k
    by_warp = parts.reshape(-1, WARP)
    spinning = [k for k, (_, _, what) in enumerate(waiting) if what.startswith("spin")]
    for k, (instr, lanes, what) in enumerate(waiting):
        kind = "deadlock"
        rows = by_warp[np.unique(lanes // WARP)]
        if what.startswith("wait at") and ((rows >= 0) & (rows != k) & ~np.isin(rows, spinning)).any():
            kind = "divergent-barrier"
        elif what.startswith("wait for"):
            kind = "divergent-sync"
        text = f"{lanes.size} threads {what}; {why}. All that wait: {summary}"
        wave.recorder.add(kind, instr, lanes, wave.coordinates, text)


def _waiting(scheduler: Scheduler) -> list[Waiting]:
    barriers, segments = scheduler.barriers, scheduler.program.segments
    found: list[Waiting] = []
    on_barrier = barriers.waits_on >= 0
    for target in np.unique(barriers.goes_to[on_barrier]):
        lanes = np.flatnonzero(on_barrier & (barriers.goes_to == target))
        found.append((barriers.instructions[int(target)], lanes, "wait at this barrier"))
    for index, lanes in scheduler.parked.items():
        sync = segments[index].warp_sync
        found.append((sync.source if sync else None, lanes, "wait for the other lanes of their warp"))
    for index, pieces in scheduler.ready.items():
        found.append((_first_instruction(segments, index), np.sort(np.concatenate(pieces)), "spin in this loop"))
    return found


def _first_instruction(segments: list[Segment], index: int) -> Instr | None:
    """Something to point at in the loop of a segment: its memory read, else its first instruction."""
    loop = segments[index].loop
    members = [s for s in segments if s.loop == loop and loop >= 0] or [segments[index]]
    for segment in members:
        for step in segment.steps:
            if type(step).__name__ in ("Load", "Atomic", "Mbarrier"):
                return step.source
    for segment in members:
        for step in segment.steps:
            return step.source
    return next((segment.jump for segment in members if segment.jump is not None), None)
