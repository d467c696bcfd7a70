"""Integer arithmetic, logic, shifts and bit fields."""

from __future__ import annotations

from typing import Any

from porter.verify.ptx.algebra import Algebra
from porter.verify.ptx.ir import Imm, Instr, Pair
from porter.verify.ptx.ops.table import Mods, PureOp, pure
from porter.verify.ptx.types import B32, PRED, S32, TYPES, U32, PtxType

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


@pure("shl", "shr")
def shift(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    amount = i.operands[2]
    bits = t.bits
    left = i.base == "shl"

    def by(b: Algebra, x: V, n: V) -> V:
        if left:
            return b.shl(x, n)
        return b.ashr(x, n) if t.signed else b.lshr(x, n)

    if isinstance(amount, Imm):
        count = amount.value & 0xFFFFFFFF
        if count < bits:
            return PureOp((t,), (t, U32), lambda b, x, n: by(b, x, b.const(bits, count)))
        if left or not t.signed:
            return PureOp((t,), (t, U32), lambda b, x, n: b.zero_like(x))
        return PureOp((t,), (t, U32), lambda b, x, n: b.ashr(x, b.const(bits, bits - 1)))

    def fn(b: Algebra, x: V, n: V) -> V:
        n = b.umin(n, b.const(32, bits))
        over = b.eq(n, b.const(32, bits))
        n = b.select(over, b.const(32, bits - 1), n)
        n = n if bits == 32 else b.zext(n, bits) if bits > 32 else b.trunc(n, bits)
        r = by(b, x, n)
        return r if not left and t.signed else b.select(over, b.const(bits, 0), r)

    return PureOp((t,), (t, U32), fn)


@pure("shf")
def shf(i: Instr) -> PureOp:
    m = Mods(i)
    left = m.one_of("l", "r") == "l"
    wrap = m.one_of("wrap", "clamp") == "wrap"
    m.type()
    m.done()

    def fn(b: Algebra, low: V, high: V, n: V) -> V:
        n = b.and_(n, b.const(32, 31)) if wrap else b.umin(n, b.const(32, 32))
        both = b.or_(b.shl(b.zext(high, 64), b.const(64, 32)), b.zext(low, 64))
        n64 = b.zext(n, 64)
        if left:
            return b.trunc(b.lshr(b.shl(both, n64), b.const(64, 32)), 32)
        return b.trunc(b.lshr(both, n64), 32)

    return PureOp((B32,), (B32, B32, U32), fn)


@pure("popc", "clz", "brev")
def count_bits(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    if i.base == "brev":
        return PureOp((t,), (t,), lambda b, x: b.brev(x, t.bits))
    name = {"popc": "popcount", "clz": "clz"}[i.base]

    def fn(b: Algebra, x: V) -> V:
        r = getattr(b, name)(x)
        return b.trunc(r, 32) if t.bits == 64 else r

    return PureOp((U32,), (t,), fn)


@pure("bfind")
def bfind(i: Instr) -> PureOp:
    m = Mods(i)
    shiftamt = m.flag("shiftamt")
    t = m.type()
    m.done()

    def fn(b: Algebra, x: V) -> V:
        if t.signed:
            x = b.select(b.slt(x, b.const(t.bits, 0)), b.not_(x), x)
        zeros = b.clz(x)
        zeros = b.trunc(zeros, 32) if t.bits == 64 else zeros
        none = b.eq(zeros, b.const(32, t.bits))
        r = zeros if shiftamt else b.sub(b.const(32, t.bits - 1), zeros)
        return b.select(none, b.const(32, 0xFFFFFFFF), r)

    return PureOp((U32,), (t,), fn)


@pure("fns")
def fns(i: Instr) -> PureOp:
    """Position of the offset-th set bit, counted from bit `base` upwards (offset > 0) or downwards (offset < 0)."""

    def fn(b: Algebra, mask: V, base: V, offset: V) -> V:
        c = lambda v: b.const(32, v)  # noqa: E731
        result = c(0xFFFFFFFF)
        up = b.slt(c(0), offset)
        down = b.slt(offset, c(0))
        bit_set = lambda k: b.ne(b.and_(b.lshr(mask, c(k)), c(1)), c(0))  # noqa: E731
        seen = b.zero_like(mask)
        for k in range(32):
            here = b.and_(bit_set(k), b.ule(base, c(k)))
            seen = b.add(seen, b.from_bool(here, 32))
            result = b.select(b.and_(b.and_(here, up), b.eq(seen, offset)), c(k), result)
        seen = b.zero_like(mask)
        wanted = b.neg(offset)
        for k in range(31, -1, -1):
            here = b.and_(bit_set(k), b.ule(c(k), base))
            seen = b.add(seen, b.from_bool(here, 32))
            result = b.select(b.and_(b.and_(here, down), b.eq(seen, wanted)), c(k), result)
        none = b.eq(offset, c(0))
        at_base = bit_at(b, mask, base)
        return b.select(none, b.select(at_base, base, c(0xFFFFFFFF)), result)

    return PureOp((B32,), (B32, B32, S32), fn)


def bit_at(b: Algebra, mask: V, index: V) -> V:
    n = b.and_(index, b.const(32, 31))
    return b.and_(b.ult(index, b.const(32, 32)), b.ne(b.and_(b.lshr(mask, n), b.const(32, 1)), b.const(32, 0)))


def low_mask(b: Algebra, n: V, bits: int) -> V:
    """A mask of the n lowest bits, n a 32-bit value that may reach or exceed `bits`."""
    k = b.umin(n, b.const(32, bits))
    full = b.eq(k, b.const(32, bits))
    k = b.select(full, b.const(32, 0), k)
    k = k if bits == 32 else b.zext(k, bits)
    m = b.sub(b.shl(b.const(bits, 1), k), b.const(bits, 1))
    return b.select(full, b.const(bits, -1), m)


def _shift_clamped(b: Algebra, x: V, n: V, bits: int, left: bool) -> V:
    over = b.ule(b.const(32, bits), n)
    k = b.select(over, b.const(32, 0), n)
    k = k if bits == 32 else b.zext(k, bits)
    r = b.shl(x, k) if left else b.lshr(x, k)
    return b.select(over, b.const(bits, 0), r)


@pure("bfe")
def bfe(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    bits = t.bits

    def fn(b: Algebra, x: V, pos: V, length: V) -> V:
        pos, length = b.and_(pos, b.const(32, 0xFF)), b.and_(length, b.const(32, 0xFF))
        mask = low_mask(b, length, bits)
        r = b.and_(_shift_clamped(b, x, pos, bits, False), mask)
        if not t.signed:
            return r
        last = b.umin(b.sub(b.add(pos, length), b.const(32, 1)), b.const(32, bits - 1))
        last = b.select(b.eq(length, b.const(32, 0)), b.const(32, 0), last)
        sign = b.and_(_shift_clamped(b, x, last, bits, False), b.const(bits, 1))
        negative = b.and_(b.ne(sign, b.const(bits, 0)), b.ne(length, b.const(32, 0)))
        # bits between the end of the field inside the word and its nominal length are sign too
        room = b.select(b.ult(pos, b.const(32, bits)), b.sub(b.const(32, bits), pos), b.const(32, 0))
        inside = low_mask(b, b.umin(length, room), bits)
        return b.select(negative, b.or_(b.and_(r, inside), b.not_(inside)), r)

    return PureOp((t,), (t, U32, U32), fn)


@pure("bfi")
def bfi(i: Instr) -> PureOp:
    m = Mods(i)
    t = m.type()
    m.done()
    bits = t.bits

    def fn(b: Algebra, field: V, into: V, pos: V, length: V) -> V:
        pos, length = b.and_(pos, b.const(32, 0xFF)), b.and_(length, b.const(32, 0xFF))
        mask = _shift_clamped(b, low_mask(b, length, bits), pos, bits, True)
        return b.or_(b.and_(into, b.not_(mask)), b.and_(_shift_clamped(b, field, pos, bits, True), mask))

    return PureOp((t,), (t, t, U32, U32), fn)


@pure("bmsk")
def bmsk(i: Instr) -> PureOp:
    m = Mods(i)
    wrap = m.one_of("wrap", "clamp") == "wrap"
    m.type()
    m.done()

    def fn(b: Algebra, pos: V, length: V) -> V:
        if wrap:
            pos, length = b.and_(pos, b.const(32, 31)), b.and_(length, b.const(32, 31))
        return _shift_clamped(b, low_mask(b, length, 32), pos, 32, True)

    return PureOp((B32,), (U32, U32), fn)


@pure("szext")
def szext(i: Instr) -> PureOp:
    m = Mods(i)
    wrap = m.one_of("wrap", "clamp") == "wrap"
    t = m.type()
    m.done()

    def fn(b: Algebra, x: V, n: V) -> V:
        n = b.and_(n, b.const(32, 31)) if wrap else b.umin(n, b.const(32, 32))
        mask = low_mask(b, n, 32)
        low = b.and_(x, mask)
        if not t.signed:
            return low
        none = b.eq(n, b.const(32, 0))
        top = b.select(none, b.const(32, 0), b.sub(n, b.const(32, 1)))
        negative = b.and_(bit_at(b, x, top), b.not_(none))
        return b.select(negative, b.or_(low, b.not_(mask)), low)

    return PureOp((t,), (t, U32), fn)


def _byte(b: Algebra, x: V, index: int) -> V:
    return b.and_(b.lshr(x, b.const(32, 8 * index)), b.const(32, 0xFF))


@pure("prmt")
def prmt(i: Instr) -> PureOp:
    m = Mods(i)
    m.type()
    mode = m.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    m.done()
    selector = i.operands[3]
    if not mode and isinstance(selector, Imm):
        nibbles = [(selector.value >> (4 * k)) & 15 for k in range(4)]

        def fixed(b: Algebra, x: V, y: V, s: V) -> V:
            r = None
            for k, nibble in enumerate(nibbles):
                source = y if nibble & 4 else x
                byte = _byte(b, source, nibble & 3)
                if nibble & 8:
                    byte = b.and_(b.sub(b.const(32, 0), b.lshr(byte, b.const(32, 7))), b.const(32, 0xFF))
                part = b.shl(byte, b.const(32, 8 * k))
                r = part if r is None else b.or_(r, part)
            return r

        return PureOp((B32,), (B32, B32, B32), fixed)

    def fn(b: Algebra, x: V, y: V, s: V) -> V:
        both = b.or_(b.shl(b.zext(y, 64), b.const(64, 32)), b.zext(x, 64))

        def pick(index: V) -> V:
            n = b.zext(b.shl(b.and_(index, b.const(32, 7)), b.const(32, 3)), 64)
            return b.and_(b.trunc(b.lshr(both, n), 32), b.const(32, 0xFF))

        c = lambda v: b.const(32, v)  # noqa: E731
        if mode:
            s = b.and_(s, c(3))
        r = None
        for k in range(4):
            if not mode:
                nibble = b.lshr(s, c(4 * k))
                byte = pick(nibble)
                sign = b.and_(b.sub(c(0), b.lshr(byte, c(7))), c(0xFF))
                byte = b.select(b.ne(b.and_(nibble, c(8)), c(0)), sign, byte)
            elif mode == "f4e":
                byte = pick(b.add(s, c(k)))
            elif mode == "b4e":
                byte = pick(b.and_(b.sub(s, c(k)), c(7)))
            elif mode == "rc8":
                byte = pick(s)
            elif mode == "ecl":
                byte = pick(b.umax(s, c(k)))
            elif mode == "ecr":
                byte = pick(b.umin(s, c(k)))
            else:
                byte = pick(b.add(b.shl(b.and_(s, c(1)), c(1)), c(k & 1)))
            part = b.shl(byte, c(8 * k))
            r = part if r is None else b.or_(r, part)
        return r

    return PureOp((B32,), (B32, B32, B32), fn)


@pure("lop3")
def lop3(i: Instr) -> PureOp:
    m = Mods(i)
    combine = m.one_of("or", "and")
    m.type()
    m.done()
    table = i.operands[4]
    if not isinstance(table, Imm):
        raise m.unsupported("the truth table must be a constant")
    lut = table.value & 0xFF

    def fn(b: Algebra, x: V, y: V, z: V, *_: V) -> V:
        return lop3_value(b, lut, x, y, z)

    if not combine:
        return PureOp((B32,), (B32, B32, B32, U32), fn)
    if not isinstance(i.operands[0], Pair):
        raise m.unsupported("needs d|p")

    def with_predicate(b: Algebra, x: V, y: V, z: V, _: V, q: V) -> tuple[V, V]:
        r = lop3_value(b, lut, x, y, z)
        p = b.ne(r, b.const(32, 0))
        return r, (b.or_(p, q) if combine == "or" else b.and_(p, q))

    return PureOp((B32, PRED), (B32, B32, B32, U32, PRED), with_predicate)


def lop3_value(b: Algebra, lut: int, x: V, y: V, z: V) -> V:
    """Sum of products; common tables get their short form."""
    short = {
        0x80: lambda: b.and_(b.and_(x, y), z),
        0xFE: lambda: b.or_(b.or_(x, y), z),
        0x96: lambda: b.xor(b.xor(x, y), z),
        0xEA: lambda: b.or_(b.and_(x, y), z),
        0xF8: lambda: b.or_(x, b.and_(y, z)),
        0xCA: lambda: b.or_(b.and_(x, y), b.and_(b.not_(x), z)),
    }.get(lut)
    if short:
        return short()
    result = b.and_(b.zero_like(x), y)
    for k in range(8):
        if lut >> k & 1:
            term = b.and_(b.and_(x if k & 4 else b.not_(x), y if k & 2 else b.not_(y)), z if k & 1 else b.not_(z))
            result = b.or_(result, term)
    return result


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
