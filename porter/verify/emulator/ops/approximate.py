"""The approximate instructions: one deterministic, nearly correctly rounded result, computed by plain f64 arithmetic.

Hardware gives another result within the bounds of the PTX ISA; BOUNDS holds them so that a tolerance study can move
every result to its bound. No library function is called, so every host and backend gives the same bits.
"""

from __future__ import annotations

from math import pi
from typing import Any

from porter.verify.emulator.ops.algebra import Algebra

V = Any

# Largest errors as the PTX ISA 9.1 states them, with the section. An error of n ulp is taken as n * 2^-23, relative.
# kind: relative; absolute; log (absolute where the result is within (-1, 1), that is for inputs in (0.5, 2), relative
# elsewhere); angle (absolute for inputs in [-2 pi, 2 pi], ANGLE_FAR up to 100 pi, nothing is promised beyond).
BOUNDS: dict[str, tuple[str, float]] = {
    "div": ("relative", 2.0**-22),  # 9.7.3.8: 2 ulp; div.approx for |b| in [2^-126, 2^126], div.full everywhere
    "rcp": ("relative", 2.0**-23),  # 9.7.3.13: 1 ulp
    "sqrt": ("relative", 2.0**-23),  # 9.7.3.15
    "rsqrt": ("relative", 2.0**-22.9),  # 9.7.3.16
    "sin": ("angle", 2.0**-20.5),  # 9.7.3.18
    "cos": ("angle", 2.0**-20.5),  # 9.7.3.19
    "lg2": ("log", 2.0**-22),  # 9.7.3.20
    "ex2": ("relative", 2.0**-22),  # 9.7.3.21: 2 ulp from the correctly rounded result
    "tanh": ("relative", 2.0**-11),  # 9.7.3.22
    "tanh.f16": ("absolute", 2.0**-10.987),  # 9.7.4.9
    "tanh.bf16": ("absolute", 2.0**-8),  # 9.7.4.9
    "ex2.f16": ("relative", 2.0**-9.9),  # 9.7.4.10
    "ex2.bf16": ("relative", 2.0**-7),  # 9.7.4.10
}
ANGLE_NEAR, ANGLE_FAR = 2 * pi, 2.0**-14.7


_EX2 = (1.0, 0.6931471805599453, 0.2402265069591007, 0.05550410866482158, 0.009618129107628477,
        0.0013333558146428443, 0.00015403530393381608, 1.525273380405984e-05, 1.3215486790144307e-06,
        1.0178086009239699e-07, 7.054911620801123e-09)  # ln(2)^k / k!  # fmt: skip
_ATANH = (2.8853900817779268, 0.9617966939259756, 0.5770780163555854, 0.4121985831111324, 0.3205988979753252,
          0.2623081892525388, 0.22195308321368668, 0.19235933878519512, 0.16972882833987804)  # fmt: skip
# 2 / ((2k+1) ln 2)
_SIN = (1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800)
_COS = (1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600)
_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11


def _polynomial(b: Algebra, x: V, coefficients: tuple[float, ...]) -> V:
    r = b.const_f(64, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        r = b.fadd(b.fmul(r, x), b.const_f(64, c))
    return r


def _power_of_two(b: Algebra, n: V) -> V:
    """2^n for an f64 that holds an integer in [-1022, 1023]."""
    return b.as_f64(b.shl(b.add(b.f64_to_s64(n), b.const(64, 1023)), b.const(64, 52)))


def _clamp(b: Algebra, x: V, low: float, high: float) -> V:
    lo, hi = b.const_f(64, low), b.const_f(64, high)
    return b.select(b.flt(x, lo), lo, b.select(b.flt(hi, x), hi, x))


def exp2_f64(b: Algebra, x: V) -> V:
    """2^x of an f64; x beyond +-400 gives 2^+-400, enough for every f32 and f16 user."""
    x = _clamp(b, x, -400.0, 400.0)
    n = b.frint(x)
    n_safe = b.select(b.isnan(x), b.const_f(64, 0.0), n)
    return b.fmul(_polynomial(b, b.fsub(x, n), _EX2), _power_of_two(b, n_safe))


def _lg2(b: Algebra, x: V) -> V:
    """log2 of a positive finite f64 (which is normal: it came from f32)."""
    u = b.bits_of(x)
    exponent = b.sub(b.lshr(u, b.const(64, 52)), b.const(64, 1023))
    m = b.or_(b.and_(u, b.const(64, (1 << 52) - 1)), b.const(64, 1023 << 52))
    m = b.as_f64(m)
    big = b.flt(b.const_f(64, 1.4142135623730951), m)
    m = b.select(big, b.fmul(m, b.const_f(64, 0.5)), m)
    exponent = b.add(exponent, b.from_bool(big, 64))
    one = b.const_f(64, 1.0)
    t = b.fdiv(b.fsub(m, one), b.fadd(m, one))
    return b.fadd(b.s64_to_f64(exponent), b.fmul(t, _polynomial(b, b.fmul(t, t), _ATANH)))


def _sin_cos(b: Algebra, x: V, shift: int) -> V:
    """sin (shift 0) or cos (shift 1) of an f64 that came from f32; infinities give NaN."""
    bounded = _clamp(b, x, -(2.0**31), 2.0**31)
    bounded = b.select(b.isnan(x), b.const_f(64, 0.0), bounded)
    k = b.frint(b.fmul(bounded, b.const_f(64, 2 / pi)))
    r = b.fsub(b.fsub(bounded, b.fmul(k, b.const_f(64, _HALF_PI_HIGH))), b.fmul(k, b.const_f(64, _HALF_PI_LOW)))
    q = b.add(b.f64_to_s64(k), b.const(64, shift))
    r2 = b.fmul(r, r)
    s, c = b.fmul(r, _polynomial(b, r2, _SIN)), _polynomial(b, r2, _COS)
    zero = b.const(64, 0)
    value = b.select(b.eq(b.and_(q, b.const(64, 1)), zero), s, c)
    flip = b.shl(b.and_(q, b.const(64, 2)), b.const(64, 62))
    value = b.as_f64(b.xor(b.bits_of(value), flip))
    # -0 and exact zeros keep their sign; infinity - infinity and NaN spread as NaN
    if shift == 0:
        value = b.select(b.feq(x, b.const_f(64, 0.0)), x, value)
    return b.fadd(value, b.fsub(x, x))


def _tanh(b: Algebra, x: V) -> V:
    e = exp2_f64(b, b.fmul(_clamp(b, x, -30.0, 30.0), b.const_f(64, 2.8853900817779268)))
    one, two = b.const_f(64, 1.0), b.const_f(64, 2.0)
    big = b.fsub(one, b.fdiv(two, b.fadd(e, one)))
    small = b.fsub(x, b.fmul(b.fmul(x, b.fmul(x, x)), b.const_f(64, 1.0 / 3.0)))
    tiny = b.flt(b.fabs64(x), b.const_f(64, 1e-4))
    same = b.or_(b.isnan(x), b.feq(x, b.const_f(64, 0.0)))  # -0 stays -0
    return b.select(same, x, b.select(tiny, small, big))


def approximate(b: Algebra, op: str, x: V, narrow: str = "") -> V:
    """f64 result of approximate instruction `op`, of an f64 that came from a narrower type; perturbed if asked.

    `narrow` is the half type that the instruction works in, which has bounds of its own.
    """
    zero = b.const_f(64, 0.0)
    if op == "ex2":
        r = exp2_f64(b, x)
        r = b.select(b.feq(x, b.const_f(64, float("-inf"))), zero, r)
        r = b.select(b.feq(x, b.const_f(64, float("inf"))), x, r)
    elif op == "lg2":
        positive = b.and_(b.flt(zero, x), b.flt(x, b.const_f(64, float("inf"))))
        r = _lg2(b, b.select(positive, x, b.const_f(64, 1.0)))
        special = b.select(
            b.feq(x, zero), b.const_f(64, float("-inf")), b.select(b.flt(x, zero), b.const_f(64, float("nan")), x)
        )
        r = b.select(positive, r, special)
    elif op == "rsqrt":
        r = b.fdiv(b.const_f(64, 1.0), b.fsqrt(x))
    elif op == "sqrt":
        r = b.fsqrt(x)
    elif op == "rcp":
        r = b.fdiv(b.const_f(64, 1.0), x)
    elif op in ("sin", "cos"):
        r = _sin_cos(b, x, int(op == "cos"))
    elif op == "tanh":
        r = _tanh(b, x)
    else:
        raise KeyError(op)
    return b.approximate(f"{op}.{narrow}" if narrow else op, r, x)
