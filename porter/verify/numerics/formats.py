"""The number formats of kernel buffers as numpy codecs: f16, bf16, f32, e4m3, e5m2, e8m0, e2m1. Exact, no torch.

Decoding gives float64, which holds every value of every format. Encoding rounds float64 once, to nearest with ties to
even, as the `cvt.rn` instructions do: the 8-bit formats and e2m1 saturate (`.satfinite`), 16-bit and 32-bit ones
overflow to infinity. e8m0 is a bare exponent; its rounding is asked for, since users of scale factors disagree on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary float: `exponent` and `mantissa` bits (without the hidden one), and what the top codes mean."""

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: float  # largest finite value
    has_inf: bool
    nan: int | None  # the NaN that conversion instructions produce; None: the format has none
    saturates: bool  # out-of-range values and infinities become `largest`

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def word(self) -> type[np.unsignedinteger]:
        """The numpy type of a code; e2m1 codes come one a byte here, in the low bits."""
        return np.uint8 if self.bits <= 8 else np.uint16 if self.bits == 16 else np.uint32

    @property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias


_BF16_MAX = (2.0 - 2.0**-7) * 2.0**127
_F32_MAX = (2.0 - 2.0**-23) * 2.0**127
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("f16", 5, 10, 15, 65504.0, True, 0x7FFF, False),
        Format("bf16", 8, 7, 127, _BF16_MAX, True, 0x7FFF, False),
        Format("f32", 8, 23, 127, _F32_MAX, True, 0x7FFFFFFF, False),
        Format("e4m3", 4, 3, 7, 448.0, False, 0x7F, True),
        Format("e5m2", 5, 2, 15, 57344.0, True, 0x7F, True),
        Format("e2m1", 2, 1, 1, 6.0, False, None, True),
    )
}
ScaleRounding = Literal["nearest", "ceil", "floor"]


def decode(words: np.ndarray, dtype: str) -> np.ndarray:
    """Codes of an ir dtype (unsigned words, any shape) as float64. e2m1: one code a byte, high bits ignored.

    Raises KeyError for a dtype that is not a float format.
    """
    words = np.asarray(words)
    if dtype == "f64":
        return np.ascontiguousarray(words).view(np.float64).reshape(words.shape)
    if dtype == "f32":
        return np.ascontiguousarray(words, np.uint32).view(np.float32).reshape(words.shape).astype(np.float64)
    if dtype == "e8m0":
        return _e8m0_table()[words]
    if dtype == "e2m1":
        words = words & 0x0F
    return _table(FORMATS[dtype].name)[words]


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers (any float type) as codes of an ir dtype, rounded once from float64 to nearest, ties to even.

    NaN becomes the canonical NaN of the conversion instructions; e2m1 has none and gives its largest value, as
    `cvt.rn.satfinite.e2m1x2` does. For e8m0 see `encode_e8m0`, whose nearest rounding applies here.
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN on its way to float64
        x = np.asarray(values, np.float64)
    if dtype == "f64":
        return np.ascontiguousarray(x).view(np.uint64).reshape(x.shape)
    if dtype == "e8m0":
        return encode_e8m0(x, "nearest")
    fmt = FORMATS[dtype]
    p = fmt.mantissa + 1
    with np.errstate(all="ignore"):
        magnitude = np.where(np.isfinite(x), np.abs(x), 0.0)
        _, exponent = np.frexp(magnitude)  # magnitude in [1/2, 1) * 2**exponent
        least = fmt.least_exponent - fmt.mantissa  # log2 of the spacing of subnormal numbers
        quantum = np.where(magnitude > 0.0, np.maximum(exponent - p, least), least)  # log2 of the spacing here
        steps = np.rint(np.ldexp(magnitude, -quantum)).astype(np.int64)
        # A carry to the next power of two (steps = 2**p) is right by itself: exponent field + 1, mantissa 0.
        codes = ((quantum - least).astype(np.int64) << fmt.mantissa) + steps
    top = _code_of_largest(fmt)
    over = top if fmt.saturates else top + 1
    codes = np.where((codes > top) | np.isinf(x), over, codes)
    codes = codes | (np.signbit(x).astype(np.int64) << (fmt.bits - 1))
    codes = np.where(np.isnan(x), top if fmt.nan is None else fmt.nan, codes)
    return codes.astype(fmt.word)


def round_to(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers rounded to what a dtype can hold, still as float64."""
    return decode(encode(values, dtype), dtype)


def encode_e8m0(values: np.ndarray, rounding: ScaleRounding) -> np.ndarray:
    """Positive scale factors as exponent bytes: code c stands for 2**(c - 127), 255 for NaN.

    `ceil` is what block-scaled kernels use (`cvt.rp`), `floor` drops the mantissa (`cvt.rz`), `nearest` rounds the
    fraction with ties to the larger power. Finite: out of range saturates to 2**-127 and 2**127; zero gives 2**-127.
    """
    x = np.abs(np.asarray(values, np.float64))
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))  # x = fraction * 2**exponent, from 1/2 up
    power = exponent.astype(np.int64) - 1
    up = {"ceil": fraction > 0.5, "floor": np.zeros(x.shape, bool), "nearest": fraction >= 0.75}[rounding]
    codes = np.clip(power + up + 127, 0, 254)
    codes = np.where(x == 0.0, 0, np.where(np.isinf(x), 254, codes))
    return np.where(np.isnan(x), 255, codes).astype(np.uint8)


def pack_e2m1(codes: np.ndarray) -> np.ndarray:
    """e2m1 codes [..., 2n], one a byte, as bytes [..., n]: the even element in the low four bits."""
    return ((codes[..., 0::2] & 0x0F) | ((codes[..., 1::2] & 0x0F) << 4)).astype(np.uint8)


def unpack_e2m1(packed: np.ndarray) -> np.ndarray:
    """Bytes [..., n] as e2m1 codes [..., 2n], one a byte."""
    pairs = np.stack([packed & 0x0F, packed >> 4], axis=-1)
    return pairs.reshape(*packed.shape[:-1], -1).astype(np.uint8)


@cache
def grid_of(dtype: str) -> np.ndarray:
    """All finite values of a format of at most 16 bits, sorted, zero once (float64)."""
    fmt = FORMATS[dtype]
    half = _table(dtype)[: _code_of_largest(fmt) + 1]
    return np.concatenate([-half[:0:-1], half])


def _code_of_largest(fmt: Format) -> int:
    fraction, exponent = np.frexp(fmt.largest)
    mantissa = int(fraction * 2 ** (fmt.mantissa + 1))
    return ((int(exponent) - 1 + fmt.bias - 1) << fmt.mantissa) + mantissa


@cache
def _table(dtype: str) -> np.ndarray:
    """float64 of every code of a format of at most 16 bits."""
    fmt = FORMATS[dtype]
    codes = np.arange(1 << fmt.bits, dtype=np.int64)
    field = (codes >> fmt.mantissa) & ((1 << fmt.exponent) - 1)
    mantissa = codes & ((1 << fmt.mantissa) - 1)
    significand = np.where(field == 0, mantissa, mantissa + (1 << fmt.mantissa)).astype(np.float64)
    values = np.ldexp(significand, np.maximum(field, 1) - fmt.bias - fmt.mantissa)
    magnitude = codes & ((1 << (fmt.bits - 1)) - 1)
    top = _code_of_largest(fmt)
    values[magnitude > top] = np.nan
    if fmt.has_inf:
        values[magnitude == top + 1] = np.inf
    return np.where(codes >> (fmt.bits - 1), -values, values)


@cache
def _e8m0_table() -> np.ndarray:
    values = np.ldexp(1.0, np.arange(256) - 127)
    values[255] = np.nan
    return values
