"""Rounding of f32 to every narrower float format, and back. The input may be rounded to odd from something wider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.verify.emulator.ops.algebra import Algebra

V = Any


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    bits: int
    precision: int  # significand bits, implicit one included
    emin: int  # exponent of the smallest normal number
    max_code: int  # code of the largest finite magnitude
    inf_code: int | None
    nan_code: int  # what a NaN becomes (sign cleared)


F16 = Format("f16", 16, 11, -14, 0x7BFF, 0x7C00, 0x7FFF)
BF16 = Format("bf16", 16, 8, -126, 0x7F7F, 0x7F80, 0x7FFF)
TF32 = Format("tf32", 19, 11, -126, 0x3FBFF, 0x3FC00, 0x3FFFF)  # then shifted left by 13
E4M3 = Format("e4m3", 8, 4, -6, 0x7E, None, 0x7F)
E5M2 = Format("e5m2", 8, 3, -14, 0x7B, 0x7C, 0x7F)
E2M1 = Format("e2m1", 4, 2, 0, 0x7, None, 0x7)
E2M3 = Format("e2m3", 6, 4, 0, 0x1F, None, 0x1F)
E3M2 = Format("e3m2", 6, 3, -2, 0x1F, None, 0x1F)
FORMATS = {f.name: f for f in (F16, BF16, TF32, E4M3, E5M2, E2M1, E2M3, E3M2)}


def narrow(b: Algebra, x: V, fmt: Format, mode: str, saturate: bool) -> V:
    """f32 `x` as the code of `fmt` in a 32-bit integer. `mode`: rn rz rm rp rna; saturate: to the largest finite."""
    c = lambda value: b.const(32, value)  # noqa: E731
    u = b.bits_of(x)
    sign = b.ne(b.lshr(u, c(31)), c(0))
    magnitude = b.and_(u, c(0x7FFFFFFF))
    biased = b.lshr(magnitude, c(23))
    normal = b.ne(biased, c(0))
    significand = b.or_(b.and_(u, c(0x7FFFFF)), b.select(normal, c(0x800000), c(0)))
    exponent = b.select(normal, biased, c(1))  # biased by 127
    base = fmt.emin + 127
    kept = b.umax(exponent, c(base))
    shift = b.add(c(24 - fmt.precision), b.sub(kept, exponent))
    shift = b.umin(shift, c(31))
    q = b.lshr(significand, shift)
    rest = b.sub(significand, b.shl(q, shift))
    zero = c(0)
    if mode in ("rn", "rna"):
        half = b.shl(c(1), b.sub(b.umax(shift, c(1)), c(1)))
        tie = b.eq(rest, half)
        up = b.ult(half, rest)
        even_up = tie if mode == "rna" else b.and_(tie, b.ne(b.and_(q, c(1)), zero))
        up = b.or_(up, even_up)
        up = b.and_(up, b.ne(shift, zero))
    elif mode == "rz":
        up = b.ne(zero, zero)
    else:
        away = sign if mode == "rm" else b.not_(sign)
        up = b.and_(away, b.ne(rest, zero))
    code = b.add(b.shl(b.sub(kept, c(base)), c(fmt.precision - 1)), q)
    code = b.add(code, b.from_bool(up, 32))
    over = b.ult(c(fmt.max_code), code)
    infinite = b.eq(magnitude, c(0x7F800000))
    biggest = c(fmt.max_code)
    if saturate or fmt.inf_code is None:
        code = b.select(over, biggest, code)
    else:
        if mode in ("rn", "rna"):
            limit = c(fmt.inf_code)
        elif mode == "rz":
            limit = b.select(infinite, c(fmt.inf_code), biggest)
        else:
            away = sign if mode == "rm" else b.not_(sign)
            limit = b.select(b.or_(infinite, away), c(fmt.inf_code), biggest)
        code = b.select(over, limit, code)
    code = b.or_(code, b.select(sign, c(1 << (fmt.bits - 1)), zero))
    return b.select(b.ult(c(0x7F800000), magnitude), c(fmt.nan_code), code)


def widen(b: Algebra, code: V, fmt: Format) -> V:
    """The f32 value of a code (a 32-bit integer holding at least fmt.bits bits; higher bits are ignored)."""
    c = lambda value: b.const(32, value)  # noqa: E731
    sign = b.shl(b.and_(b.lshr(code, c(fmt.bits - 1)), c(1)), c(31))
    magnitude = b.and_(code, c((1 << (fmt.bits - 1)) - 1))
    mantissa_bits = fmt.precision - 1
    exponent = b.lshr(magnitude, c(mantissa_bits))
    mantissa = b.and_(magnitude, c((1 << mantissa_bits) - 1))
    normal = b.or_(b.shl(b.add(exponent, c(fmt.emin - 1 + 127)), c(23)), b.shl(mantissa, c(23 - mantissa_bits)))
    # subnormal: mantissa * 2^(emin - mantissa_bits), exact in f32 (these formats lie inside f32's normal range)
    tiny = b.bits_of(
        b.fmul(b.fptrunc(b.u64_to_f64(b.zext(mantissa, 64))), b.const_f(32, 2.0 ** (fmt.emin - mantissa_bits)))
    )
    value = b.select(b.eq(exponent, c(0)), tiny, normal)
    if fmt.inf_code is not None:
        value = b.select(b.eq(magnitude, c(fmt.inf_code)), c(0x7F800000), value)
    if fmt.nan_code > fmt.max_code:
        value = b.select(b.ult(c(fmt.inf_code or fmt.max_code), magnitude), c(0x7FFFFFFF), value)
        sign = b.select(b.ult(c(fmt.inf_code or fmt.max_code), magnitude), c(0), sign)
    return b.as_f32(b.or_(value, sign))


def narrow_ue8m0(b: Algebra, x: V, mode: str, saturate: bool) -> V:
    """f32 to an exponent byte (value 2^(code-127)), mode rz or rp, of |x|; NaN is 0xff."""
    c = lambda value: b.const(32, value)  # noqa: E731
    magnitude = b.and_(b.bits_of(x), c(0x7FFFFFFF))
    code = b.lshr(magnitude, c(23))
    mantissa = b.and_(magnitude, c(0x7FFFFF))
    if mode == "rp":
        # subnormals: 2^-127 is code 0, so anything above half of 2^-126 rounds up to code 1
        subnormal_up = b.ult(c(0x400000), mantissa)
        up = b.select(b.eq(code, c(0)), subnormal_up, b.ne(mantissa, c(0)))
        code = b.add(code, b.from_bool(up, 32))
    infinite_or_over = b.ule(c(0xFF), code)
    code = b.select(infinite_or_over, c(0xFE if saturate else 0xFF), code)
    return b.select(b.ult(c(0x7F800000), magnitude), c(0xFF), code)


def widen_ue8m0(b: Algebra, code: V) -> V:
    """The f32 value 2^(code-127); 0xff is NaN; code 0 is the subnormal 2^-127."""
    c = lambda value: b.const(32, value)  # noqa: E731
    code = b.and_(code, c(0xFF))
    value = b.select(b.eq(code, c(0)), c(0x00400000), b.shl(code, c(23)))
    return b.as_f32(b.select(b.eq(code, c(0xFF)), c(0x7FFFFFFF), value))
