"""Which accesses happen before which: vector clocks of warps, moved on by barriers, fences, releases and acquires.

`known[w, u]` is the latest clock of warp u that warp w is ordered behind. A release and an acquire of one variable
order their warps when the scope of each includes the other thread (cta < cluster < gpu < sys; a gpu is a rank).
`heard` is what would be known if every strong access released and acquired, at any scope: the difference is a missing
fence. Lenient on purpose: a release by one lane covers its warp.
"""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.decode.program import Atomic, Fence, Load, Mbarrier, Multimem, Program, Step, Store
from porter.verify.emulator.machine.wave import WARP, Wave

CTA, CLUSTER, GPU, SYS = 1, 2, 3, 4
LEVELS = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": SYS}
HISTOGRAM = 4096  # relaxed accesses of one instruction to more places than this are no flags
FLAGS = 256  # the same for what is only needed to explain a race

Rows = dict[tuple[int, int], np.ndarray]  # (level, which cta, cluster, gpu): a row of `known`


def level_of(step: Step) -> int:
    """The scope of a strong access, 0 for a weak one."""
    if isinstance(step, Mbarrier):
        return SYS
    order = getattr(step, "order", "weak")
    if order == "weak" and not isinstance(step, Atomic):
        return 0
    return SYS if order == "volatile" else LEVELS.get(getattr(step, "scope", ""), GPU)


class Order:
    """The clocks of one wave's warps."""

    def __init__(self, program: Program, wave: Wave, whole: bool):
        self.wave, self.whole = wave, whole
        self.warps = wave.threads // WARP
        self.per_block = wave.geometry.warps
        self.clock = np.ones(self.warps, np.int32)
        self.epoch = np.zeros(self.warps, np.int32)
        self.known = np.zeros((self.warps, self.warps if whole else self.per_block), np.int32)
        self.heard: np.ndarray | None = None
        self.arrived: dict[tuple[int, int], np.ndarray] = {}  # (slot, barrier): what bar.arrive brought
        self.released: dict[tuple[int, int], Rows] = {}  # by (region, offset) of a sync variable
        self.loose: dict[tuple[int, int], np.ndarray] = {}  # the same for what strong writes would release
        self.pending: dict[int, dict[int, np.ndarray]] = {}  # warp, level: what a relaxed read saw, for a fence
        self.levels = self.used_levels(program)
        self.fenced = {level: np.zeros(self.warps, np.int32) for level in self.levels}  # clock at the last fence

    # scopes
    def effective(self, level: int) -> int:
        """A scope as wide as this one that is told apart in this launch."""
        if level == SYS and self.wave.geometry.ranks == 1:
            return GPU
        return CTA if level == CLUSTER and self.wave.geometry.cluster_blocks == 1 else level

    def used_levels(self, program: Program) -> list[int]:
        found = {GPU}
        for segment in program.segments:
            for each in segment.steps:
                step = each.access if isinstance(each, Multimem) else each
                if isinstance(step, Fence):
                    found.add(self.effective(LEVELS.get(step.scope, GPU)))
                elif isinstance(step, (Load, Store, Atomic)) and (level := level_of(step)):
                    found.add(self.effective(level))
        return sorted(found)

    def domain(self, level: int, warp: int) -> int:
        slot = warp // self.per_block
        if level == CTA:
            return slot
        if level == CLUSTER:
            return slot // self.wave.geometry.cluster_blocks
        return int(self.wave.ranks[slot]) if level == GPU else 0

    def include_each_other(self, level: np.ndarray, warp: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Do scopes of this level around two warps include both? `level` 0: no."""
        slot, other_slot = warp // self.per_block, other // self.per_block
        per = self.wave.geometry.cluster_blocks
        ranks = self.wave.ranks
        return (
            (level == SYS)
            | ((level >= CTA) & (slot == other_slot))
            | ((level >= CLUSTER) & (slot // per == other_slot // per))
            | ((level >= GPU) & (ranks[slot] == ranks[other_slot]))
        )

    # clocks
    def column(self, warp: np.ndarray) -> np.ndarray:
        """Columns of `known` for warps (of the same block, when rows are a block wide)."""
        return warp if self.whole else warp % self.per_block

    def row(self, warp: int, clock: int = -1) -> np.ndarray:
        """What a release of this warp passes on: all that it knows, and its own clock."""
        row = self.known[warp].copy()
        row[int(self.column(np.array(warp)))] = self.clock[warp] if clock < 0 else clock
        return row

    def restart(self, warps: np.ndarray) -> None:
        self.clock[warps] += 1

    def warp_barrier(self, warps: np.ndarray) -> None:
        self.epoch[warps] += 1

    def fence(self, warps: np.ndarray, scope: int) -> None:
        scope = self.effective(scope)
        for w in warps:
            pending = self.pending.get(int(w))
            for level in [level for level in pending or () if level <= scope]:
                np.maximum(self.known[w], pending.pop(level), out=self.known[w])  # type: ignore[union-attr]
        for level in self.levels:
            if level <= scope:
                self.fenced[level][warps] = self.clock[warps]
        self.clock[warps] += 1

    def barrier(self, kind: str, warps: np.ndarray, id_: int) -> None:
        """Warps cross a barrier (16: the cluster's), or arrive at one without waiting."""
        self.epoch[warps] += 1
        slots = warps // self.per_block
        if id_ == 16:
            slots = slots // self.wave.geometry.cluster_blocks
        for slot in np.unique(slots):
            members = warps[slots == slot]
            key = (int(slot), id_)
            if kind == "arrive":
                for w in members:
                    row = self.row(int(w))
                    self.arrived[key] = np.maximum(self.arrived[key], row) if key in self.arrived else row
                continue
            brought = self.arrived.pop(key, None)
            for table in (self.known, self.heard):
                if table is None:
                    continue
                rows = table[members]
                rows[np.arange(members.size), self.column(members)] = self.clock[members]
                joined = rows.max(axis=0)
                table[members] = joined if brought is None else np.maximum(joined, brought)
        self.clock[warps] += 1

    # strong accesses
    def strong(self, step: Step, region: int, offsets: np.ndarray, ids: np.ndarray, writes: bool, shared: bool) -> None:
        """Release and acquire through the variable that a strong access touches."""
        order = getattr(step, "order", "weak")
        pairs = np.unique(np.stack((offsets, ids // WARP), axis=1), axis=0)
        if pairs.shape[0] > HISTOGRAM and order == "relaxed":
            return
        is_mbarrier = isinstance(step, Mbarrier)
        scope = self.effective(level_of(step))
        levels = [level for level in self.levels if level <= scope]
        acquires = is_mbarrier or order in ("acquire", "acq_rel")
        releases = is_mbarrier or order in ("release", "acq_rel")
        # atomics on shared memory are used as locks and tickets without fences
        whole = releases or (shared and isinstance(step, Atomic))
        reads = not isinstance(step, Store)
        for offset, warp in pairs:
            key, w = (region, int(offset)), int(warp)
            if reads and key in self.released:
                self.acquire(w, self.released[key], levels, acquires)
                if is_mbarrier:  # orders the lanes of a warp, too
                    self.epoch[w] += 1
            if pairs.shape[0] <= FLAGS:
                self.hear(key, w, reads, writes)
            if not writes:
                continue
            for level in levels:
                if whole:
                    row = self.row(w)
                elif self.fenced[level][w]:
                    row = self.row(w, int(self.fenced[level][w]))
                else:
                    continue
                rows = self.released.setdefault(key, {})
                place = (level, self.domain(level, w))
                rows[place] = np.maximum(rows[place], row) if place in rows else row
        if releases:
            self.clock[np.unique(pairs[:, 1])] += 1

    def acquire(self, warp: int, rows: Rows, levels: list[int], now: bool) -> None:
        """A strong read saw what was released to scopes that it shares. Without `now` a fence must follow."""
        for level in levels:
            brought = rows.get((level, self.domain(level, warp)))
            if brought is None:
                continue
            if now:
                np.maximum(self.known[warp], brought, out=self.known[warp])
            else:
                waiting = self.pending.setdefault(warp, {})
                seen = waiting.get(level)
                if seen is not brought:
                    waiting[level] = brought if seen is None else np.maximum(seen, brought)

    def hear(self, key: tuple[int, int], warp: int, reads: bool, writes: bool) -> None:
        written = self.loose.get(key)
        if reads and written is not None:
            if self.heard is None:
                self.heard = np.zeros_like(self.known)
            np.maximum(self.heard[warp], written, out=self.heard[warp])
        if writes:
            row = self.row(warp)
            if self.heard is not None:
                np.maximum(row, self.heard[warp], out=row)
            self.loose[key] = row if written is None else np.maximum(row, written)

    def has_heard(self, warp: np.ndarray, other: np.ndarray, clock: np.ndarray) -> np.ndarray:
        """Would warp `warp` be ordered behind clock `clock` of warp `other`, if strong accesses always ordered?"""
        if self.heard is None:
            return np.zeros(warp.shape, bool)
        return self.heard[warp, self.column(other)] >= clock
