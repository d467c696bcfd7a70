"""Data races in shared and global memory, by the happens-before of ordering.py.

Two accesses to the same bytes race when one of them writes, neither is ordered behind the other, and they are not both
strong (atomic, volatile, relaxed, acquire, release) with scopes that include each other. An instruction that
synchronises a warp separates the accesses of its lanes. Volatile accesses of lanes of one warp are no race, but they
rely on the lanes running in step (`lockstep`). What `ld.global.nc` reads, nobody may write
(`stale-read`). Of the readers since the last write the last two warps are remembered for global memory, all warps for
shared memory.
"""

from __future__ import annotations

import mmap
from functools import reduce
from math import gcd

import numpy as np

from porter.verify.emulator.checks.ordering import GPU, Order, level_of
from porter.verify.emulator.decode.program import (
    Atomic,
    Copy,
    Load,
    MatrixMove,
    Mbarrier,
    Multimem,
    Program,
    Step,
    Store,
)
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.wave import WARP, Wave
from porter.verify.emulator.memory.access import Piece, Resolved
from porter.verify.emulator.memory.buffers import MemoryRegion

LAZY = 1 << 28  # bytes: more than this is rows far apart, of which few are touched


def lazily_zeroed(n: int, dtype: type) -> np.ndarray:
    """Zeroes; large ones take no room before they are written to, and are not refused for their size."""
    size = n * np.dtype(dtype).itemsize
    if size < LAZY:
        return np.zeros(n, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype)


class Shadow:
    """Who wrote and read each granule of a region last. Thread numbers are stored plus one, so that 0 means nobody."""

    def __init__(self, granules: int, warps: int):
        self.writer = lazily_zeroed(granules, np.int32)
        self.write_clock = lazily_zeroed(granules, np.int32)
        self.write_epoch = lazily_zeroed(granules, np.int32)
        self.write_step = lazily_zeroed(granules, np.int16)
        self.write_strong = lazily_zeroed(granules, np.int8)  # the scope of a strong access, 0 for a weak one
        self.reader = lazily_zeroed(granules, np.int32)
        self.read_clock = lazily_zeroed(granules, np.int32)
        self.read_epoch = lazily_zeroed(granules, np.int32)
        self.read_step = lazily_zeroed(granules, np.int16)
        self.read_strong = lazily_zeroed(granules, np.int8)
        # clocks of every warp's last plain read (shared memory), or the reader before the last (global memory)
        self.reads = np.zeros((granules, warps), np.int32) if warps else None
        self.other_reader = lazily_zeroed(0 if warps else granules, np.int32)
        self.other_clock = lazily_zeroed(0 if warps else granules, np.int32)
        self.constant: np.ndarray | None = None  # granules that ld.global.nc has read

    def clear(self, part: slice) -> None:
        self.writer[part] = 0
        self.reader[part] = 0
        if self.reads is not None:
            self.reads[part] = 0


class RaceChecker:
    """Observes one wave. `seen` carries the shadows of global memory and the numbering of warps from wave to wave."""

    def __init__(self, program: Program, wave: Wave, shared: bool, global_: bool, seen: dict[object, object]):
        self.wave, self.shared, self.global_ = wave, shared, global_
        self.per_block = wave.geometry.warps
        self.order = Order(program, wave, global_ or wave.geometry.cluster_blocks > 1)
        self.steps: list[Step] = []
        self.step_number: dict[int, int] = {}
        self.seen = seen
        self.base = int(seen.get("threads", 0))  # type: ignore[call-overload]
        seen["threads"] = self.base + wave.threads
        self.regions: dict[int, int] = {}
        self.granule = {"shared": granule_of(program, "shared"), "global": granule_of(program, "global")}
        wave.observers.append(self.access)
        wave.sync_observers.append(self.sync)

    def sync(self, kind: str, lanes: np.ndarray, id_: int) -> None:
        if kind == "dependency":
            return
        warps = np.unique(lanes // WARP)
        if kind == "warp":
            self.order.warp_barrier(warps)
        elif kind == "restart":  # other blocks have taken these slots: their shared memory is new
            shadow = self.wave.shared.race
            if isinstance(shadow, Shadow):
                stride = self.wave.geometry.shared_stride // self.granule["shared"]
                for slot in np.unique(warps // self.per_block):
                    shadow.clear(slice(slot * stride, (slot + 1) * stride))
            self.order.restart(warps)
        elif kind == "fence":
            self.order.fence(warps, id_)
        else:
            self.order.barrier(kind, warps, id_)

    # accesses
    def access(self, e: Env, step: Step, resolved: Resolved, width: int, value: np.ndarray | None = None) -> None:
        if isinstance(step, MatrixMove):
            writes = step.kind == "stmatrix"
        elif isinstance(step, Mbarrier):
            writes = step.kind not in ("test_wait", "try_wait")
        else:
            writes = isinstance(step, (Store, Copy, Atomic))
        strong = level_of(step)
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
                    ids = self.threads(e, piece)
                    offsets = np.broadcast_to(piece.offsets, ids.shape)
                    shared = piece.region.space == "shared"
                    self.order.strong(step, self.region_key(piece.region), offsets, ids, writes, shared)

    def threads(self, e: Env, piece: Piece) -> np.ndarray:
        return e.ids if piece.positions is None else e.ids[piece.positions]

    def region_key(self, region: MemoryRegion) -> int:
        return self.regions.setdefault(id(region), len(self.regions))

    def shadow(self, region: MemoryRegion, granule: int) -> Shadow:
        if region.space == "shared":
            found = region.race
            if found is None:
                found = region.race = Shadow(-(-region.size // granule), self.per_block)
        else:
            found = self.seen.get(region.base)
            if found is None:
                found = self.seen[region.base] = Shadow(-(-region.size // granule), 0)
        return found  # type: ignore[return-value]

    def piece(
        self,
        e: Env,
        step: Step,
        number: int,
        piece: Piece,
        width: int,
        writes: bool,
        strong: int,
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
            if region.space == "global" and region.writable:
                self.incoherent(step, shadow, region, ids, index, offsets, writes)
            if writes:
                self.collide(step, shadow, region, ids, index, offsets, strong, value)
                shadow.writer[index] = ids + 1 + self.base
                shadow.write_clock[index] = self.order.clock[warp]
                shadow.write_epoch[index] = self.order.epoch[warp]
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
                        shadow.reads[index, warp % self.per_block] = self.order.clock[warp]
                else:
                    previous = shadow.reader[index]
                    other = previous - 1 - self.base
                    differs = (previous > 0) & (other // WARP != warp) & (shadow.read_strong[index] == 0)
                    if differs.any():
                        shadow.other_reader[index[differs]] = previous[differs]
                        shadow.other_clock[index[differs]] = shadow.read_clock[index[differs]]
                shadow.reader[index] = ids + 1 + self.base
                shadow.read_clock[index] = self.order.clock[warp]
                shadow.read_epoch[index] = self.order.epoch[warp]
                shadow.read_step[index] = number
                shadow.read_strong[index] = strong

    def compare(
        self,
        e: Env,
        step: Step,
        shadow: Shadow,
        region: MemoryRegion,
        ids: np.ndarray,
        warp: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        writes: bool,
        strong: int,
        unchanged: np.ndarray | None,
    ) -> None:
        """Reports accesses that race with the last write, and writes that race with reads."""
        racing = self.unordered(
            ids, warp, shadow.writer[index], shadow.write_clock[index], shadow.write_epoch[index], region
        )
        strongly = self.both_strong(shadow.write_strong[index], strong, warp, shadow.writer[index], region)
        self.in_step(step, racing & strongly, ids, shadow.writer[index], shadow.write_step[index], offsets, region)
        racing &= ~strongly
        if writes and unchanged is not None:
            racing &= ~unchanged  # the same value again: nobody can tell
        if racing.any():
            narrow = strong and shadow.write_strong[index]
            sides = (shadow.writer, shadow.write_step, shadow.write_clock)
            self.report(step, sides, racing, ids, index, offsets, region, "written", narrow)
        if not writes:
            return
        racing = self.unordered(
            ids, warp, shadow.reader[index], shadow.read_clock[index], shadow.read_epoch[index], region
        )
        strongly = self.both_strong(shadow.read_strong[index], strong, warp, shadow.reader[index], region)
        self.in_step(step, racing & strongly, ids, shadow.reader[index], shadow.read_step[index], offsets, region)
        racing &= ~strongly
        if shadow.reads is None:
            other = shadow.other_reader[index]
            racing |= self.unordered(ids, warp, other, shadow.other_clock[index], np.full(other.shape, -1), region)
        else:
            rows = shadow.reads[index]
            slot = warp // self.per_block * self.per_block
            columns = slot[:, None] + np.arange(self.per_block)
            known = self.order.known[warp[:, None], self.order.column(columns)]
            late = (rows > known) & (columns != warp[:, None])
            racing |= late.any(axis=1)
        if unchanged is not None:
            racing &= ~unchanged
        if racing.any():
            narrow = strong and shadow.read_strong[index]
            sides = (shadow.reader, shadow.read_step, shadow.read_clock)
            self.report(step, sides, racing, ids, index, offsets, region, "read", narrow)

    def in_step(
        self,
        step: Step,
        strongly: np.ndarray,
        ids: np.ndarray,
        who: np.ndarray,
        steps: np.ndarray,
        offsets: np.ndarray,
        region: MemoryRegion,
    ) -> None:
        """Reports volatile accesses by two lanes of a warp of which nothing but the warp's step tells the order."""
        if getattr(step, "order", "") != "volatile" or not strongly.any():
            return
        other = who - 1 - self.base
        volatile = np.array([getattr(s, "order", "") == "volatile" for s in self.steps])
        lanes = strongly & (other // WARP == ids // WARP) & volatile[steps]
        if lanes.any():
            lane = int(np.flatnonzero(lanes)[0])
            line = self.steps[int(steps[lane])].source.line
            text = (
                f"which {self.name(int(other[lane]))} of the same warp accesses at PTX line {line}: volatile does not "
                "make lanes run in step, __syncwarp() does"
            )
            self.add("lockstep", step, ids[lanes], region, int(offsets[lane]), text)

    def incoherent(
        self,
        step: Step,
        shadow: Shadow,
        region: MemoryRegion,
        ids: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        writes: bool,
    ) -> None:
        """Reports memory that is read by ld.global.nc and written in one launch, whichever comes first."""
        if writes:
            if shadow.constant is None:
                return
            bad = shadow.constant[index]
            text = "which ld.global.nc has read in this launch"
        else:
            if not (isinstance(step, Load) and "nc" in step.source.mods):
                return
            if shadow.constant is None:
                shadow.constant = lazily_zeroed(shadow.writer.size, np.bool_)
            shadow.constant[index] = True
            bad = shadow.writer[index] > 0
            text = "by ld.global.nc, which this launch writes: the load may give what was there before"
        if bad.any():
            lanes = np.broadcast_to(ids, bad.shape)[bad]
            self.add("stale-read", step, lanes, region, int(offsets[int(np.flatnonzero(bad)[0])]), text)

    def unordered(
        self,
        ids: np.ndarray,
        warp: np.ndarray,
        who: np.ndarray,
        clock: np.ndarray,
        epoch: np.ndarray,
        region: MemoryRegion,
    ) -> np.ndarray:
        """Where the earlier access of thread `who` (plus one) is not ordered before this one."""
        other = who - 1 - self.base
        present = who > 0
        older = present & (other < 0)  # a block of an earlier wave
        safe = np.clip(other, 0, None)
        other_warp = safe // WARP
        same = other_warp == warp
        known = self.order.known[warp, self.order.column(other_warp)]
        race = np.where(same, (safe != ids) & (epoch == self.order.epoch[warp]), clock > known) & present & ~older
        if region.space == "global" and older.any():
            race |= older & ~self.knows_older(warp)
        return race

    def knows_older(self, warp: np.ndarray) -> np.ndarray:
        """A warp that has acquired anything is taken to be ordered behind blocks of earlier waves."""
        if not self.order.released:
            return np.zeros(warp.shape, bool)
        return (self.order.known.max(axis=1) > 0)[warp]

    def both_strong(
        self, levels: np.ndarray, level: int, warp: np.ndarray, who: np.ndarray, region: MemoryRegion
    ) -> np.ndarray:
        """Where an access of scope `level` and an earlier one of thread `who` (plus one) are strong to each other."""
        if not level:
            return np.zeros(warp.shape, bool)
        if region.space == "shared":
            return levels > 0
        common = np.minimum(levels, level)
        other = who - 1 - self.base
        older = other < 0  # a block of an earlier wave
        return np.where(
            older, common >= GPU, self.order.include_each_other(common, warp, np.clip(other, 0, None) // WARP)
        )

    def collide(
        self,
        step: Step,
        shadow: Shadow,
        region: MemoryRegion,
        ids: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        strong: int,
        value: np.ndarray | None,
    ) -> None:
        """Lanes of one instruction that write different values to the same place, or with too narrow a scope."""
        if ids.size < 2 or (strong >= GPU and self.wave.geometry.ranks == 1):
            return
        if strong and region.space == "global":
            _, places, first = np.unique(index, return_index=True, return_inverse=True)
            others = ids[places[first]]
            level = np.full(ids.size, strong)
            apart = ~self.order.include_each_other(level, ids // WARP, others // WARP)
            if apart.any():
                lane = int(np.flatnonzero(apart)[0])
                text = f"{self.name(int(others[lane]))} writes it with the same instruction, whose scope leaves it out"
                self.add("global-race", step, ids[apart], region, int(offsets[lane]), text)
        if strong or value is None:
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
                    f"{region.space}-race",
                    step,
                    ids[lost],
                    region,
                    int(offsets[lane]),
                    f"{rival} writes it with the same instruction",
                )

    # reports
    def name(self, thread: int) -> str:
        block, t, rank = self.wave.coordinates(thread)
        return f"thread {t} of block {block}" + ("" if rank is None else f" of rank {rank}")

    def report(
        self,
        step: Step,
        sides: tuple[np.ndarray, np.ndarray, np.ndarray],
        racing: np.ndarray,
        ids: np.ndarray,
        index: np.ndarray,
        offsets: np.ndarray,
        region: MemoryRegion,
        verb: str,
        narrow: np.ndarray | int,
    ) -> None:
        """`sides`: thread, instruction and clock of each granule's last access. `narrow`: where both are strong."""
        who, steps, clocks = (a[index] for a in sides)
        other = who - 1 - self.base
        heard = racing & (other >= 0)
        heard &= self.order.has_heard(ids // WARP, np.clip(other, 0, None) // WARP, clocks)
        for mask, kind in ((racing & ~heard, f"{region.space}-race"), (heard, "missing-fence")):
            if not mask.any():
                continue
            lane = int(np.flatnonzero(mask)[0])
            line = self.steps[int(steps[lane])].source.line if steps[lane] < len(self.steps) else 0
            thread = int(other[lane])
            culprit = self.name(thread) if 0 <= thread < self.wave.threads else "a thread of another block"
            at = f" (PTX line {line})" if line else ""
            text = f"{verb} by {culprit}{at} without synchronisation"
            if kind == "missing-fence":
                text = (
                    f"{verb} by {culprit}{at}: a flag passed between them, without a release, an acquire or the scope"
                )
            elif np.broadcast_to(narrow, racing.shape)[lane]:
                text += ": both are strong, but the scope of one does not include the other"
            self.add(kind, step, ids[mask], region, int(offsets[lane]), text)

    def add(self, kind: str, step: Step, lanes: np.ndarray, region: MemoryRegion, offset: int, text: str) -> None:
        wave = self.wave
        if region.space == "shared":
            offset %= wave.geometry.shared_stride
        name = region.name or region.space
        verb = "read" if isinstance(step, Load) else "write"
        message = f"{verb} at offset {offset} of {name}, {text}"
        wave.recorder.add(
            kind, step.source, lanes, wave.coordinates, message,
            region.space, region.base + offset, region.name, offset,
        )  # fmt: skip


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == np.complex128:
        x, y = (np.ascontiguousarray(v).view(np.uint64).reshape(-1, 2) for v in (a, b))
        return (x == y).all(axis=1)
    return a == b


def granule_of(program: Program, space: str) -> int:
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
                case Multimem(access=access) if space == "global":
                    widths.append(access.type.bytes)
                case Copy():
                    widths.append(4)
                case Mbarrier() if space == "shared":
                    widths.append(8)
                case MatrixMove() if space == "shared":
                    widths.append(16)
    return min(16, reduce(gcd, widths, 16))
