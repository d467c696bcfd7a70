"""Exact rounding of rationals to f64 in every mode: the slow path that the fast ones fall back on."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isqrt, ldexp


def round_fraction_f64(value: Fraction, mode: str, zero: float) -> float:
    """`value` rounded to f64 in mode rn, rz, rm or rp; an exact zero gives `zero` (which carries the sign)."""
    if value == 0:
        return zero
    negative = value < 0
    value = abs(value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    scale = max(exponent, -1022) - 52
    scaled = value / Fraction(2) ** scale
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest and (
        (mode == "rn" and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)))
        or (mode == "rp" and not negative)
        or (mode == "rm" and negative)
    ):
        whole += 1
    if whole.bit_length() + scale > 1024:
        biggest = ldexp((1 << 53) - 1, 971)
        away = mode == "rn" or (mode == "rp" and not negative) or (mode == "rm" and negative)
        result = inf if away else biggest
    else:
        result = ldexp(whole, scale)
    return -result if negative else result


def sqrt_f64(value: float, mode: str) -> float:
    """Square root of a positive finite f64 in mode rn, rz, rm or rp."""
    q = Fraction(value)
    # 140 extra bits and a sticky bit decide every rounding
    shift = 140 + (q.denominator.bit_length() // 2 + 1)
    scaled = (q.numerator << (2 * shift)) // q.denominator
    root = isqrt(scaled)
    exact = Fraction(root, 1 << shift)
    if exact * exact != q:
        exact += Fraction(1, 1 << (shift + 1))
    return round_fraction_f64(exact, mode, 0.0)
