"""Data races in shared and global memory, by happens-before.

Every warp has a clock; `known[w, u]` is the latest clock of warp u that warp w is ordered behind. Barriers, release
and acquire operations, fences around strong accesses and mbarriers make warps know each other's clocks; an instruction
that synchronises a warp separates the accesses of its lanes. Two accesses to the same bytes race when one of them
writes, they are not both strong (atomic, volatile, relaxed, acquire, release), and neither is ordered behind the other.
Lenient on purpose: a release by one lane covers its warp, and scopes are not compared. Of the readers since the last
write the last two warps are remembered for global memory, all warps for shared memory.
"""

from __future__ import annotations

import mmap
from functools import reduce
from math import gcd

import numpy as np

from porter.verify.ptx.access import Piece, Resolved
from porter.verify.ptx.environment import Env
from porter.verify.ptx.memory import Region
from porter.verify.ptx.program import Atomic, Copy, Load, MatrixMove, Mbarrier, Program, Step, Store
from porter.verify.ptx.wave import WARP, Wave

LAZY = 1 << 28  # bytes: more than this is rows far apart, of which few are touched


def _zeros(n: int, dtype: type) -> np.ndarray:
    """Zeroes; large ones take no room before they are written to, and are not refused for their size."""
    size = n * np.dtype(dtype).itemsize
    if size < LAZY:
        return np.zeros(n, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype)


class _Shadow:
    """Who wrote and read each granule of a region last. Thread numbers are stored plus one, so that 0 means nobody."""

    def __init__(self, granules: int, warps: int):
        self.writer = _zeros(granules, np.int32)
        self.write_clock = _zeros(granules, np.int32)
        self.write_epoch = _zeros(granules, np.int32)
        self.write_step = _zeros(granules, np.int16)
        self.write_strong = _zeros(granules, bool)
        self.reader = _zeros(granules, np.int32)
        self.read_clock = _zeros(granules, np.int32)
        self.read_epoch = _zeros(granules, np.int32)
        self.read_step = _zeros(granules, np.int16)
        self.read_strong = _zeros(granules, bool)
        # clocks of every warp's last plain read (shared memory), or the reader before the last (global memory)
        self.reads = np.zeros((granules, warps), np.int32) if warps else None
        self.other_reader = _zeros(0 if warps else granules, np.int32)
        self.other_clock = _zeros(0 if warps else granules, np.int32)

    def clear(self, part: slice) -> None:
        self.writer[part] = 0
        self.reader[part] = 0
        if self.reads is not None:
            self.reads[part] = 0


class RaceChecker:
    """Observes one wave. `seen` carries the shadows of global memory and the numbering of warps from wave to wave."""

    def __init__(self, program: Program, wave: Wave, shared: bool, global_: bool, seen: dict[object, object]):
        self.wave, self.shared, self.global_ = wave, shared, global_
        self.warps = wave.threads // WARP
        self.per_block = wave.geometry.warps
        self.clock = np.ones(self.warps, np.int32)
        self.epoch = np.zeros(self.warps, np.int32)
        whole = global_ or wave.geometry.cluster_blocks > 1
        width = self.warps if whole else self.per_block
        self.whole = whole
        self.known = np.zeros((self.warps, width), np.int32)
        self.arrived: dict[tuple[int, int], np.ndarray] = {}  # (slot, barrier): what bar.arrive brought
        self.released: dict[tuple[int, int], np.ndarray] = {}  # (region, offset) of a sync variable: a row of `known`
        self.pending: dict[int, np.ndarray] = {}  # warp: what a relaxed read saw, to be acquired by a fence
        self.fenced = np.zeros(self.warps, np.int32)  # clock at the last fence, 0 for none
        self.steps: list[Step] = []
        self.step_number: dict[int, int] = {}
        self.seen = seen
        self.base = int(seen.get("threads", 0))  # type: ignore[call-overload]
        seen["threads"] = self.base + wave.threads
        self.regions: dict[int, int] = {}
        self.granule = {"shared": _granule(program, "shared"), "global": _granule(program, "global")}
        wave.observers.append(self.access)
        wave.sync_observers.append(self.sync)

    # clocks
    def column(self, warp: np.ndarray) -> np.ndarray:
        """Columns of `known` for warps (of the same block, when rows are a block wide)."""
        return warp if self.whole else warp % self.per_block

    def row(self, warp: int) -> np.ndarray:
        """What a release of this warp passes on: all that it knows, and its own clock."""
        row = self.known[warp].copy()
        row[int(self.column(np.array(warp)))] = self.clock[warp]
        return row

    def sync(self, kind: str, lanes: np.ndarray, id_: int) -> None:
        warps = np.unique(lanes // WARP)
        if kind == "warp":
            self.epoch[warps] += 1
            return
        if kind == "restart":  # other blocks have taken these slots: their shared memory is new
            shadow = self.wave.shared.race
            if isinstance(shadow, _Shadow):
                stride = self.wave.geometry.shared_stride // self.granule["shared"]
                for slot in np.unique(warps // self.per_block):
                    shadow.clear(slice(slot * stride, (slot + 1) * stride))
            self.clock[warps] += 1
            return
        if kind == "fence":
            for w in warps:
                pending = self.pending.pop(int(w), None)
                if pending is not None:
                    np.maximum(self.known[w], pending, out=self.known[w])
            self.fenced[warps] = self.clock[warps]
            self.clock[warps] += 1
            return
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
            rows = self.known[members]
            rows[np.arange(members.size), self.column(members)] = self.clock[members]
            joined = rows.max(axis=0)
            if key in self.arrived:
                joined = np.maximum(joined, self.arrived.pop(key))
            self.known[members] = joined
        self.clock[warps] += 1

    # accesses
    def access(self, e: Env, step: Step, resolved: Resolved, width: int, value: np.ndarray | None = None) -> None:
        if isinstance(step, MatrixMove):
            writes = step.kind == "stmatrix"
        elif isinstance(step, Mbarrier):
            writes = step.kind not in ("test_wait", "try_wait")
        else:
            writes = isinstance(step, (Store, Copy, Atomic))
        order = getattr(step, "order", "weak")
        strong = isinstance(step, (Atomic, Mbarrier)) or order != "weak"
        number = self.step_number.get(id(step))
        if number is None:
            number = self.step_number[id(step)] = len(self.steps)
            self.steps.append(step)
        for piece in resolved.pieces:
            space = piece.region.space
            if (space == "shared" and self.shared) or (space == "global" and self.global_):
                part = value
                if part is not None and piece.positions is not None and part.size != 1:
                    part = part[piece.positions]
                self.piece(e, step, number, piece, width, writes, strong, part)
        if strong:
            for piece in resolved.pieces:
                if piece.region.space in ("shared", "global"):
                    self.synchronise(e, step, piece, writes, order)

    def threads(self, e: Env, piece: Piece) -> np.ndarray:
        ids = e.ids if piece.positions is None else e.ids[piece.positions]
        return ids

    def synchronise(self, e: Env, step: Step, piece: Piece, writes: bool, order: str) -> None:
        """Release and acquire through the variable that a strong access touches."""
        ids = self.threads(e, piece)
        offsets = np.broadcast_to(piece.offsets, ids.shape)
        pairs = np.unique(np.stack((offsets, ids // WARP), axis=1), axis=0)
        if pairs.shape[0] > 4096 and order == "relaxed":
            return  # a histogram, not a flag
        region = self.region_key(piece.region)
        is_mbarrier = isinstance(step, Mbarrier)
        acquires = is_mbarrier or order in ("acquire", "acq_rel")
        releases = is_mbarrier or order in ("release", "acq_rel")
        for offset, warp in pairs:
            key, w = (region, int(offset)), int(warp)
            brought = self.released.get(key)
            if brought is not None and not (isinstance(step, Store)):
                if acquires:
                    np.maximum(self.known[w], brought, out=self.known[w])
                else:
                    waiting = self.pending.get(w)
                    if waiting is None:
                        self.pending[w] = brought
                    elif waiting is not brought:
                        self.pending[w] = np.maximum(waiting, brought)
            if not writes:
                continue
            if releases:
                row = self.row(w)
            elif self.fenced[w]:
                row = self.known[w].copy()
                row[int(self.column(np.array(w)))] = self.fenced[w]
            elif piece.region.space == "shared" and isinstance(step, Atomic):
                row = self.row(w)  # atomics on shared memory are used as locks and tickets without fences
            else:
                continue
            self.released[key] = row if brought is None else np.maximum(brought, row)
        if releases:
            self.clock[np.unique(pairs[:, 1])] += 1

    def region_key(self, region: Region) -> int:
        return self.regions.setdefault(id(region), len(self.regions))

    def shadow(self, region: Region, granule: int) -> _Shadow:
        if region.space == "shared":
            found = region.race
            if found is None:
                found = region.race = _Shadow(-(-region.size // granule), self.per_block)
        else:
            found = self.seen.get(region.base)
            if found is None:
                found = self.seen[region.base] = _Shadow(-(-region.size // granule), 0)
        return found  # type: ignore[return-value]

    def piece(
        self,
        e: Env,
        step: Step,
        number: int,
        piece: Piece,
        width: int,
        writes: bool,
        strong: bool,
        value: np.ndarray | None,
    ) -> None:
        region = piece.region
        granule = self.granule[region.space]
        shadow = self.shadow(region, granule)
        ids = self.threads(e, piece)
        offsets = np.broadcast_to(piece.offsets, ids.shape)
        unchanged = None
        if value is not None and region.space in ("shared", "global"):
            current = region.view(width)[offsets // width]
            unchanged = np.broadcast_to(_equal(current, np.broadcast_to(value, ids.shape)), ids.shape)
        warp = ids // WARP
        for k in range(max(1, width // granule)):
            index = offsets // granule + k
            self.compare(e, step, shadow, region, ids, warp, index, offsets, writes, strong, unchanged)
            if writes:
                self.collide(step, shadow, region, ids, index, offsets, strong, value)
                shadow.writer[index] = ids + 1 + self.base
                shadow.write_clock[index] = self.clock[warp]
                shadow.write_epoch[index] = self.epoch[warp]
                shadow.write_step[index] = number
                shadow.write_strong[index] = strong
                if not strong or isinstance(step, Atomic):
                    shadow.reader[index] = 0
                    if shadow.reads is None:
                        shadow.other_reader[index] = 0
                    else:
                        shadow.reads[index] = 0
            if not writes:
                if shadow.reads is not None:
                    if not strong:
                        shadow.reads[index, warp % self.per_block] = self.clock[warp]
                else:
                    previous = shadow.reader[index]
                    other = previous - 1 - self.base
                    differs = (previous > 0) & (other // WARP != warp)
                    if differs.any():
                        shadow.other_reader[index[differs]] = previous[differs]
                        shadow.other_clock[index[differs]] = shadow.read_clock[index[differs]]
                shadow.reader[index] = ids + 1 + self.base
                shadow.read_clock[index] = self.clock[warp]
                shadow.read_epoch[index] = self.epoch[warp]
                shadow.read_step[index] = number
                shadow.read_strong[index] = strong

    def compare(
        self,
        e: Env,
        step: Step,
        shadow: _Shadow,
        region: Region,
        ids: np.ndarray,
        warp: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        writes: bool,
        strong: bool,
        unchanged: np.ndarray | None,
    ) -> None:
        """Reports accesses that race with the last write, and writes that race with reads."""
        racing = self.unordered(
            ids, warp, shadow.writer[index], shadow.write_clock[index], shadow.write_epoch[index], region
        )
        racing &= ~(shadow.write_strong[index] & strong)
        if writes and unchanged is not None:
            racing &= ~unchanged  # the same value again: nobody can tell
        if racing.any():
            self.report(step, shadow.writer, shadow.write_step, racing, ids, index, offsets, region, "written")
        if not writes:
            return
        racing = self.unordered(
            ids, warp, shadow.reader[index], shadow.read_clock[index], shadow.read_epoch[index], region
        )
        racing &= ~(shadow.read_strong[index] & strong)
        if shadow.reads is None:
            other = shadow.other_reader[index]
            racing |= self.unordered(ids, warp, other, shadow.other_clock[index], np.full(other.shape, -1), region)
        else:
            rows = shadow.reads[index]
            slot = warp // self.per_block * self.per_block
            columns = slot[:, None] + np.arange(self.per_block)
            known = self.known[warp[:, None], self.column(columns)]
            late = (rows > known) & (columns != warp[:, None])
            racing |= late.any(axis=1)
        if unchanged is not None:
            racing &= ~unchanged
        if racing.any():
            self.report(step, shadow.reader, shadow.read_step, racing, ids, index, offsets, region, "read")

    def unordered(
        self,
        ids: np.ndarray,
        warp: np.ndarray,
        who: np.ndarray,
        clock: np.ndarray,
        epoch: np.ndarray,
        region: Region,
    ) -> np.ndarray:
        """Where the earlier access of thread `who` (plus one) is not ordered before this one."""
        other = who - 1 - self.base
        present = who > 0
        older = present & (other < 0)  # a block of an earlier wave
        safe = np.clip(other, 0, None)
        other_warp = safe // WARP
        same = other_warp == warp
        known = self.known[warp, self.column(other_warp)]
        race = np.where(same, (safe != ids) & (epoch == self.epoch[warp]), clock > known) & present & ~older
        if region.space == "global" and older.any():
            race |= older & ~self.knows_older(warp)
        return race

    def knows_older(self, warp: np.ndarray) -> np.ndarray:
        """A warp that has acquired anything is taken to be ordered behind blocks of earlier waves."""
        if not self.released:
            return np.zeros(warp.shape, bool)
        return (self.known.max(axis=1) > 0)[warp]

    def collide(
        self,
        step: Step,
        shadow: _Shadow,
        region: Region,
        ids: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        strong: bool,
        value: np.ndarray | None,
    ) -> None:
        """Lanes of one instruction that write different values to the same place."""
        if strong or ids.size < 2 or value is None:
            return
        shadow.writer[index] = np.arange(ids.size, dtype=np.int32)
        winner = shadow.writer[index]
        lost = winner != np.arange(ids.size)
        if lost.any():
            values = np.broadcast_to(value, ids.shape)
            lost &= ~_equal(values, values[winner])
            if lost.any():
                lane = int(np.flatnonzero(lost)[0])
                rival = self.name(int(ids[winner[lane]]))
                self.add(
                    step,
                    ids[lost],
                    region,
                    int(offsets[lane]),
                    f"{rival} writes it with the same instruction",
                )

    # reports
    def name(self, thread: int) -> str:
        block, t = self.wave.coordinates(thread)
        return f"thread {t} of block {block}"

    def report(
        self,
        step: Step,
        who: np.ndarray,
        steps: np.ndarray,
        racing: np.ndarray,
        ids: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        region: Region,
        verb: str,
    ) -> None:
        lane = int(np.flatnonzero(racing)[0])
        other = int(who[index[lane]]) - 1 - self.base
        number = int(steps[index[lane]])
        line = self.steps[number].source.line if number < len(self.steps) else 0
        culprit = self.name(other) if 0 <= other < self.wave.threads else "a thread of another block"
        at = f" (PTX line {line})" if line else ""
        self.add(step, ids[racing], region, int(offsets[lane]), f"{verb} by {culprit}{at} without synchronisation")

    def add(self, step: Step, lanes: np.ndarray, region: Region, offset: int, text: str) -> None:
        wave = self.wave
        if region.space == "shared":
            offset %= wave.geometry.shared_stride
        name = region.name or region.space
        verb = "read" if isinstance(step, Load) else "write"
        message = f"{verb} at offset {offset} of {name}, {text}"
        wave.recorder.add(
            f"{region.space}-race", step.source, lanes, wave.coordinates, message,
            region.space, region.base + offset, region.name, offset,
        )  # fmt: skip


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == np.complex128:
        x, y = (np.ascontiguousarray(v).view(np.uint64).reshape(-1, 2) for v in (a, b))
        return (x == y).all(axis=1)
    return a == b


def _granule(program: Program, space: str) -> int:
    """The greatest size that divides every access to the space (generic accesses count for both)."""
    widths: list[int] = []
    for segment in program.segments:
        for step in segment.steps:
            match step:
                case Load(place=place, type=t, dsts=parts) | Store(place=place, type=t, srcs=parts):
                    if place.space in (space, ""):
                        widths.append(min(16, t.bytes * len(parts)))
                case Atomic(place=place, type=t, srcs=parts):
                    if place.space in (space, ""):
                        widths.append(t.bytes * len(parts))
                case Copy():
                    widths.append(4)
                case Mbarrier() if space == "shared":
                    widths.append(8)
                case MatrixMove() if space == "shared":
                    widths.append(16)
    return min(16, reduce(gcd, widths, 16))
