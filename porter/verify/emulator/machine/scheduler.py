"""Runs a wave: which segment next, for which threads; divergence, waiting, spinning, deadlock.

The lowest segment that some thread waits to run goes first, with all its threads: code laid out by a compiler
reconverges that way. Threads that stay in one loop for long let the others go ahead, so spin waits end. When every
runnable thread spins and the whole state repeats, nothing can ever change: that is reported as a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from porter.verify.emulator.decode.program import (
    Barrier,
    Branch,
    Const,
    Exit,
    Goto,
    Program,
    RegSrc,
    Segment,
    Switch,
    Warp,
)
from porter.verify.emulator.decode.types import PRED, U32
from porter.verify.emulator.errors import PtxSyntaxError
from porter.verify.emulator.machine.barriers import Barriers
from porter.verify.emulator.machine.budget import Budget
from porter.verify.emulator.machine.deadlock import report_deadlock
from porter.verify.emulator.machine.directed import Director
from porter.verify.emulator.machine.environment import Env, Gathered, scattered
from porter.verify.emulator.machine.evaluate import Runner, getter
from porter.verify.emulator.machine.warps import _BITS
from porter.verify.emulator.machine.wave import WARP, Wave
from porter.verify.emulator.memory.access import LanesKilled

SPIN_LIMIT = 64  # rounds in a loop that reads memory others change, before others get a turn
LOOP_LIMIT = 8192  # the same for any other loop
FUZZED = 0.25  # share of turns whose warps are drawn, under a seed


class Scheduler:
    """One wave's control state. `runners[s]` are the compiled steps of segment s; `refill` may start more blocks."""

    def __init__(
        self,
        wave: Wave,
        program: Program,
        runners: list[list[Runner]],
        budget: Budget,
        refill: Callable[[np.ndarray], np.ndarray],
        directed: str = "",
    ):
        self.wave, self.program, self.runners, self.budget, self.refill = wave, program, runners, budget, refill
        self.ready: dict[int, list[np.ndarray]] = {}
        self.parked: dict[int, np.ndarray] = {}  # threads at a warp-synchronising segment whose partners are missing
        self.expected: dict[int, np.ndarray] = {}  # segment: by warp, the lanes that those parked there wait for
        self.barriers = Barriers(wave)
        self.streak = 0
        self.avoid: set[int] = set()
        self.seen_states: set[int] = set()
        self.seen_version = -1
        self.turns: set[int] = set()  # segments that ran since then
        self.deadlocked = False
        self.director = Director(self, directed) if directed not in ("", "alone") else None
        self.picked = 0

    # the loop
    def run(self) -> None:
        wave, segments = self.wave, self.program.segments
        self.push(0, np.flatnonzero(wave.alive))
        while True:
            if not self.ready:
                if self.unblock():
                    continue
                if self.stuck_threads() and not self.start_more():
                    self.report_deadlock("nothing can run")
                if not self.ready:
                    return
            turn = self.director.next() if self.director is not None else None
            if turn is not None:
                index, lanes = turn
            else:
                index = self.choose()
                if index < 0:
                    continue
                pieces = self.ready.pop(index)
                lanes = pieces[0] if len(pieces) == 1 else self.merged(pieces)
            if wave.random is not None and turn is None and self.fuzzes():
                lanes = self.some_of(index, lanes)
                index = self.picked
            segment = segments[index]
            if segment.warp_sync is not None:
                lanes = self.gather_warps(segment, lanes)
                if not lanes.size:
                    continue
                for observer in wave.sync_observers:
                    observer("warp", lanes, 0)
            self.execute(segment, lanes)

    def merged(self, pieces: list[np.ndarray]) -> np.ndarray:
        """Threads that arrived by several ways, in order."""
        present = np.zeros(self.wave.threads, bool)
        for piece in pieces:
            present[piece] = True
        return np.flatnonzero(present)

    def push(self, index: int, lanes: np.ndarray) -> None:
        if lanes.size:
            self.ready.setdefault(index, []).append(lanes)

    def choose(self) -> int:
        ready, segments = self.ready, self.program.segments
        index = min(ready)
        if self.avoid and segments[index].loop in self.avoid:
            others = [s for s in ready if segments[s].loop not in self.avoid]
            if others:
                index = min(others)
            else:
                self.avoid.clear()
                first = self.everyone_spins()
                if not self.ready:
                    return -1
                index = first if first in self.ready else min(self.ready)
        self.turns.add(index)
        segment = segments[index]
        if segment.loop < 0:
            self.streak = 0
            return index
        self.streak += 1
        if self.streak > (SPIN_LIMIT if segment.spins else LOOP_LIMIT):
            self.streak = 0
            self.avoid.add(segment.loop)
        return index

    # other orders of warps
    def fuzzes(self) -> bool:
        """Is this a turn for a random choice? Not while threads spin: a state that repeats must mean all had a turn."""
        wave = self.wave
        watching = bool(self.seen_states) and self.seen_version == wave.memory_version
        return wave.random is not None and not self.avoid and not watching and bool(wave.random.random() < FUZZED)

    def some_of(self, index: int, lanes: np.ndarray) -> np.ndarray:
        """A random choice of the warps that could go on now; those of segment `index` that are not chosen stay ready.

        A warp always goes on with the lowest segment where it has lanes, so that it reconverges.
        """
        wave = self.wave
        assert wave.random is not None
        self.push(index, lanes)
        lowest = np.full(wave.threads // WARP, np.iinfo(np.int32).max)
        for s, pieces in self.ready.items():
            warps = np.unique(np.concatenate(pieces) // WARP)
            lowest[warps] = np.minimum(lowest[warps], s)
        others = np.unique(lowest[lowest != np.iinfo(np.int32).max])
        pick = int(wave.random.choice(others))
        here = self.merged(self.ready.pop(pick))
        chosen = (lowest == pick) & (wave.random.random(lowest.size) < 0.5)
        if not chosen.any():
            chosen = lowest == pick
        go = chosen[here // WARP]
        self.push(pick, here[~go])
        self.picked = pick
        return here[go]

    def execute(self, segment: Segment, lanes: np.ndarray) -> None:
        wave = self.wave
        self.budget.spend(segment, lanes.size)
        steps = self.runners[segment.index]
        at = 0
        while True:
            whole = lanes.size == wave.alive_count
            if whole:
                full = wave.alive_count == wave.threads
                env = Env(wave, wave.registers, None if full else lanes, not full)
            else:
                env = Env(wave, Gathered(wave.registers, lanes), lanes, False)
            try:
                for k in range(at, len(steps)):
                    steps[k](env)
            except LanesKilled as killed:
                # the rest of the segment runs without them
                self.flush(env, -1)
                self.retire(killed.lanes)
                wave.tainted[wave.slot_of[killed.lanes]] = True
                lanes = np.setdiff1d(lanes, killed.lanes, assume_unique=True)
                at = k + 1
                if lanes.size:
                    continue
                return
            self.flush(env, segment.live_out)
            break
        self.finish(segment, lanes)

    def flush(self, env: Env, live: int) -> None:
        """Gathered registers that were written go back (those that are live)."""
        if not isinstance(env.v, Gathered):
            return
        registers, threads = self.wave.registers, self.wave.threads
        for index in env.v.written:
            if live < 0 or live >> index & 1:
                registers[index] = scattered(registers[index], threads, env.v.lanes, env.v[index])

    # the end of a segment
    def finish(self, segment: Segment, lanes: np.ndarray) -> None:
        end = segment.end
        if isinstance(end, Goto):
            self.ready.setdefault(end.target, []).append(lanes)
        elif isinstance(end, Branch):
            p = self.wave.registers[end.guard.index]
            if p.size == 1:
                self.push(end.taken if bool(p[0]) != end.guard.negated else end.other, lanes)
                return
            p = p if lanes.size == p.size else p[lanes]
            yes = int(np.count_nonzero(p))
            if yes == lanes.size or yes == 0:
                self.push(end.taken if bool(yes) != end.guard.negated else end.other, lanes)
                return
            if end.guard.negated:
                p = ~p
            self.push(end.taken, lanes[p])
            self.push(end.other, lanes[~p])
        elif isinstance(end, Exit):
            if end.trap:
                deep = end.source is not None and end.source.opcode == "trap.recursion"
                what = "recursion is deeper than is emulated" if deep else "the kernel executed trap"
                self.wave.recorder.add("trap", end.source, lanes, self.wave.coordinates, what)
            self.retire(lanes)
        elif isinstance(end, Switch):
            index = np.broadcast_to(self.value(lanes, end.index), lanes.shape)
            for target in np.unique(index):
                if target < len(end.targets):
                    self.push(end.targets[int(target)], lanes[index == target])
                else:
                    self.retire(lanes[index == target])
        else:
            self.barrier(end, lanes)

    def value(self, lanes: np.ndarray, source: object, want: object = U32) -> np.ndarray:
        """A source read for some threads."""
        env = Env(self.wave, Gathered(self.wave.registers, lanes), lanes, False)
        return getter(source, want)(env)  # type: ignore[arg-type]

    def retire(self, lanes: np.ndarray) -> None:
        """These threads are done."""
        wave = self.wave
        wave.alive[lanes] = False
        wave.alive_count -= lanes.size
        if self.barriers.waiting:
            self.release()

    # barriers
    def barrier(self, end: Barrier, lanes: np.ndarray) -> None:
        wave, barriers = self.wave, self.barriers
        if wave.taps is not None:
            wave.taps.barrier(end.source, lanes, wave)
        if end.kind == "cluster_arrive":
            barriers.cluster_arrivals[lanes] += 1
            self.push(end.target, lanes)
            self.release()
            return
        if end.kind == "cluster_wait":
            barriers.wait(lanes, 16, end.target, end.source, None)
            self.release()
            return
        assert end.id is not None
        id_ = self.value(lanes, end.id)
        if (id_ > 15).any():
            raise PtxSyntaxError(f"barrier {int(id_.max())} does not exist", end.source.line)
        everyone = end.kind == "sync" and end.count is None and lanes.size == wave.alive_count and id_.size == 1
        if everyone and not barriers.early[:, id_[0]].any():
            barriers.crossed += wave.slots  # no need to wait
            self.crossed(lanes, int(id_[0]))
            self.push(end.target, lanes)
            return
        count = None
        if end.count is not None:
            count = np.broadcast_to(self.value(lanes, end.count).astype(np.int64), lanes.shape)
        if end.kind == "arrive":
            barriers.arrive(lanes, id_.astype(np.int64), count)
            for observer in wave.sync_observers:
                observer("arrive", lanes, int(id_[0]))
            self.push(end.target, lanes)
        else:
            if end.kind == "red":
                barriers.reductions[end.target] = (end.combine, end.dst)
                assert isinstance(end.value, RegSrc) or end.value is not None
                barriers.value[lanes] = self.value(lanes, end.value, PRED)
            barriers.wait(lanes, id_.astype(np.int64), end.target, end.source, count)
        self.release()

    def release(self) -> bool:
        moved = False
        for target, lanes, id_, _ in self.barriers.released():
            self.crossed(lanes, id_)
            self.push(target, lanes)
            moved = True
        return moved

    def crossed(self, lanes: np.ndarray, id_: int) -> None:
        for observer in self.wave.sync_observers:
            observer("barrier", lanes, id_)

    # warp-synchronising instructions
    def gather_warps(self, segment: Segment, lanes: np.ndarray) -> np.ndarray:
        """Of the threads at a warp-synchronising segment those whose partners are here; the others are parked."""
        wave = self.wave
        parked = self.parked.pop(segment.index, None)
        if parked is not None:
            lanes = np.union1d(lanes, parked)
        sync = segment.warp_sync
        everyone = isinstance(sync, Warp) and isinstance(sync.mask, Const) and sync.mask.value == 0xFFFFFFFF
        if lanes.size == wave.alive_count and (everyone or not isinstance(sync, Warp)):
            if segment.index in self.expected:
                self.report_skipped(segment, lanes, np.full(lanes.size, 0xFFFFFFFF, np.uint32))
            return lanes
        mask = self.value(lanes, sync.mask) if isinstance(sync, Warp) else np.array([0xFFFFFFFF], np.uint32)
        if isinstance(sync, Warp) and not everyone:
            outside = (np.broadcast_to(mask, lanes.shape) & _BITS[lanes % WARP]) == 0
            if outside.any():
                wave.recorder.add(
                    "divergent-sync", sync.source, lanes[outside], wave.coordinates,
                    "a thread executes a .sync instruction whose mask does not name it",
                )  # fmt: skip
        if lanes.size == wave.alive_count:
            if segment.index in self.expected:
                self.report_skipped(segment, lanes, np.broadcast_to(mask, lanes.shape))
            return lanes
        present = np.zeros(wave.threads, bool)
        present[lanes] = True
        bits = np.packbits(present.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        alive = np.packbits(wave.alive.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        warp = lanes // WARP
        needed = mask & alive[warp]
        go = (needed & ~bits[warp]) == 0
        self.report_skipped(segment, lanes[go], np.broadcast_to(mask, lanes.shape)[go])
        if go.all():
            return lanes
        self.expect(segment.index, warp[~go], (needed & ~bits[warp])[~go])
        self.parked[segment.index] = lanes[~go]
        return lanes[go]

    def expect(self, index: int, warps: np.ndarray, missing: np.ndarray) -> None:
        """Notes which living lanes the threads parked at a segment wait for; lanes that are about to exit are none."""
        wave = self.wave
        leaving = np.zeros(wave.threads, bool)
        for other, pieces in self.ready.items():
            if self.program.segments[other].leaves:
                leaving[np.concatenate(pieces)] = True
        bits = np.packbits(leaving.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        expected = self.expected.setdefault(index, np.zeros(wave.threads // WARP, np.uint32))
        np.bitwise_or.at(expected, warps, missing & ~bits[warps])

    def report_skipped(self, segment: Segment, lanes: np.ndarray, mask: np.ndarray) -> None:
        """Threads go on at a warp-synchronising segment: did a lane that their masks name exit instead of coming?"""
        expected = self.expected.get(segment.index)
        sync = segment.warp_sync
        if expected is None or sync is None or not lanes.size:
            return
        warp, alive = lanes // WARP, self.wave.alive
        bits = np.packbits(alive.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        skipped = mask & expected[warp] & ~bits[warp]
        expected[warp] = 0
        bad = (skipped != 0) & ~self.wave.tainted[self.wave.slot_of[lanes]]
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            lane = int(skipped[first]).bit_length() - 1
            self.wave.recorder.add(
                "skipped-lane", sync.source, lanes[bad], self.wave.coordinates,
                f"the mask names lane {lane}, which went another way and exited without coming here",
            )  # fmt: skip

    def unblock(self) -> bool:
        """Nothing is ready: exits may have completed barriers or warps."""
        if self.release():
            return True
        for index in sorted(self.parked):
            lanes = self.parked.pop(index)
            go = self.gather_warps(self.program.segments[index], lanes)
            if go.size:
                self.push(index, go)
                # partners that are all here run now; gather_warps would park nobody of them again
                return True
        return self.match_warp_syncs()

    def match_warp_syncs(self) -> bool:
        """bar.warp.sync may be reached at different instructions by the lanes of one mask."""
        segments = self.program.segments
        plain = [s for s in self.parked if getattr(segments[s].warp_sync, "kind", "") == "sync"]
        if len(plain) < 2:
            return False
        wave = self.wave
        present = np.zeros(wave.threads, bool)
        for s in plain:
            present[self.parked[s]] = True
        bits = np.packbits(present.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        alive = np.packbits(wave.alive.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
        moved = False
        for s in plain:
            lanes = self.parked[s]
            mask = self.value(lanes, segments[s].warp_sync.mask)  # type: ignore[union-attr]
            go = (mask & alive[lanes // WARP] & ~bits[lanes // WARP]) == 0
            if go.any():
                moved = True
                if s in self.expected:  # they come, if at another instruction
                    self.expected[s][lanes[go] // WARP] = 0
                rest = lanes[~go]
                if rest.size:
                    self.parked[s] = rest
                else:
                    del self.parked[s]
                self.execute(segments[s], lanes[go])
        return moved

    # spinning and deadlock
    def everyone_spins(self) -> int:
        """All runnable threads sit in loops. If the machine was in exactly this state before, and each of them had a
        turn since, it always will be. Returns the segment whose turn it is, -1 for any."""
        wave = self.wave
        if self.seen_version != wave.memory_version:
            self.seen_version = wave.memory_version
            self.seen_states.clear()
            self.turns.clear()
        live = 0
        for index in self.ready:
            live |= self.program.segments[index].live_in
        parts: list[object] = [tuple((s, tuple(hash(x.tobytes()) for x in p)) for s, p in sorted(self.ready.items()))]
        parts.append(hash(self.barriers.waits_on.tobytes()))
        index = 0
        while live:
            if live & 1:
                parts.append(hash(wave.registers[index].tobytes()))
            live >>= 1
            index += 1
        state = hash(tuple(parts))
        waiting = [s for s in self.ready if s not in self.turns]
        if state not in self.seen_states or waiting:
            self.seen_states.add(state)
            return min(waiting, default=-1)
        if self.start_more():
            return -1
        self.report_deadlock("it spins, and nothing else can run that would change what it waits for")
        return -1

    def start_more(self) -> bool:
        """Blocks of the grid that have not started take the places of finished ones."""
        lanes = self.refill(np.flatnonzero(~self.wave.alive.reshape(self.wave.slots, -1).any(axis=1)))
        self.push(0, lanes)
        return bool(lanes.size)

    def stuck_threads(self) -> bool:
        return bool(self.parked) or self.barriers.waiting > 0

    def report_deadlock(self, why: str) -> None:
        """Every thread that is left waits: says who waits where, then ends them."""
        self.deadlocked = True
        report_deadlock(self, why)
        self.ready.clear()
        self.parked.clear()
        self.barriers.waits_on[:] = -1
        self.barriers.waiting = 0
        self.wave.alive[:] = False
        self.wave.alive_count = 0
