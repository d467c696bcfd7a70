"""Integer arithmetic and logic."""

from __future__ import annotations

from typing import Any

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.types import B32, TYPES, PtxType
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def wider(t: PtxType) -> PtxType:
    return TYPES[_WIDER[t.name]]


def extend(b: Algebra, x: V, t: PtxType, bits: int) -> V:
    return b.sext(x, bits) if t.signed else b.zext(x, bits)


def add_int(i: Instr, m: Mods, t: PtxType, subtract: bool) -> PureOp:
    """add/sub of integer types, called from floating.py's shared `add` and `sub`."""
    carry_out = m.flag("cc")
    saturate = m.flag("sat")
    m.done()
    if t.name in ("u16x2", "s16x2"):

        def packed(b: Algebra, x: V, y: V) -> V:
            op = b.sub if subtract else b.add
            low = b.and_(op(x, y), b.const(32, 0xFFFF))
            k = b.const(32, 16)
            high = b.shl(op(b.lshr(x, k), b.lshr(y, k)), k)
            return b.or_(high, low)

        return PureOp((t,), (t, t), packed)
    if t.kind not in "us":
        raise m.unsupported("not an integer type")
    if saturate:

        def saturating(b: Algebra, x: V, y: V) -> V:
            wide = (b.sub if subtract else b.add)(b.sext(x, 64), b.sext(y, 64))
            wide = b.smax(b.smin(wide, b.const(64, 0x7FFFFFFF)), b.const(64, -0x80000000))
            return b.trunc(wide, 32)

        return PureOp((t,), (t, t), saturating)
    if carry_out:
        return PureOp((t,), (t, t), _carry(subtract, False), carry_out=True)
    if subtract:
        return PureOp((t,), (t, t), lambda b, x, y: b.sub(x, y))
    return PureOp((t,), (t, t), lambda b, x, y: b.add(x, y))


def _carry(subtract: bool, with_in: bool) -> Any:
    """Sum or difference and the carry (for a difference: the borrow, as PTX's CC.CF after sub.cc)."""

    def fn(b: Algebra, x: V, y: V, carry: V = None) -> tuple[V, V]:
        if subtract:
            r = b.sub(x, y)
            out = b.ult(x, y)
            if with_in:
                c = _flag(b, carry, x)
                out = b.or_(out, b.ult(r, c))
                r = b.sub(r, c)
        else:
            r = b.add(x, y)
            out = b.ult(r, x)
            if with_in:
                c = _flag(b, carry, x)
                r = b.add(r, c)
                out = b.or_(out, b.ult(r, c))
        return r, out

    return fn


def _flag(b: Algebra, carry: V, like: V) -> V:
    z = b.zero_like(like)
    one = b.sub(z, b.not_(z))  # 0 - ~0 = 1 in any width
    return b.select(carry, one, z)


@pure("addc", "subc")
def addc(i: Instr) -> PureOp:
    m = Mods(i)
    carry_out = m.flag("cc")
    t = m.type()
    m.done()
    fn = _carry(i.base == "subc", True)
    if carry_out:
        return PureOp((t,), (t, t), fn, carry_in=True, carry_out=True)
    return PureOp((t,), (t, t), lambda b, x, y, c: fn(b, x, y, c)[0], carry_in=True)


def mul_high(b: Algebra, t: PtxType, x: V, y: V) -> V:
    if t.bits == 64:
        return b.smulh64(x, y) if t.signed else b.umulh64(x, y)
    wide = b.mul(extend(b, x, t, 2 * t.bits), extend(b, y, t, 2 * t.bits))
    return b.trunc(b.lshr(wide, b.const(2 * t.bits, t.bits)), t.bits)


def mul_int(i: Instr, m: Mods, t: PtxType) -> PureOp:
    half = m.one_of("lo", "hi", "wide")
    m.done()
    if t.kind not in "us":
        raise m.unsupported("not an integer type")
    if half == "lo":
        return PureOp((t,), (t, t), lambda b, x, y: b.mul(x, y))
    if half == "wide":
        w = wider(t)
        return PureOp((w,), (t, t), lambda b, x, y: b.mul(extend(b, x, t, w.bits), extend(b, y, t, w.bits)))
    if half == "hi":
        return PureOp((t,), (t, t), lambda b, x, y: mul_high(b, t, x, y))
    raise m.unsupported("needs .lo, .hi or .wide")


def mad_int(i: Instr, m: Mods, t: PtxType, carry_in: bool = False) -> PureOp:
    half = m.one_of("lo", "hi", "wide")
    carry_out = m.flag("cc")
    saturate = m.flag("sat")
    m.done()

    def product(b: Algebra, x: V, y: V) -> V:
        if half == "lo":
            return b.mul(x, y)
        return mul_high(b, t, x, y)

    if half == "wide":
        w = wider(t)
        return PureOp(
            (w,), (t, t, w), lambda b, x, y, z: b.add(b.mul(extend(b, x, t, w.bits), extend(b, y, t, w.bits)), z)
        )
    if not half:
        raise m.unsupported("needs .lo, .hi or .wide")
    if saturate:

        def saturating(b: Algebra, x: V, y: V, z: V) -> V:
            s = b.add(b.sext(product(b, x, y), 64), b.sext(z, 64))
            return b.trunc(b.smax(b.smin(s, b.const(64, 0x7FFFFFFF)), b.const(64, -0x80000000)), 32)

        return PureOp((t,), (t, t, t), saturating)
    if carry_in or carry_out:
        add = _carry(False, carry_in)

        def carried(b: Algebra, x: V, y: V, z: V, *c: V) -> Any:
            r = add(b, product(b, x, y), z, *c)
            return r if carry_out else r[0]

        return PureOp((t,), (t, t, t), carried, carry_in=carry_in, carry_out=carry_out)
    return PureOp((t,), (t, t, t), lambda b, x, y, z: b.add(product(b, x, y), z))


@pure("madc")
def madc(i: Instr) -> PureOp:
    m = Mods(i)
    return mad_int(i, m, m.type(), carry_in=True)


@pure("mul24", "mad24")
def mul24(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    half = m.one_of("lo", "hi")
    m.done()
    k8, k16 = 8, 16

    def product(b: Algebra, x: V, y: V) -> V:
        def low24(v: V) -> V:
            up = b.shl(v, b.const(32, k8))
            return extend(b, (b.ashr if t.signed else b.lshr)(up, b.const(32, k8)), t, 64)

        wide = b.mul(low24(x), low24(y))
        return b.trunc(wide if half == "lo" else b.lshr(wide, b.const(64, k16)), 32)

    if i.base == "mul24":
        return PureOp((t,), (t, t), product)
    return PureOp((t,), (t, t, t), lambda b, x, y, z: b.add(product(b, x, y), z))


@pure("sad")
def sad(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()

    def fn(b: Algebra, x: V, y: V, z: V) -> V:
        less = b.slt(x, y) if t.signed else b.ult(x, y)
        return b.add(z, b.select(less, b.sub(y, x), b.sub(x, y)))

    return PureOp((t,), (t, t, t), fn)


@pure("rem")
def rem(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    return PureOp((t,), (t, t), lambda b, x, y: divide(b, t, x, y)[1])


def div_int(i: Instr, m: Mods, t: PtxType) -> PureOp:
    m.done()
    return PureOp((t,), (t, t), lambda b, x, y: divide(b, t, x, y)[0])


def divide(b: Algebra, t: PtxType, x: V, y: V) -> tuple[V, V]:
    """Quotient and remainder. Division by zero (unspecified by the ISA) gives all ones and the dividend."""
    zero, one = b.const(t.bits, 0), b.const(t.bits, 1)
    by_zero = b.eq(y, zero)
    safe = b.select(by_zero, one, y)
    if t.signed:
        overflow = b.and_(b.eq(y, b.const(t.bits, -1)), b.eq(x, b.const(t.bits, 1 << (t.bits - 1))))
        safe = b.select(overflow, one, safe)
        q, r = b.sdiv(x, safe), b.srem(x, safe)
        r = b.select(overflow, zero, r)
    else:
        q, r = b.udiv(x, safe), b.urem(x, safe)
    return b.select(by_zero, b.const(t.bits, -1), q), b.select(by_zero, x, r)


def abs_neg_int(i: Instr, m: Mods, t: PtxType) -> PureOp:
    m.done()
    if i.base == "neg":
        return PureOp((t,), (t,), lambda b, x: b.neg(x))
    return PureOp((t,), (t,), lambda b, x: b.select(b.slt(x, b.const(t.bits, 0)), b.neg(x), x))


def min_max_int(i: Instr, m: Mods, t: PtxType) -> PureOp:
    relu = m.flag("relu")
    m.done()
    if t.name in ("u16x2", "s16x2"):

        def packed(b: Algebra, x: V, y: V) -> V:
            k = b.const(32, 16)
            parts = []
            for shift in (False, True):
                p = b.trunc(b.lshr(x, k) if shift else x, 16)
                q = b.trunc(b.lshr(y, k) if shift else y, 16)
                if t.name == "s16x2":
                    r = (b.smin if i.base == "min" else b.smax)(p, q)
                    if relu:
                        r = b.smax(r, b.const(16, 0))
                else:
                    r = (b.umin if i.base == "min" else b.umax)(p, q)
                parts.append(b.zext(r, 32))
            return b.or_(parts[0], b.shl(parts[1], k))

        return PureOp((t,), (t, t), packed)

    def fn(b: Algebra, x: V, y: V) -> V:
        signed, unsigned = (b.smin, b.umin) if i.base == "min" else (b.smax, b.umax)
        r = (signed if t.signed else unsigned)(x, y)
        return b.smax(r, b.const(t.bits, 0)) if relu else r

    return PureOp((t,), (t, t), fn)


@pure("and", "or", "xor")
def logic(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    name = {"and": "and_", "or": "or_", "xor": "xor"}[i.base]
    return PureOp((t,), (t, t), lambda b, x, y: getattr(b, name)(x, y))


@pure("not")
def not_(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    return PureOp((t,), (t,), lambda b, x: b.not_(x))


@pure("cnot")
def cnot(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    return PureOp((t,), (t,), lambda b, x: b.from_bool(b.eq(x, b.const(t.bits, 0)), t.bits))


@pure("dp4a", "dp2a")
def dot(i: Instr) -> PureOp:
    m = Mods(i)
    half = m.one_of("lo", "hi")
    ta, tb = m.type(), m.type()
    m.done()
    acc = TYPES["u32"] if not ta.signed and not tb.signed else TYPES["s32"]

    def piece(b: Algebra, x: V, index: int, width: int, signed: bool) -> V:
        up = b.shl(x, b.const(32, 32 - width * (index + 1)))
        return (b.ashr if signed else b.lshr)(up, b.const(32, 32 - width))

    def fn(b: Algebra, x: V, y: V, z: V) -> V:
        if i.base == "dp4a":
            for k in range(4):
                z = b.add(z, b.mul(piece(b, x, k, 8, ta.signed), piece(b, y, k, 8, tb.signed)))
        else:
            first = 2 if half == "hi" else 0
            for k in range(2):
                z = b.add(z, b.mul(piece(b, x, k, 16, ta.signed), piece(b, y, first + k, 8, tb.signed)))
        return z

    return PureOp((acc,), (B32, B32, acc), fn)


@pure("vabsdiff2", "vabsdiff4")
def absolute_differences(i: Instr) -> PureOp:
    """Of the halfwords or bytes of two words: in their lanes, or with `.add` their sum and a third operand."""
    m = Mods(i)
    td, ta, tb = m.type(), m.type(), m.type()
    total = m.flag("add")
    m.done()
    if td.bits != 32 or ta.signed != tb.signed:
        raise m.unsupported("lanes of two kinds")
    width = 16 if i.base == "vabsdiff2" else 8

    def fn(b: Algebra, x: V, y: V, z: V) -> V:
        found = z if total else b.const(32, 0)
        for k in range(32 // width):
            up, down = b.const(32, 32 - width * (k + 1)), b.const(32, 32 - width)
            shift = b.ashr if ta.signed else b.lshr
            one, other = (shift(b.shl(v, up), down) for v in (x, y))
            less = b.slt(one, other) if ta.signed else b.ult(one, other)
            lane = b.select(less, b.sub(other, one), b.sub(one, other))
            if total:
                found = b.add(found, lane)
            else:
                lane = b.and_(lane, b.const(32, (1 << width) - 1))
                found = b.or_(found, b.shl(lane, b.const(32, width * k)))
        return found

    return PureOp((td,), (B32, B32, B32), fn)
