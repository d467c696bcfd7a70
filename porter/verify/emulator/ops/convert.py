"""cvt in all its pairs, cvt.pack, and the narrow float formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.types import B32, BF16X2, F16X2, F32, TYPES, PtxType
from porter.verify.emulator.ops import narrow
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.compare import flush_half, half_to_f32
from porter.verify.emulator.ops.floating import flush_rounded_up
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any
_INT_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")
_FLOAT_ROUNDINGS = ("rna", "rn", "rz", "rm", "rp")
_PAIRS_8 = {"e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2"}


def _relu(b: Algebra, x: V) -> V:
    """max(x, +0) of f32; NaN stays NaN."""
    return b.select(b.flt(b.const_f(32, 0.0), x), x, b.select(b.isnan(x), x, b.const_f(32, 0.0)))


def _range(t: PtxType) -> tuple[int, int]:
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.signed else (0, (1 << t.bits) - 1)


def _round_integral(b: Algebra, mode: str, x: V) -> V:
    return {"rni": b.frint, "rzi": b.ftrunc, "rmi": b.ffloor, "rpi": b.fceil}[mode](x)


def _to_f64(b: Algebra, t: PtxType, x: V, ftz: bool) -> V:
    if t.name == "f64":
        return x
    if t.name == "f32":
        return b.fpext(b.ftz(x) if ftz else x)
    return b.fpext(half_to_f32(b, x, t.name))


def float_to_int(d: PtxType, s: PtxType, mode: str, ftz: bool) -> Callable[..., V]:
    low, high = _range(d)
    nan_value = 1 << (d.bits - 1) if s.name == "f64" or d.bits == 64 else 0

    def fn(b: Algebra, x: V) -> V:
        r = _round_integral(b, mode, _to_f64(b, s, x, ftz))
        nan = b.isnan(r)
        lo, hi = b.const_f(64, float(low)), b.const_f(64, float(high))  # float(2^63-1) is 2^63: at or beyond it clamps
        too_low, too_high = b.flt(r, lo), b.fle(hi, r)
        outside = b.or_(b.or_(too_low, too_high), nan)
        safe = b.select(outside, b.const_f(64, 0.0), r)
        value = b.f64_to_s64(safe) if d.signed or d.bits < 64 else b.f64_to_u64(safe)

        def limit() -> V:
            clamped = b.select(too_low, b.const(64, low), b.const(64, high))
            return b.select(nan, b.const(64, nan_value), clamped)

        value = b.rarely(outside, limit, value)
        return value if d.bits == 64 else b.trunc(value, d.bits)

    return fn


def _extend64(b: Algebra, t: PtxType, x: V) -> V:
    if t.bits == 64:
        return x
    return b.sext(x, 64) if t.signed else b.zext(x, 64)


def _int_to_f64_odd(b: Algebra, t: PtxType, x: V) -> V:
    """An integer as f64 rounded to odd."""
    wide = _extend64(b, t, x)
    if t.bits < 64:
        return b.s64_to_f64(wide)
    negative = b.slt(wide, b.const(64, 0)) if t.signed else b.ne(b.const(64, 0), b.const(64, 0))
    magnitude = b.select(negative, b.neg(wide), wide)
    low = b.and_(magnitude, b.const(64, 0x7FF))
    sticky = b.select(b.ne(low, b.const(64, 0)), b.const(64, 0x800), b.const(64, 0))
    cut = b.or_(b.and_(magnitude, b.const(64, ~0x7FF)), sticky)
    big = b.ult(b.const(64, 1 << 53), magnitude)
    r = b.u64_to_f64(b.select(big, cut, magnitude))
    return b.select(negative, b.fsub(b.const_f(64, -0.0), r), r)


def int_to_float(d: PtxType, s: PtxType, mode: str, sat: bool) -> Callable[..., V]:
    def fn(b: Algebra, x: V) -> V:
        if d.name == "f64":
            wide = _extend64(b, s, x)
            if mode == "rn" or s.bits < 64:
                r = b.s64_to_f64(wide) if s.signed or s.bits < 64 else b.u64_to_f64(wide)
            else:
                high = b.ashr(wide, b.const(64, 32)) if s.signed else b.lshr(wide, b.const(64, 32))
                low = b.u64_to_f64(b.and_(wide, b.const(64, 0xFFFFFFFF)))
                r = b.exact64("add", mode, b.fmul(b.s64_to_f64(high), b.const_f(64, 2.0**32)), low)
                r = b.select(b.eq(wide, b.const(64, 0)), b.const_f(64, 0.0), r)
            return _saturate64(b, r) if sat else r
        odd = _int_to_f64_odd(b, s, x)
        if d.name == "f32":
            r = b.f64_to_f32(odd, mode)
            return _saturate32(b, r) if sat else r
        r = b.f64_to_f32_odd(odd)
        r = _saturate32(b, r) if sat else r
        return b.trunc(narrow.narrow(b, r, narrow.FORMATS[d.name], mode, False), 16)

    return fn


def _saturate32(b: Algebra, x: V) -> V:
    zero, one = b.const_f(32, 0.0), b.const_f(32, 1.0)
    return b.select(b.flt(zero, x), b.select(b.flt(one, x), one, x), zero)


def _saturate64(b: Algebra, x: V) -> V:
    zero, one = b.const_f(64, 0.0), b.const_f(64, 1.0)
    return b.select(b.flt(zero, x), b.select(b.flt(one, x), one, x), zero)


def int_to_int(d: PtxType, s: PtxType, sat: bool) -> Callable[..., V]:
    def fn(b: Algebra, x: V) -> V:
        if sat:
            low, high = _range(d)
            s_low, s_high = _range(s)
            bits = s.bits
            less, more = (b.slt, b.slt) if s.signed else (b.ult, b.ult)
            if high < s_high:
                k = b.const(bits, high)
                x = b.select(more(k, x), k, x)
            if low > s_low:
                k = b.const(bits, low)
                x = b.select(less(x, k), k, x)
        if d.bits == s.bits:
            return x
        if d.bits < s.bits:
            return b.trunc(x, d.bits)
        return b.sext(x, d.bits) if s.signed else b.zext(x, d.bits)

    return fn


def _widen_nan(b: Algebra, x32: V) -> V:
    """f32 NaN bits as f64 NaN bits: payload kept, quieted."""
    u = b.zext(b.bits_of(x32), 64)
    sign = b.shl(b.and_(u, b.const(64, 0x80000000)), b.const(64, 32))
    payload = b.shl(b.and_(u, b.const(64, 0x7FFFFF)), b.const(64, 29))
    return b.or_(b.or_(sign, payload), b.const(64, 0x7FF8 << 48))


def _narrow_nan(b: Algebra, x: V, d: PtxType) -> V:
    """f64 NaN bits as NaN bits of a narrower type: the top of the payload kept, quieted."""
    u = b.bits_of(x)
    mantissa = {"f32": 23, "f16": 10, "bf16": 7}[d.name]
    payload = b.and_(b.lshr(u, b.const(64, 52 - mantissa)), b.const(64, (1 << mantissa) - 1))
    exponent = ((1 << (d.bits - 1 - mantissa)) - 1) << mantissa | 1 << (mantissa - 1)
    sign = b.shl(b.lshr(u, b.const(64, 63)), b.const(64, d.bits - 1))
    return b.trunc(b.or_(b.or_(sign, payload), b.const(64, exponent)), d.bits)


def float_to_float(
    d: PtxType, s: PtxType, mode: str, ftz: bool, sat: bool, relu: bool, finite: bool
) -> Callable[..., V]:
    """cvt between float types. Results may be bits, where a NaN's payload is kept."""
    integral = mode if mode in _INT_ROUNDINGS else ""
    rounding = "rn" if integral or not mode else mode

    def from_f64(b: Algebra, x: V) -> V:
        if integral:
            x = b.canonical64(_round_integral(b, integral, x), x)
        if d.name == "f64":
            return _saturate64(b, x) if sat else x
        if d.name == "f32":
            r = b.f64_to_f32(x, rounding)
            r = b.ftz(r) if ftz else r
            if ftz:
                r = flush_rounded_up(b, r, lambda: x)
            if sat:
                return _saturate32(b, r)
            return b.rarely(b.isnan(x), lambda: _narrow_nan(b, x, d), b.bits_of(r))
        code = to_half(b, b.f64_to_f32_odd(x))
        return code if sat or relu else b.rarely(b.isnan(x), lambda: _narrow_nan(b, x, d), code)

    def to_half(b: Algebra, x32: V) -> V:
        if sat:
            x32 = _saturate32(b, x32)
        if relu:
            x32 = _relu(b, x32)
        if rounding == "rn" and not finite:
            return b.f32_to_half(x32) if d.name == "f16" else b.f32_to_bf16(x32)
        return b.trunc(narrow.narrow(b, x32, narrow.FORMATS[d.name], rounding, finite), 16)

    def fn(b: Algebra, x: V) -> V:
        if s.name == "f64":
            return from_f64(b, x)
        x32 = x if s.name == "f32" else half_to_f32(b, x, s.name)
        if d.name == "f64" and s.name in ("f16", "bf16", "f32"):
            if ftz and s.name == "f32":
                x32 = b.ftz(x32)
                nan = lambda: b.const(64, 0x7FFFFFFFE0000000)  # noqa: E731
            elif s.name == "f16":
                bits = b.zext(x, 64)
                sign = b.shl(b.and_(bits, b.const(64, 0x8000)), b.const(64, 48))
                payload = b.shl(b.and_(bits, b.const(64, 0x3FF)), b.const(64, 42))
                nan = lambda: b.or_(b.or_(sign, payload), b.const(64, 0x7FF8 << 48))  # noqa: E731
            else:
                nan = lambda: _widen_nan(b, x32)  # noqa: E731
            return b.rarely(b.isnan(x32), nan, b.bits_of(b.fpext(x32)))
        if s.name == "bf16" and d.name == "f32" and not (integral or sat or relu or ftz):
            return b.bits_of(x32)
        if ftz and s.name == "f32":
            x32 = b.ftz(x32)
        if ftz and s.name == "f16" and d.name == "f16":
            x32 = flush_half(b, x32)
        if integral:
            x32 = _round_integral(b, integral, x32)
        if d.name == "f32":
            x32 = _saturate32(b, x32) if sat else x32
            x32 = _relu(b, x32) if relu else x32
            return b.ftz(x32) if ftz else x32
        return to_half(b, x32)

    return fn


def _halves(b: Algebra, x: V) -> tuple[V, V]:
    return b.trunc(x, 16), b.trunc(b.lshr(x, b.const(32, 16)), 16)


def _widen_half_pair(b: Algebra, t: PtxType, x: V) -> tuple[V, V]:
    low, high = _halves(b, x)
    kind = "f16" if t.name == "f16x2" else "bf16"
    return half_to_f32(b, low, kind), half_to_f32(b, high, kind)


def _tf32(mode: str, relu: bool, finite: bool) -> Callable[..., V]:
    def fn(b: Algebra, x: V) -> V:
        x = _relu(b, x) if relu else x
        code = narrow.narrow(b, x, narrow.TF32, mode, finite)
        sign = b.and_(code, b.const(32, 0x40000))
        magnitude = b.and_(code, b.const(32, 0x3FFFF))
        u = b.or_(b.shl(magnitude, b.const(32, 13)), b.shl(sign, b.const(32, 13)))
        if mode == "rna":
            return b.rarely(b.isnan(x), lambda: b.and_(b.bits_of(x), b.const(32, 0xFFFFE000)), u)
        return b.rarely(b.isnan(x), lambda: b.const(32, 0x7FFFE000), u)

    return fn


@pure("cvt")
def cvt(i: Instr) -> PureOp:
    m = Mods(i)
    if m.flag("pack"):
        return _pack(i, m)
    if "rs" in m.left:
        raise m.unsupported("stochastic rounding is not modelled")
    mode = m.one_of(*_INT_ROUNDINGS, *_FLOAT_ROUNDINGS)
    ftz, sat, relu, finite = m.flag("ftz"), m.flag("sat"), m.flag("relu"), m.flag("satfinite")
    d, s = m.type(), m.type()
    m.done()
    d_float, s_float = d.kind in "fh", s.kind in "fh"
    if d.kind == "x" or s.kind == "x":
        return _narrow_pairs(i, m, d, s, mode, relu, finite, ftz)
    if d_float and s_float:
        if d.name == "bf16" and s.name == "bf16" and not mode:
            return PureOp((d,), (s,), lambda b, x: x)
        return PureOp((d,), (s,), float_to_float(d, s, mode, ftz, sat, relu, finite))
    if d_float:
        return PureOp((d,), (s,), int_to_float(d, s, mode or "rn", sat))
    if s_float:
        if mode not in _INT_ROUNDINGS:
            raise m.unsupported("needs an integer rounding")
        return PureOp((d,), (s,), float_to_int(d, s, mode, ftz))
    return PureOp((d,), (s,), int_to_int(d, s, sat))


def _narrow_pairs(i: Instr, m: Mods, d: PtxType, s: PtxType, mode: str, relu: bool, finite: bool, ftz: bool) -> PureOp:
    name = d.name
    sources = len(i.operands) - 1
    if name == "tf32":
        return PureOp((B32,), (F32,), _tf32(mode or "rna", relu, finite))
    if name in ("f16x2", "bf16x2") and s is F32 and sources == 2:
        one = float_to_float(TYPES[name[:-2]], F32, mode, ftz, False, relu, finite)

        def pair16(b: Algebra, high: V, low: V) -> V:
            return b.or_(b.shl(b.zext(one(b, high), 32), b.const(32, 16)), b.zext(one(b, low), 32))

        return PureOp((d,), (F32, F32), pair16)
    if name in _PAIRS_8 or name == "e2m1x2":
        fmt = narrow.FORMATS[name[:-2]]
        step = 4 if name == "e2m1x2" else 8

        def code(b: Algebra, x: V) -> V:
            return narrow.narrow(b, _relu(b, x) if relu else x, fmt, mode or "rn", True)

        def pair(b: Algebra, high: V, low: V) -> V:
            both = b.or_(b.shl(code(b, high), b.const(32, step)), code(b, low))
            return b.trunc(both, d.bits)

        if s is F32 and sources == 2:
            return PureOp((d,), (F32, F32), pair)
        if s in (F16X2, BF16X2) and sources == 1:

            def from_halves(b: Algebra, x: V) -> V:
                low, high = _widen_half_pair(b, s, x)
                return pair(b, high, low)

            return PureOp((d,), (s,), from_halves)
        raise m.unsupported()
    if name == "ue8m0x2":

        def exponent_pair(b: Algebra, high: V, low: V) -> V:
            codes = [narrow.narrow_ue8m0(b, x, mode, finite) for x in (high, low)]
            return b.trunc(b.or_(b.shl(codes[0], b.const(32, 8)), codes[1]), 16)

        if s is F32 and sources == 2:
            return PureOp((d,), (F32, F32), exponent_pair)
        if s is BF16X2 and sources == 1:

            def from_bf16(b: Algebra, x: V) -> V:
                low, high = _widen_half_pair(b, s, x)
                return exponent_pair(b, high, low)

            return PureOp((d,), (s,), from_bf16)
        raise m.unsupported()
    if name in ("f16x2", "bf16x2") and sources == 1:
        kind = name[:-2]

        def widened(b: Algebra, x: V) -> V:
            x32 = b.zext(x, 32)
            if s.name == "ue8m0x2":
                values = [narrow.widen_ue8m0(b, b.lshr(x32, b.const(32, k)) if k else x32) for k in (0, 8)]
            else:
                fmt = narrow.FORMATS[s.name[:-2]]
                step = 4 if s.name == "e2m1x2" else 8
                values = [narrow.widen(b, b.lshr(x32, b.const(32, k)) if k else x32, fmt) for k in (0, step)]
            if relu:
                values = [_relu(b, v) for v in values]
            codes = [b.zext(b.f32_to_half(v) if kind == "f16" else b.f32_to_bf16(v), 32) for v in values]
            return b.or_(codes[0], b.shl(codes[1], b.const(32, 16)))

        if s.name in _PAIRS_8 or s.name in ("e2m1x2", "ue8m0x2"):
            return PureOp((d,), (s,), widened)
    raise m.unsupported()


def _pack(i: Instr, m: Mods) -> PureOp:
    """cvt.pack.sat.T.s32 d, a, b{, c}: two saturated integers packed, with c's low bits above (or below) them."""
    m.flag("sat")
    names = [x for x in m.left if x not in ("b32",)]
    if not names or names[-1] not in ("s32", "u32"):
        raise m.unsupported()
    kind, source = names[0], TYPES[names[-1]]
    if kind[0] not in "us" or kind[1:] not in ("16", "8", "4", "2"):
        raise m.unsupported()
    bits, signed = int(kind[1:]), kind[0] == "s"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def one(b: Algebra, x: V) -> V:
        clamped = b.umin(x, b.const(32, high))
        if source.signed:
            clamped = b.smax(b.smin(x, b.const(32, high)), b.const(32, low))
        return b.and_(clamped, b.const(32, (1 << bits) - 1))

    def fn(b: Algebra, x: V, y: V, *c: V) -> V:
        r = b.or_(b.shl(one(b, x), b.const(32, bits)), one(b, y))
        if c:
            r = b.or_(r, b.shl(c[0], b.const(32, 2 * bits)))
        return r

    return PureOp((B32,), (source, source, B32)[: len(i.operands) - 1], fn)
