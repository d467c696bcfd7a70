"""f16, bf16 and their packed pairs: exact products and sums in wider arithmetic, one rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.ops import narrow
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.approximate import approximate
from porter.verify.emulator.ops.compare import flush_half, half_to_f32, scalar_of
from porter.verify.emulator.ops.table import Mods, PureOp

V = Any
HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def is_half(m: Mods) -> bool:
    return any(name in m.left for name in HALVES)


def to_f32(b: Algebra, t: PtxType, x: V) -> V:
    return half_to_f32(b, x, t.name)


def from_f32(b: Algebra, t: PtxType, x: V) -> V:
    """Nearest even; x may be rounded to odd."""
    return b.f32_to_half(x) if t.name == "f16" else b.f32_to_bf16(x)


def lift(t: PtxType, fn: Callable[..., V]) -> PureOp | Callable[..., V]:
    """`fn` on 16-bit values as it is, or applied to both halves of packed operands."""
    if not t.name.endswith("x2"):
        return fn

    def both(b: Algebra, *args: V) -> V:
        k = b.const(32, 16)
        low = fn(b, *(b.trunc(a, 16) for a in args))
        high = fn(b, *(b.trunc(b.lshr(a, k), 16) for a in args))
        return b.or_(b.zext(low, 32), b.shl(b.zext(high, 32), k))

    return both


def _flush_code(b: Algebra, x: V) -> V:
    """An f16 code with subnormals replaced by signed zeros."""
    tiny = b.eq(b.and_(x, b.const(16, 0x7C00)), b.const(16, 0))
    return b.rarely(tiny, lambda: b.and_(x, b.const(16, 0x8000)), x)


def _saturate(b: Algebra, s: PtxType, r: V) -> V:
    """Code clamped to [0, 1], NaN to +0."""
    one = 0x3C00 if s.name == "f16" else 0x3F80
    inf = 0x7C00 if s.name == "f16" else 0x7F80
    c = lambda v: b.const(16, v)  # noqa: E731
    negative_or_nan = b.or_(b.ult(c(0x7FFF), r), b.ult(c(inf), r))
    return b.select(negative_or_nan, c(0), b.select(b.ult(c(one), r), c(one), r))


def _relu(b: Algebra, s: PtxType, r: V) -> V:
    """max(r, 0), NaN becomes canonical NaN."""
    inf = 0x7C00 if s.name == "f16" else 0x7F80
    c = lambda v: b.const(16, v)  # noqa: E731
    nan = b.ult(c(inf), b.and_(r, c(0x7FFF)))
    return b.select(nan, c(0x7FFF), b.select(b.ult(c(0x7FFF), r), c(0), r))


def arithmetic(m: Mods, op: str, mode: str) -> PureOp:
    """add, sub, mul (two operands) and fma (three) of half types."""
    ftz, sat, relu = m.flag("ftz"), m.flag("sat"), m.flag("relu")
    t = m.type()
    m.done()
    s = scalar_of(t) if t.name.endswith("x2") else t
    if mode != "rn":
        raise m.unsupported("half types round to nearest")

    def scalar(b: Algebra, *args: V) -> V:
        if ftz:
            args = tuple(_flush_code(b, a) for a in args)
        x = [b.fpext(to_f32(b, s, a)) for a in args]
        if op == "mul":
            exact = b.fmul(x[0], x[1])
        elif op == "fma":
            exact = b.two_sum_odd(b.fmul(x[0], x[1]), x[2])
        elif op == "sub":
            exact = b.two_sum_odd(x[0], b.as_f64(b.xor(b.bits_of(x[1]), b.const(64, 1 << 63))))
        else:
            exact = b.two_sum_odd(x[0], x[1])
        r = from_f32(b, s, b.f64_to_f32_odd(exact))
        if ftz:
            r = _flush_code(b, r)
        if sat:
            r = _saturate(b, s, r)
        return _relu(b, s, r) if relu else r

    n = 3 if op == "fma" else 2
    return PureOp((t,), (t,) * n, lift(t, scalar))  # type: ignore[arg-type]


def abs_neg(m: Mods, op: str, t: PtxType, ftz: bool) -> PureOp:
    m.done()
    s = scalar_of(t) if t.name.endswith("x2") else t

    def scalar(b: Algebra, x: V) -> V:
        x = _flush_code(b, x) if ftz else x
        magnitude = b.and_(x, b.const(16, 0x7FFF))
        r = magnitude if op == "abs" else b.xor(x, b.const(16, 0x8000))
        nan = b.ult(b.const(16, 0x7C00 if s.name == "f16" else 0x7F80), magnitude)
        return b.rarely(nan, lambda: b.const(16, 0x7FFF), r)

    return PureOp((t,), (t,), lift(t, scalar))  # type: ignore[arg-type]


def min_max(m: Mods, op: str, operands: int, min_max32: Callable[..., Any]) -> PureOp:
    ftz, nan, xorsign = m.flag("ftz"), m.flag("NaN"), m.flag("xorsign")
    if xorsign:
        m.flag("abs")
    t = m.type()
    m.done()
    s = scalar_of(t) if t.name.endswith("x2") else t
    wide = min_max32(op, nan, xorsign)

    def scalar(b: Algebra, *args: V) -> V:
        values = [to_f32(b, s, a) for a in args]
        if ftz and s.name == "f16":
            values = [flush_half(b, v) for v in values]
        return from_f32(b, s, wide(b, *values))

    return PureOp((t,), (t,) * operands, lift(t, scalar))  # type: ignore[arg-type]


def special(m: Mods, op: str, t: PtxType, ftz: bool) -> PureOp:
    """ex2 and tanh of half types."""
    s = scalar_of(t) if t.name.endswith("x2") else t
    if s.name not in ("f16", "bf16"):
        raise m.unsupported()

    def scalar(b: Algebra, x: V) -> V:
        x32 = to_f32(b, s, x)
        if ftz and s.name == "bf16":
            x32 = b.ftz(x32)
        r = narrow.narrow(
            b, b.f64_to_f32_odd(approximate(b, op, b.fpext(x32), s.name)), narrow.FORMATS[s.name], "rn", False
        )
        r = b.trunc(r, 16)
        if ftz and s.name == "bf16":
            tiny = b.eq(b.and_(r, b.const(16, 0x7F80)), b.const(16, 0))
            r = b.select(tiny, b.and_(r, b.const(16, 0x8000)), r)
        return r

    return PureOp((t,), (t,), lift(t, scalar))  # type: ignore[arg-type]
