"""Comparison and selection: setp, set, selp, slct, testp, copysign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.verify.emulator.decode.ir import Instr, Pair
from porter.verify.emulator.decode.types import B32, F32, F64, PRED, PtxType
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any
_COMPARES = (
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"
)  # fmt: skip
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def half_to_f32(b: Algebra, x: V, kind: str) -> V:
    return b.half_to_f32(x) if kind == "f16" else b.bf16_to_f32(x)


def compare(b: Algebra, op: str, t: PtxType, x: V, y: V, ftz: bool = False) -> V:
    """One comparison of values of type t; 16-bit floats are compared as f32."""
    if t.kind in "fh":
        if t.kind == "h":
            x, y = half_to_f32(b, x, t.name), half_to_f32(b, y, t.name)
            if ftz and t.name == "f16":
                x, y = flush_half(b, x), flush_half(b, y)
        elif ftz:
            x, y = b.ftz(x), b.ftz(y)
        if op == "num":
            return b.not_(b.or_(b.isnan(x), b.isnan(y)))
        if op == "nan":
            return b.or_(b.isnan(x), b.isnan(y))
        unordered = op.endswith("u") and op != "u"
        name = op[:2]
        if name == "ne":
            differ = b.not_(b.feq(x, y))  # true for NaN
            return differ if unordered else b.and_(differ, b.not_(b.or_(b.isnan(x), b.isnan(y))))
        if unordered:  # not the opposite ordered comparison
            opposite = {"lt": lambda: b.fle(y, x), "le": lambda: b.flt(y, x), "gt": lambda: b.fle(x, y),
                        "ge": lambda: b.flt(x, y)}  # fmt: skip
            if name == "eq":
                return b.or_(b.feq(x, y), b.or_(b.isnan(x), b.isnan(y)))
            return b.not_(opposite[name]())
        ordered: dict[str, Callable[[], V]] = {
            "eq": lambda: b.feq(x, y), "lt": lambda: b.flt(x, y), "le": lambda: b.fle(x, y),
            "gt": lambda: b.flt(y, x), "ge": lambda: b.fle(y, x),
        }  # fmt: skip
        return ordered[name]()
    op = _UNSIGNED_NAMES.get(op, op)
    if op == "eq":
        return b.eq(x, y)
    if op == "ne":
        return b.ne(x, y)
    less, less_equal = (b.slt, b.sle) if t.signed else (b.ult, b.ule)
    if op in ("gt", "ge"):
        x, y = y, x
    return (less if op in ("lt", "gt") else less_equal)(x, y)


def flush_half(b: Algebra, x: V) -> V:
    """An f32 that came from f16, with f16's subnormals flushed to signed zero."""
    u = b.bits_of(x)
    tiny = b.flt(b.fabs(x), b.const_f(32, 2.0**-14))
    return b.as_f32(b.rarely(tiny, lambda: b.and_(u, b.const(32, 0x80000000)), u))


def _combine(b: Algebra, how: str, p: V, q: V) -> V:
    return {"and": b.and_, "or": b.or_, "xor": b.xor}[how](p, q)


def _packed_parts(b: Algebra, x: V) -> tuple[V, V]:
    return b.trunc(x, 16), b.trunc(b.lshr(x, b.const(32, 16)), 16)


def scalar_of(t: PtxType) -> PtxType:
    """f16x2 -> f16, bf16x2 -> bf16."""
    from porter.verify.emulator.decode.types import TYPES

    return TYPES[t.name[:-2]]


@pure("setp")
def setp(i: Instr) -> PureOp:
    m = Mods(i)
    op = m.one_of(*_COMPARES)
    how = m.one_of("and", "or", "xor")
    ftz = m.flag("ftz")
    t = m.type()
    m.done()
    if not op:
        raise m.unsupported("needs a comparison")
    srcs = (t, t, PRED) if how else (t, t)
    if t.name in ("f16x2", "bf16x2"):
        scalar = scalar_of(t)

        def packed(b: Algebra, x: V, y: V, *c: V) -> tuple[V, V]:
            results = [
                compare(b, op, scalar, p, q, ftz) for p, q in zip(_packed_parts(b, x), _packed_parts(b, y), strict=True)
            ]
            if how:
                results = [_combine(b, how, r, c[0]) for r in results]
            return results[0], results[1]

        return PureOp((PRED, PRED), srcs, packed)
    if isinstance(i.operands[0], Pair):

        def pair(b: Algebra, x: V, y: V, *c: V) -> tuple[V, V]:
            p = compare(b, op, t, x, y, ftz)
            q = b.not_(p)
            return (_combine(b, how, p, c[0]), _combine(b, how, q, c[0])) if how else (p, q)

        return PureOp((PRED, PRED), srcs, pair)
    if how:
        return PureOp((PRED,), srcs, lambda b, x, y, c: _combine(b, how, compare(b, op, t, x, y, ftz), c))
    return PureOp((PRED,), srcs, lambda b, x, y: compare(b, op, t, x, y, ftz))


@pure("set")
def set_(i: Instr) -> PureOp:
    m = Mods(i)
    op = m.one_of(*_COMPARES)
    how = m.one_of("and", "or", "xor")
    ftz = m.flag("ftz")
    d, t = m.type(), m.type()
    m.done()
    srcs = (t, t, PRED) if how else (t, t)

    def result(b: Algebra, p: V) -> V:
        if d.name == "f32":
            return b.as_f32(b.select(p, b.const(32, 0x3F800000), b.const(32, 0)))
        if d.name in ("f16", "bf16"):
            return b.select(p, b.const(16, 0x3C00 if d.name == "f16" else 0x3F80), b.const(16, 0))
        return b.select(p, b.const(d.bits, -1), b.const(d.bits, 0))

    if t.name in ("f16x2", "bf16x2"):
        scalar = scalar_of(t)
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(d.name, 0xFFFF)

        def packed(b: Algebra, x: V, y: V, *c: V) -> V:
            r = None
            for k, (p, q) in enumerate(zip(_packed_parts(b, x), _packed_parts(b, y), strict=True)):
                hit = compare(b, op, scalar, p, q, ftz)
                if how:
                    hit = _combine(b, how, hit, c[0])
                part = b.select(hit, b.const(32, one << (16 * k)), b.const(32, 0))
                r = part if r is None else b.or_(r, part)
            return r

        return PureOp((d,), srcs, packed)

    def fn(b: Algebra, x: V, y: V, *c: V) -> V:
        p = compare(b, op, t, x, y, ftz)
        return result(b, _combine(b, how, p, c[0]) if how else p)

    return PureOp((d,), srcs, fn)


def _raw(t: PtxType) -> PtxType:
    from porter.verify.emulator.decode.types import TYPES

    return TYPES[f"b{t.bits}"]


@pure("selp")
def selp(i: Instr) -> PureOp:
    m = Mods(i)
    t = _raw(m.type())
    m.done()
    return PureOp((t,), (t, t, PRED), lambda b, x, y, p: b.select(p, x, y))


@pure("slct")
def slct(i: Instr) -> PureOp:
    m = Mods(i)
    ftz = m.flag("ftz")
    t, c = _raw(m.type()), m.type()
    m.done()
    if c.name == "f32":

        def by_float(b: Algebra, x: V, y: V, z: V) -> V:
            z = b.ftz(z) if ftz else z
            return b.select(b.fle(b.const_f(32, 0.0), z), x, y)

        return PureOp((t,), (t, t, c), by_float)
    return PureOp((t,), (t, t, c), lambda b, x, y, z: b.select(b.slt(z, b.const(32, 0)), y, x))


@pure("testp")
def testp(i: Instr) -> PureOp:
    m = Mods(i)
    op = m.one_of("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    t = m.type()
    m.done()
    bits, mantissa = (32, 23) if t is F32 else (64, 52)
    inf = ((1 << (bits - 1 - mantissa)) - 1) << mantissa

    def fn(b: Algebra, x: V) -> V:
        a = b.and_(x, b.const(bits, (1 << (bits - 1)) - 1))
        k_inf, smallest, zero = b.const(bits, inf), b.const(bits, 1 << mantissa), b.const(bits, 0)
        if op == "finite":
            return b.ult(a, k_inf)
        if op == "infinite":
            return b.eq(a, k_inf)
        if op == "number":
            return b.ule(a, k_inf)
        if op == "notanumber":
            return b.ult(k_inf, a)
        if op == "normal":
            return b.and_(b.or_(b.ule(smallest, a), b.eq(a, zero)), b.ult(a, k_inf))  # zero counts as normal
        return b.and_(b.ult(zero, a), b.ult(a, smallest))

    return PureOp((PRED,), (_raw(t),), fn)


@pure("copysign")
def copysign(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    if t not in (F32, F64):
        raise m.unsupported()
    raw = _raw(t)

    def fn(b: Algebra, x: V, y: V) -> V:
        sign = b.const(t.bits, 1 << (t.bits - 1))
        return b.or_(b.and_(x, sign), b.and_(y, b.not_(sign)))

    return PureOp((raw,), (raw, raw), fn)


__all__ = ["B32", "compare", "flush_half", "half_to_f32", "scalar_of"]
