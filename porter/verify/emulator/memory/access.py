"""Loads, stores and copies of the numpy interpreter: address checks, bounds, alignment, initialisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Const, Load, MemoryOperand, Store
from porter.verify.emulator.decode.types import B64, TYPES, U32, PtxType
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter, putter
from porter.verify.emulator.memory.buffers import MemoryRegion
from porter.verify.emulator.memory.layout import (
    CLUSTER_SHIFT,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_BITS,
)

_ONES = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}
_ONES_16 = np.full(2, 0x0101010101010101, np.uint64).view(np.complex128)
_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}


class LanesKilled(Exception):
    """Some lanes did what cannot be done; the step is complete for the others. `lanes` are wave thread indices."""

    def __init__(self, lanes: np.ndarray):
        super().__init__()
        self.lanes = lanes


@dataclass(slots=True)
class Piece:
    """Accesses to one region. `positions` index the active lanes (None: all of them, or one address for all)."""

    region: MemoryRegion
    offsets: np.ndarray  # int64, from the start of region.data
    positions: np.ndarray | None


@dataclass(slots=True)
class Resolved:
    pieces: list[Piece]
    killed: list[np.ndarray]
    uniform: bool  # one address for all lanes

    def finish(self) -> None:
        if self.killed:
            raise LanesKilled(np.concatenate(self.killed))


def address_getter(place: MemoryOperand) -> Callable[[Env], np.ndarray]:
    """Addresses of the active lanes as uint64, offset included; one element if all lanes share it."""
    if place.base is None or isinstance(place.base, Const):
        base = place.base.value if isinstance(place.base, Const) else 0
        fixed = np.array([(base + place.offset) & (1 << 64) - 1], np.uint64)
        return lambda e: fixed
    get = getter(place.base, U32 if place.base.type.bits <= 32 else B64)  # type: ignore[union-attr]
    narrow = place.base.type.bits <= 32  # type: ignore[union-attr]
    if narrow:
        offset32 = np.array([place.offset & 0xFFFFFFFF], np.uint32)

        def from32(e: Env) -> np.ndarray:
            x = e.active(get(e))
            return (x + offset32 if place.offset else x).astype(np.uint64)

        return from32
    offset = np.array([place.offset & (1 << 64) - 1], np.uint64)
    if not place.offset:
        return lambda e: e.active(get(e))
    return lambda e: e.active(get(e)) + offset


class Resolver:
    """Finds the memory behind addresses of one instruction, reports and drops the bad ones."""

    __slots__ = ("instr", "place", "width", "write")

    def __init__(self, instr: Instr, place: MemoryOperand, width: int, write: bool):
        self.instr, self.place, self.width, self.write = instr, place, width, write

    def __call__(self, e: Env, address: np.ndarray) -> Resolved:
        space = self.place.space
        if space == "global":
            return self.in_global(e, address, None)
        if space in ("shared", "local", "param"):
            return self.in_window(e, space, address, None)
        return self.generic(e, address)

    # spaces
    def generic(self, e: Env, address: np.ndarray) -> Resolved:
        window = address >> np.uint64(WINDOW_BITS)
        first = int(window[0])
        table = {
            SHARED_WINDOW >> WINDOW_BITS: "shared",
            LOCAL_WINDOW >> WINDOW_BITS: "local",
            PARAM_WINDOW >> WINDOW_BITS: "param",
        }
        if (window == first).all() or not any((window == w).any() for w in table):
            space = table.get(first)
            if space is None:
                return self.in_global(e, address, None)
            return self.in_window(e, space, address & np.uint64(0xFFFFFFFF), None)
        result = Resolved([], [], False)
        rest = np.ones(address.size, bool)
        for w, space in table.items():
            here = window == w
            rest &= ~here
            if here.any():
                where = np.flatnonzero(here)
                part = self.in_window(e, space, address[where] & np.uint64(0xFFFFFFFF), where)
                result.pieces += part.pieces
                result.killed += part.killed
        where = np.flatnonzero(rest)
        if where.size:
            part = self.in_global(e, address[where], where)
            result.pieces += part.pieces
            result.killed += part.killed
        return result

    def in_global(self, e: Env, address: np.ndarray, positions: np.ndarray | None) -> Resolved:
        if e.wave.rank_of is not None:
            address = self.own_variables(e, address, positions)
        uniform = address.size == 1 and e.n != 1 and positions is None
        region, width = e.wave.space.hits.get(self), self.width
        if region is not None and region.size >= width:
            offsets = address - np.uint64(region.base)
            if (
                offsets.max() <= region.size - width
                and not (width > 1 and np.bitwise_or.reduce(offsets) & np.uint64(width - 1))
                and (region.writable or not self.write)
            ):
                return Resolved([Piece(region, offsets.view(np.int64), positions)], [], uniform)
        space = e.wave.space
        index = space.index_of(address)
        result = Resolved([], [], uniform)
        good = np.zeros(address.size, bool)
        first = index[0]
        for k in (first,) if (index == first).all() else np.unique(index):
            if k < 0:
                continue
            region = space.regions[k]
            here = index == k
            offsets = address - np.uint64(region.base)
            inside = here & (offsets < np.uint64(region.size)) & (offsets + np.uint64(width) <= np.uint64(region.size))
            if not inside.any():
                continue
            good |= inside
            bad = inside & ((offsets & np.uint64(width - 1)) != 0)
            if bad.any():
                self.report(e, "misaligned", bad, address, positions, region, result)
                inside &= ~bad
            if self.write and not region.writable and inside.any():
                self.report(e, "read-only-write", inside, address, positions, region, result)
                continue
            where = np.flatnonzero(inside)
            if not where.size:
                continue
            space.hits[self] = region
            if where.size == address.size:
                return Resolved([Piece(region, offsets.view(np.int64), positions)], result.killed, uniform)
            result.pieces.append(
                Piece(region, offsets[where].view(np.int64), where if positions is None else positions[where])
            )
        if not good.all():
            outside = ~good
            self.report(e, "out-of-bounds", outside, address, positions, None, result)
        return result

    def own_variables(self, e: Env, address: np.ndarray, positions: np.ndarray | None) -> np.ndarray:
        """Every rank has module variables of its own behind the addresses that the code holds."""
        first, span = GLOBAL_BASE, e.wave.space.module_span
        mine = (address >= np.uint64(first)) & (address < np.uint64(first + span))
        if not mine.any():
            return address
        assert e.wave.rank_of is not None
        rank = e.wave.rank_of[e.ids if positions is None else e.ids[positions]]
        return address + np.where(mine, rank * span, 0).astype(np.uint64)

    def in_window(self, e: Env, space: str, address: np.ndarray, positions: np.ndarray | None) -> Resolved:
        wave, g, width = e.wave, e.wave.geometry, self.width
        if space == "param":
            region, limit = wave.params, wave.param_size
        elif space == "shared":
            region, limit = wave.shared, g.shared_size
        else:
            region, limit = wave.local, g.local_stride
        rank = None
        if space == "shared" and int(address.max()) >> CLUSTER_SHIFT:
            rank = (address >> np.uint64(CLUSTER_SHIFT)).view(np.int64) - 1
            address = np.where(rank >= 0, address & np.uint64((1 << CLUSTER_SHIFT) - 1), address)
            beyond = rank >= g.cluster_blocks
            address = np.where(beyond, np.uint64(1 << 31), address)
        one = address.size == 1 and space == "param" and positions is None and wave.rank_of is None
        result = Resolved([], [], one)
        bad = address > np.uint64(max(limit - width, -1) if limit >= width else 0)
        if limit < width:
            bad = np.ones(address.size, bool)
        odd = (address & np.uint64(width - 1)) != 0
        where: np.ndarray | None = positions
        ids = e.ids if positions is None else e.ids[positions]
        if self.write and space == "param":
            self.report(e, "read-only-write", np.ones(address.size, bool), address, positions, region, result)
            return result
        offsets = address.view(np.int64)
        if bad.any() or odd.any():
            if address.size == 1 and ids.size != 1:
                address, bad, odd = (np.broadcast_to(x, (ids.size,)) for x in (address, bad, odd))
                result.uniform = False
            if bad.any():
                self.report(e, "out-of-bounds", bad, address, positions, region, result)
            odd = odd & ~bad
            if odd.any():
                self.report(e, "misaligned", odd, address, positions, region, result)
            keep = np.flatnonzero(~(bad | odd))
            if not keep.size:
                return result
            where = keep if positions is None else positions[keep]
            offsets, ids = address[keep].view(np.int64), ids[keep]
            rank = rank[keep] if rank is not None and rank.size > 1 else rank
        if space == "shared":
            base = wave.shared_base[ids]
            if rank is not None:
                slot = wave.slot_of[ids]
                target = np.where(rank >= 0, slot - slot % g.cluster_blocks + rank, slot)
                base = target * g.shared_stride
            offsets = offsets + base
        elif space == "local":
            offsets = offsets + wave.local_base[ids]
        elif wave.rank_of is not None:
            offsets = offsets + wave.rank_of[ids] * wave.param_stride
        result.pieces.append(Piece(region, offsets, where))
        return result

    # reports
    def report(
        self, e: Env, kind: str, bad: np.ndarray, address: np.ndarray, positions: np.ndarray | None,
        region: MemoryRegion | None, result: Resolved,
    ) -> None:  # fmt: skip
        """Records a violation of the lanes in `bad` (a mask over `address`) and marks them as killed."""
        if bad.size == 1 and e.n != 1 and positions is None:
            lanes, first = e.ids, int(address[0])
        else:
            where = np.flatnonzero(bad)
            first = int(address[where[0]])
            lanes = e.ids[where if positions is None else positions[where]]
        wave = e.wave
        result.killed.append(lanes)
        checks = wave.checks
        if (kind == "out-of-bounds" and not checks.bounds) or (kind == "misaligned" and not checks.alignment):
            return
        verb = "write" if self.write else "read"
        if region is None:
            region, offset = wave.space.nearest(first)
        else:
            offset = first - region.base
        name = region.name if region is not None else ""
        space = region.space if region is not None else "global"
        if kind == "out-of-bounds":
            if region is None:
                detail = "a null pointer" if first < 1 << 16 else "no buffer is near"
                if wave.space.multicast_at(first) is not None:
                    detail = "a multicast address, which only multimem instructions may access"
                message = f"{self.width}-byte {verb} of address {first:#x}: {detail}"
            else:
                size = {"shared": wave.geometry.shared_size, "local": wave.geometry.local_stride}.get(
                    space, region.size
                )
                message = f"{self.width}-byte {verb} at offset {offset} of {name or space} ({size} bytes)"
        elif kind == "misaligned":
            where_text = f"offset {offset} of {name or space}"
            message = f"{self.width}-byte {verb} at {where_text}: the address is not a multiple of {self.width}"
        else:
            message = f"{self.width}-byte write at offset {offset} of read-only {name or space}"
        wave.recorder.add(kind, self.instr, lanes, wave.coordinates, message, space, first, name, offset)


def report_uninitialised(e: Env, instr: Instr, piece: Piece, bad: np.ndarray, width: int) -> None:
    wave = e.wave
    if piece.positions is None and bad.size == 1 and e.n != 1:
        lanes = e.ids
    else:
        where = np.flatnonzero(bad)
        lanes = e.ids[where if piece.positions is None else piece.positions[where]]
    region = piece.region
    if region.space == "shared":
        lanes = lanes[~wave.tainted[wave.slot_of[lanes]]]
        if not lanes.size:
            return
    offset = int(piece.offsets[np.flatnonzero(bad)[0]])
    stride = {"shared": wave.geometry.shared_stride, "local": wave.geometry.local_stride}.get(region.space)
    local_offset = offset % stride if stride else offset
    name = region.name or region.space
    wave.recorder.add(
        "uninitialised-read", instr, lanes, wave.coordinates,
        f"{width}-byte read at offset {local_offset} of {name}, which was never written",
        region.space, region.base + local_offset, region.name, local_offset,
    )  # fmt: skip


def fetch(e: Env, instr: Instr, resolved: Resolved, width: int, check: bool = True) -> np.ndarray:
    """Reads `width` bytes for each active lane (raw dtype); lanes without memory get zero."""
    pieces = resolved.pieces
    if len(pieces) == 1 and pieces[0].positions is None:
        return _read(e, instr, pieces[0], width, check)
    dtype = TYPES[f"b{8 * width}"].raw
    out = np.zeros(e.n, dtype)
    for piece in pieces:
        out[piece.positions if piece.positions is not None else slice(None)] = _read(e, instr, piece, width, check)
    return out


def _read(e: Env, instr: Instr, piece: Piece, width: int, check: bool) -> np.ndarray:
    index = piece.offsets >> _SHIFT[width] if width > 1 else piece.offsets
    region = piece.region
    if region.shadow is not None and check and e.wave.checks.uninitialised:
        flags = region.shadow_view(width)[index]
        bad = (flags.view(np.uint64) != _ONES[8]).reshape(-1, 2).any(axis=1) if width == 16 else flags != _ONES[width]
        if bad.any():
            report_uninitialised(e, instr, piece, bad, width)
    return region.view(width)[index]


def deposit(e: Env, resolved: Resolved, width: int, value: np.ndarray) -> None:
    """Writes raw values (one per active lane, or one for all). Of several lanes at one address the last wins."""
    for piece in resolved.pieces:
        index = piece.offsets >> _SHIFT[width] if width > 1 else piece.offsets
        v = value
        if piece.positions is not None and v.size != 1:
            v = v[piece.positions]
        if index.size == 1 and v.size > 1:
            v = v[-1:]
        region = piece.region
        region.view(width)[index] = v
        if region.shadow is not None:
            region.shadow_view(width)[index] = _ONES_16[0] if width == 16 else _ONES[width]
    e.wave.memory_version += 1


def compile_load(step: Load) -> Runner:
    t, count = step.type, len(step.dsts)
    part = t.bytes
    total = part * count
    width = min(total, 16)
    loads = total // width
    places = [MemoryOperand(step.place.space, step.place.base, step.place.offset + k * width) for k in range(loads)]
    addresses = [address_getter(p) for p in places]
    resolver = Resolver(step.source, step.place, width, False)
    whole = Resolver(step.source, step.place, total, False) if loads > 1 else None
    puts = [putter(d, _raw_of(t)) for d in step.dsts]
    per = count // loads
    dtype = t.raw

    def run(e: Env) -> None:
        killed = []
        if whole is not None:  # v8.b32, v4.b64: the 32 bytes are aligned as a whole
            killed = whole(e, addresses[0](e)).killed
        for k in range(loads):
            resolved = (
                resolver(e, addresses[k](e)) if whole is None or not killed else _silent(resolver, e, addresses[k](e))
            )
            if e.wave.observers:
                e.wave.observe(e, step, resolved, width)
            value = fetch(e, step.source, resolved, width)
            killed += resolved.killed
            if per == 1:
                puts[k](e, e.spread(value))
            else:
                parts = value.view(dtype).reshape(-1, per)
                for j in range(per):
                    puts[k * per + j](e, e.spread(np.ascontiguousarray(parts[:, j])))
        if killed:
            raise LanesKilled(np.unique(np.concatenate(killed)))

    return run


def _silent(resolver: Resolver, e: Env, address: np.ndarray) -> Resolved:
    """Second half of an access whose first half was reported already."""
    recorder = e.wave.recorder
    kept = dict(recorder.found)
    resolved = resolver(e, address)
    recorder.found = kept
    return resolved


def _raw_of(t: PtxType) -> PtxType:
    if t.kind in "fhx":
        return TYPES[f"b{t.bits}"]
    return t


def compile_store(step: Store, resolver: Resolver | None = None) -> Runner:
    t, count = step.type, len(step.srcs)
    part = t.bytes
    total = part * count
    width = min(total, 16)
    stores = total // width
    raw = TYPES[f"b{t.bits}"]
    places = [MemoryOperand(step.place.space, step.place.base, step.place.offset + k * width) for k in range(stores)]
    addresses = [address_getter(p) for p in places]
    resolver = resolver or Resolver(step.source, step.place, width, True)
    whole = Resolver(step.source, step.place, total, True) if stores > 1 else None
    gets = [getter(s, raw) for s in step.srcs]
    per = count // stores
    out = TYPES[f"b{8 * width}"].raw

    def run(e: Env) -> None:
        killed = []
        if whole is not None:
            killed = whole(e, addresses[0](e)).killed
        for k in range(stores):
            resolved = (
                resolver(e, addresses[k](e)) if whole is None or not killed else _silent(resolver, e, addresses[k](e))
            )
            killed += resolved.killed
            if per == 1:
                value = e.active(gets[k](e))
            else:
                parts = [e.active(g(e)) for g in gets[k * per : (k + 1) * per]]
                n = max(p.size for p in parts)
                both = np.empty((n, per), raw.raw)
                for j, p in enumerate(parts):
                    both[:, j] = p
                value = both.view(out).reshape(-1)
            if e.wave.observers:
                e.wave.observe(e, step, resolved, width, value)
            deposit(e, resolved, width, value)
        if killed:
            raise LanesKilled(np.unique(np.concatenate(killed)))

    return run
