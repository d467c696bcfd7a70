"""Distances between floats in units in the last place, on bit patterns and on numbers. Vectorised, NaN-safe."""

from __future__ import annotations

import numpy as np

from porter.ir import SCALAR_BYTES

_MANTISSA = {"f64": 52, "f32": 23, "bf16": 7, "f16": 10, "e4m3": 3, "e5m2": 2, "e2m1": 1}
_LEAST_EXPONENT = {"f64": -1022, "f32": -126, "bf16": -126, "f16": -14, "e4m3": -6, "e5m2": -14, "e2m1": 0}


def ordered(words: np.ndarray, dtype: str) -> np.ndarray:
    """Bit patterns of a sign-magnitude float as integers in the order of the numbers; neighbours differ by one.

    Both zeros are 0; infinity is one past the largest number. int64 (f64 words are halved first).
    """
    bits = 8 * SCALAR_BYTES[dtype]
    if bits == 64:
        words, bits = words >> np.uint64(1), 63
    wide = words.astype(np.int64)
    sign = np.int64(1) << np.int64(bits - 1)
    magnitude = wide & (sign - 1)
    return np.where(wide & sign, -magnitude, magnitude)


def ulp_distance(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """How many representable numbers apart two arrays of words are (int64); meaningless where one is NaN."""
    return np.abs(ordered(a, dtype) - ordered(b, dtype))


def ulp_size(x: np.ndarray, dtype: str) -> np.ndarray:
    """The spacing of a dtype's numbers at |x| (float64), not less than its smallest subnormal; NaN stays NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        _, exponent = np.frexp(x)  # |x| in [0.5, 1) * 2**exponent
        exponent = np.where(x == 0.0, _LEAST_EXPONENT[dtype], exponent.astype(np.int64) - 1)
        exponent = np.maximum(exponent, _LEAST_EXPONENT[dtype])
        size = np.ldexp(1.0, (exponent - _MANTISSA[dtype]).astype(np.int32))
    return np.where(np.isfinite(x), size, np.nan)
