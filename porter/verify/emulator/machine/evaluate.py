"""Sources, destinations and pure operations as Python closures over an Env: the numpy interpreter's inner loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from porter.verify.emulator.decode.program import Const, Dst, Guard, Pure, RegSrc, SpecialSrc, Src, Step
from porter.verify.emulator.decode.types import PRED, PtxType
from porter.verify.emulator.machine.environment import Env, recast
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

Getter = Callable[[Env], np.ndarray]
Putter = Callable[[Env, np.ndarray], None]
Runner = Callable[[Env], None]


def getter(source: Src, want: PtxType) -> Getter:
    """Reads a source as values of type `want` (wider registers are cut, narrower ones zero-extended)."""
    dtype = want.dtype
    if isinstance(source, Const):
        fixed = constant(source.value, want)
        return lambda e: fixed
    if isinstance(source, SpecialSrc):
        raw = want.raw

        def special(e: Env) -> np.ndarray:
            x = e.special(source.name)
            return recast(x if x.dtype.itemsize == raw.itemsize else x.astype(raw), dtype)

        return special
    index = source.index
    if want is PRED:
        if source.negated:
            return lambda e: ~e.v[index]
        return lambda e: e.v[index]
    if source.type.bits == want.bits or source.type.raw.itemsize == dtype.itemsize:

        def same(e: Env) -> np.ndarray:
            x = e.v[index]
            return x if x.dtype is dtype else recast(x, dtype)

        return same
    have, raw = source.type.raw, want.raw

    def resized(e: Env) -> np.ndarray:
        return recast(recast(e.v[index], have).astype(raw), dtype)

    return resized


def constant(value: int, want: PtxType) -> np.ndarray:
    if want.bits == 128:
        a = np.array([value & (1 << 64) - 1, value >> 64], np.uint64).view(np.complex128)
    else:
        a = np.array([value & ((1 << want.bits) - 1)], np.uint64).astype(want.raw)
    a = a.view(want.dtype)
    a.flags.writeable = False
    return a


def putter(dst: Dst | None, have: PtxType) -> Putter:
    """Writes values of type `have`; a wider register gets them extended by the type's sign."""
    if dst is None:
        return lambda e, x: None
    index = dst.index
    if dst.type.raw.itemsize == have.raw.itemsize or (dst.type is PRED and have is PRED):

        def unchanged(e: Env, x: np.ndarray) -> None:
            e.v[index] = x

        return unchanged
    target, raw = dst.type.raw, have.raw
    signed = np.dtype(f"i{raw.itemsize}") if have.signed else raw
    wide = np.dtype(f"i{target.itemsize}") if have.signed else target

    def resized(e: Env, x: np.ndarray) -> None:
        e.v[index] = recast(x, raw).view(signed).astype(wide).view(target)

    return resized


def compile_pure(step: Pure, algebra: NumpyAlgebra) -> Runner:
    op = step.op
    fn = op.fn
    types = list(op.srcs) + [PRED] * op.carry_in
    gets = [getter(s, t) for s, t in zip(step.srcs, types, strict=False)]
    results = list(op.dsts) + [PRED] * op.carry_out
    if len(results) == 1:
        put = putter(step.dsts[0], results[0])
        if len(gets) == 1:
            (a,) = gets
            return lambda e: put(e, fn(algebra, a(e)))
        if len(gets) == 2:
            a, b = gets
            return lambda e: put(e, fn(algebra, a(e), b(e)))
        if len(gets) == 3:
            a, b, c = gets
            return lambda e: put(e, fn(algebra, a(e), b(e), c(e)))
        return lambda e: put(e, fn(algebra, *[g(e) for g in gets]))
    puts = [putter(d, t) for d, t in zip(step.dsts, results, strict=True)]

    def several(e: Env) -> None:
        for put, value in zip(puts, fn(algebra, *[g(e) for g in gets]), strict=True):
            put(e, value)

    return several


def compile_move(step: Pure) -> Runner | None:
    """A plain register-to-register mov of equal size keeps the array as it is, NaN payloads included."""
    if step.source.base != "mov" or len(step.srcs) != 1 or len(step.dsts) != 1 or step.dsts[0] is None:
        return None
    source, dst = step.srcs[0], step.dsts[0]
    if isinstance(source, RegSrc) and not source.negated and source.type.raw.itemsize == dst.type.raw.itemsize:
        a, d = source.index, dst.index

        def move(e: Env) -> None:
            e.v[d] = e.v[a]

        return move
    return None


def guarded(step: Step, guard: Guard, run: Runner) -> Runner:
    index, negated = guard.index, guard.negated

    def maybe(e: Env) -> None:
        p = e.active(e.v[index])
        if negated:
            p = ~p
        if p.all():
            run(e)
        elif p.any():
            inner = e.narrowed(p if p.size == e.n else np.broadcast_to(p, (e.n,)))
            try:
                run(inner)
            finally:
                e.absorb(inner)

    return maybe
