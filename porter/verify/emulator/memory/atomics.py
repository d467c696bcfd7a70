"""atom and red of the numpy interpreter: lanes that meet at one address take turns, in lane (or a seeded) order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from porter.verify.emulator.checks.sums import ROUNDING
from porter.verify.emulator.decode.program import Atomic
from porter.verify.emulator.decode.types import TYPES, PtxType
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.machine.environment import Env, recast
from porter.verify.emulator.machine.evaluate import Runner, getter, putter
from porter.verify.emulator.memory.access import Piece, Resolver, address_getter, report_uninitialised
from porter.verify.emulator.ops import half
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
_SHIFT = {2: 1, 4: 2, 8: 3, 16: 4}
_ACCUMULATE: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def combiner(op: str, t: PtxType, b: NumpyAlgebra) -> Combine:
    """new = combine(old, operand), on raw values."""
    raw, dtype = t.raw, t.dtype
    signed = np.dtype(f"i{raw.itemsize}") if t.bits <= 64 else raw
    if op == "exch":
        return lambda old, x: x
    if t.kind == "x" and t.name not in ("f16x2", "bf16x2"):
        raise KeyError(op)  # fp8 has multimem only, where the rounding of a sum of more than two is not specified
    if op in _ACCUMULATE:
        return _ACCUMULATE[op]
    if op == "inc":
        return lambda old, x: np.where(old >= x, raw.type(0), old + raw.type(1))
    if op == "dec":
        return lambda old, x: np.where((old == 0) | (old > x), x, old - raw.type(1))
    if op == "add":
        if t.name == "f32":
            return lambda old, x: recast(old.view(dtype) + x.view(dtype), raw)
        if t.name == "f64":
            return lambda old, x: recast(old.view(dtype) + x.view(dtype), raw)
        if t.kind == "h" or t.name in ("f16x2", "bf16x2"):
            fn = _half_add(t)
            return lambda old, x: fn(b, old, x)
        return np.add
    if op in ("min", "max"):
        if t.name in ("f32", "f64"):
            f = np.fmin if op == "min" else np.fmax
            return lambda old, x: recast(f(old.view(dtype), x.view(dtype)), raw)
        f2 = np.minimum if op == "min" else np.maximum
        if t.signed:
            return lambda old, x: f2(old.view(signed), x.view(signed)).view(raw)
        if t.kind in "ub":
            return f2
        from porter.verify.emulator.decode.ir import Instr
        from porter.verify.emulator.ops import resolve

        fn2 = resolve(Instr(f"{op}.{t.name}", (), 0))
        assert fn2 is not None
        return lambda old, x: fn2.fn(b, old, x)
    raise KeyError(op)


def flushed(x: np.ndarray) -> np.ndarray:
    """f32 bits with subnormals as zeros of their sign."""
    return np.where((x & np.uint32(0x7F800000)) == 0, x & np.uint32(0x80000000), x)


def _normal(x: np.ndarray) -> bool:
    return np.array_equal(flushed(x), x)


def flushing_add(old: np.ndarray, x: np.ndarray) -> np.ndarray:
    """f32 addition of atom and red in global memory, on raw bits: it flushes subnormal inputs and results, while that
    in shared memory keeps them (PTX ISA, atom and red). A sum of normal numbers is exact where it is subnormal."""
    return flushed(recast(flushed(old).view(np.float32) + flushed(x).view(np.float32), np.dtype(np.uint32)))


def _half_add(t: PtxType) -> Callable[..., Any]:
    from porter.verify.emulator.decode.ir import Instr
    from porter.verify.emulator.ops.table import Mods

    return half.arithmetic(Mods(Instr(f"add.{t.name}", (), 0)), "add", "rn").fn


def _sequential_ufunc(op: str, t: PtxType) -> tuple[np.ufunc, np.dtype] | None:
    """A ufunc whose accumulate gives the running value, for many lanes at one address."""
    signed = np.dtype(f"i{t.raw.itemsize}") if t.bits <= 64 else t.raw
    if op in _ACCUMULATE:
        return _ACCUMULATE[op], t.raw
    if op == "add" and (t.kind in "us" or t.name in ("f32", "f64")):
        return np.add, t.dtype
    if op in ("min", "max") and t.kind in "us":
        return (np.minimum if op == "min" else np.maximum), signed if t.signed else t.raw
    return None


def run_atomic(
    region_view: np.ndarray,
    index: np.ndarray,
    operand: np.ndarray,
    compare: np.ndarray | None,
    combine: Combine | None,
    fast: tuple[np.ufunc, np.dtype] | None,
) -> np.ndarray:
    """Applies the operation lane by lane; returns what each lane read. `index` has one element per lane."""
    n = index.size
    old = np.empty(n, region_view.dtype)
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    starts = np.flatnonzero(np.r_[True, sorted_index[1:] != sorted_index[:-1]])
    lengths = np.diff(np.r_[starts, n])
    longest = int(lengths.max())
    if fast is not None and longest > 8 and starts.size < longest * 4:
        ufunc, dtype = fast
        for start, length in zip(starts, lengths, strict=True):
            where = order[start : start + length]
            address = sorted_index[start]
            chain = np.empty(length + 1, region_view.dtype)
            chain[0] = region_view[address]
            chain[1:] = operand[where]
            running = recast(ufunc.accumulate(chain.view(dtype), dtype=dtype), region_view.dtype)
            if combine is flushing_add and not (_normal(chain) and _normal(running)):
                for k in range(length):
                    running[k + 1 : k + 2] = flushing_add(running[k : k + 1], chain[k + 1 : k + 2])
            old[where] = running[:-1]
            region_view[address] = running[-1]
        return old
    if compare is not None and longest > 32 and longest * 4 > n:
        # nearly all lanes at one address: plain Python is faster than one round per lane
        memory: dict[int, Any] = {int(a): region_view[a] for a in sorted_index[starts]}
        for i in order:
            a = int(index[i])
            old[i] = memory[a]
            if memory[a] == compare[i]:
                memory[a] = operand[i]
        for a, value in memory.items():
            region_view[a] = value
        return old
    for turn in range(longest):
        pick = starts[lengths > turn] + turn
        where = order[pick]
        address = sorted_index[pick]
        current = region_view[address]
        old[where] = current
        if compare is not None:
            new = np.where(_same(current, compare[where]), operand[where], current)
        else:
            assert combine is not None
            new = combine(current, operand[where])
        region_view[address] = new
    return old


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == np.complex128:
        return (
            np.ascontiguousarray(a).view(np.uint64).reshape(-1, 2)
            == np.ascontiguousarray(b).view(np.uint64).reshape(-1, 2)
        ).all(axis=1)
    return a == b


def compile_atomic(step: Atomic, b: NumpyAlgebra, resolver: Resolver | None = None) -> Runner:
    t = step.type
    raw_type = TYPES[f"b{t.bits}"]
    width, count = t.bytes, len(step.srcs)
    if width == 1:
        raise UnsupportedPtx(step.source.opcode, step.source.line)
    if t.bits == 128 and step.op not in ("exch", "cas"):
        raise UnsupportedPtx(step.source.opcode, step.source.line)
    address_of = address_getter(step.place)
    resolver = resolver or Resolver(step.source, step.place, width * count, True)
    gets = [getter(s, raw_type) for s in step.srcs]
    compare_get = getter(step.compare, raw_type) if step.compare is not None else None
    puts = [putter(d, raw_type if t.kind in "fhxb" else t) for d in step.dsts]
    try:
        combine = combiner(step.op, t, b) if compare_get is None else None
    except KeyError as error:
        raise UnsupportedPtx(step.source.opcode, step.source.line) from error
    fast = _sequential_ufunc(step.op, t)
    flushes = step.op == "add" and t.name == "f32" and step.source.base != "multimem"
    adds_floats = step.op == "add" and t.name in ROUNDING
    ones = (np.uint64(0x0101010101010101) >> np.uint64(64 - 8 * width)) if width <= 8 else None

    def run(e: Env) -> None:
        wave = e.wave
        address = e.each(address_of(e))
        resolved = resolver(e, address)
        if wave.observers:
            wave.observe(e, step, resolved, width * count, None)
        values = [e.full(g(e)) for g in gets]
        compare = e.full(compare_get(e)) if compare_get is not None else None
        results = [np.zeros(e.n, raw_type.raw) for _ in range(count)]
        for piece in resolved.pieces:
            _piece(e, piece, values, compare, results)
        for put, result in zip(puts, results, strict=False):
            put(e, e.spread(result))
        resolved.finish()

    def _piece(
        e: Env, piece: Piece, values: list[np.ndarray], compare: np.ndarray | None, results: list[np.ndarray]
    ) -> None:
        wave, region = e.wave, piece.region
        where = piece.positions
        combined = flushing_add if flushes and region.space == "global" else combine
        for k in range(count):
            index = (piece.offsets >> _SHIFT[width]) + k
            view = region.view(width)
            operand = values[k] if where is None else values[k][where]
            if adds_floats and wave.space.sums is not None:
                wave.space.sums.add(region, index, operand, t)
            expected = compare if compare is None or where is None else compare[where]
            if region.shadow is not None:
                if wave.checks.uninitialised and width <= 8:
                    bad = region.shadow_view(width)[index] != ones
                    if bad.any() and step.op != "exch":
                        report_uninitialised(e, step.source, Piece(region, piece.offsets, where), bad, width)
                region.shadow[(index[:, None] * width + np.arange(width)).reshape(-1)] = 1
            order = wave.lane_order(index.size)
            if order is not None:
                got = np.empty_like(operand)
                got[order] = run_atomic(
                    view,
                    index[order],
                    operand[order],
                    None if expected is None else expected[order],
                    combined,
                    fast,
                )
            else:
                got = run_atomic(view, index, operand, expected, combined, fast)
            after = view[index]
            if not _same(after, got).all():
                wave.memory_version += 1
            if where is None:
                results[k] = got
            else:
                results[k][where] = got

    return run
