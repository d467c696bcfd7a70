"""Packed pairs of f32 in a 64-bit register (add, mul, fma .f32x2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.verify.emulator.decode.types import F32X2
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.table import Mods, PureOp

V = Any


def arithmetic(m: Mods, operands: int, op: Callable[..., V]) -> PureOp:
    ftz = m.flag("ftz")
    m.type()
    m.done()

    def one(b: Algebra, *args: V) -> V:
        values = [b.as_f32(a) for a in args]
        if ftz:
            values = [b.ftz(v) for v in values]
        r = op(b, *values)
        return b.canonical(b.ftz(r) if ftz else r)

    def fn(b: Algebra, *args: V) -> V:
        k = b.const(64, 32)
        low = one(b, *(b.trunc(a, 32) for a in args))
        high = one(b, *(b.trunc(b.lshr(a, k), 32) for a in args))
        return b.or_(b.zext(low, 64), b.shl(b.zext(high, 64), k))

    return PureOp((F32X2,), (F32X2,) * operands, fn)
