"""Shifts, bit counts, bit fields, byte permutes and three-input logic."""

from __future__ import annotations

from typing import Any

from porter.verify.emulator.decode.ir import Imm, Instr, Pair
from porter.verify.emulator.decode.types import B32, PRED, S32, U32
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any


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
