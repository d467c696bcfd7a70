"""multimem.ld_reduce, st and red: one access to the same place of every replica behind a multicast address.

Replicas are combined in rank order; what order a switch takes is not specified.
"""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Atomic, Load, MemoryOperand, Multimem, Store
from porter.verify.emulator.decode.types import TYPES, PtxType
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, putter
from porter.verify.emulator.memory.access import Piece, Resolved, Resolver, address_getter, compile_store, fetch
from porter.verify.emulator.memory.atomics import combiner, compile_atomic
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra


class Replica(Resolver):
    """Finds replica number `number` behind multicast addresses. Only the first one reports bad addresses."""

    __slots__ = ("number",)

    def __init__(self, instr: Instr, place: MemoryOperand, width: int, write: bool, number: int):
        super().__init__(instr, place, width, write)
        self.number = number

    def __call__(self, e: Env, address: np.ndarray) -> Resolved:
        address = e.each(address)
        result = Resolved([], [], False)
        rest = np.ones(address.size, bool)
        for start, size, regions in e.wave.space.multicasts:
            offsets = address - np.uint64(start)
            inside = (offsets < np.uint64(size)) & (offsets + np.uint64(self.width) <= np.uint64(size))
            odd = inside & ((offsets & np.uint64(self.width - 1)) != 0)
            rest &= ~inside
            good = inside & ~odd
            if self.number >= len(regions):
                continue
            region = regions[self.number]
            if odd.any() and not self.number:
                self.report(e, "misaligned", odd, address, None, region, result)
            if self.write and not region.writable and good.any():
                self.report(e, "read-only-write", good, address, None, region, result)
                continue
            where = np.flatnonzero(good)
            if where.size:
                result.pieces.append(Piece(region, offsets[where].view(np.int64), where))
        if rest.any() and not self.number:
            self.report(e, "out-of-bounds", rest, address, None, None, result)
        return result


def replicas(e: Env) -> int:
    return max((len(regions) for _, _, regions in e.wave.space.multicasts), default=1)


def _sum_wide(t: PtxType, parts: list[np.ndarray]) -> np.ndarray:
    """The sum of half values in f32, rounded once."""
    halves = [p.view(np.uint16) for p in parts]
    if t.name.startswith("bf16"):
        total = np.zeros(halves[0].size, np.float32)
        for h in halves:
            total = total + (h.astype(np.uint32) << 16).view(np.float32)
        bits = total.view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        out = np.where(np.isnan(total), np.uint16(0x7FFF), rounded)
    else:
        total = np.zeros(halves[0].size, np.float32)
        for h in halves:
            total = total + h.view(np.float16).astype(np.float32)
        out = np.where(np.isnan(total), np.uint16(0x7FFF), total.astype(np.float16).view(np.uint16))
    return out.astype(np.uint16).view(parts[0].dtype)


def compile_multimem(step: Multimem, algebra: NumpyAlgebra) -> Runner:
    access = step.access
    t = access.type
    count = len(access.dsts) if isinstance(access, Load) else len(access.srcs)
    width = t.bytes * count
    runners: dict[int, Runner] = {}

    def runner(number: int) -> Runner:
        """The access to one replica."""
        if number not in runners:
            resolver = Replica(step.source, access.place, width, True, number)
            assert isinstance(access, (Store, Atomic))
            made = compile_store(access, resolver) if isinstance(access, Store) else None
            runners[number] = made or compile_atomic(access, algebra, resolver)  # type: ignore[arg-type]
        return runners[number]

    if not isinstance(access, Load):
        runner(0)

        def write(e: Env) -> None:
            for number in reversed(range(replicas(e))):  # the first one, which reports, ends lanes last
                runner(number)(e)

        return write
    half = t.kind == "h" or t.name in ("f16x2", "bf16x2")
    if step.wide and not (half and step.op == "add"):
        raise UnsupportedPtx(step.source.opcode, step.source.line, "accumulation precision")
    try:
        combine = combiner(step.op, t, algebra)
    except KeyError as error:
        raise UnsupportedPtx(step.source.opcode, step.source.line) from error
    address_of = address_getter(access.place)
    resolvers: list[Replica] = []
    raw = TYPES[f"b{t.bits}"]
    puts = [putter(d, raw if t.kind in "fhxb" else t) for d in access.dsts]

    def read(e: Env) -> None:
        address = e.each(address_of(e))
        while len(resolvers) < replicas(e):
            resolvers.append(Replica(step.source, access.place, width, False, len(resolvers)))
        seen: list[np.ndarray] = []
        killed: list[np.ndarray] = []
        total: np.ndarray | None = None
        for resolver in resolvers[: replicas(e)]:
            resolved = resolver(e, address)
            killed += resolved.killed
            if e.wave.observers:
                e.wave.observe(e, access, resolved, width)
            value = np.ascontiguousarray(fetch(e, step.source, resolved, width)).view(raw.raw)
            if step.wide:
                seen.append(value)
            else:
                total = value if total is None else combine(total, value)
        result = _sum_wide(t, seen) if step.wide else total
        assert result is not None
        parts = result.reshape(-1, count)
        for k, put in enumerate(puts):
            put(e, e.spread(np.ascontiguousarray(parts[:, k])))
        Resolved([], killed, False).finish()

    return read
