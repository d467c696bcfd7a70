"""Scales and codes of dynamic int8 quantisation."""

from cutlass import Float32, Int32, Int64, Uint32

from porter.corpus.lib.floats import div_rn, float_to_int, fmax, fmin, rcp_rn
from porter.corpus.lib.inline import pure
from porter.corpus.lib.integers import imax, imin
from porter.corpus.lib.quantisation.fp8_scales import quotients

INT8_MAX = 127.0
LEAST_INT8_SCALE = 1.1920928955078125e-07  # of dynamic scales: float32's epsilon


def dynamic_int8_scale(largest, upper=None):
    """max(min(largest / 127, upper), float32's epsilon): the scale of values whose largest magnitude is given
    (`div.rn.f32`)."""
    scale = div_rn(largest, Float32(INT8_MAX))
    return fmax(scale if upper is None else fmin(scale, upper), Float32(LEAST_INT8_SCALE))


def int8_codes(values, scale):
    """int8 codes of values * (1 / scale), four to a word: rounded half to even, saturating (`rcp.rn.f32`,
    `cvt.rni.sat.s8.f32`, `prmt.b32`)."""
    inverse = rcp_rn(scale)
    return pack_int8([v * inverse for v in values])


def divided_int8_codes(values, scale, bounded=False):
    """int8 codes of values / scale, the quotients rounded to nearest first (see `quotients`; `cvt.rni.sat.s8.f32`,
    `prmt.b32`). NaN, also that of two infinities, gives 0."""
    return pack_int8(quotients(values, scale, bounded))


def shifted_int8_codes(values, inverse, zero):
    """int8 codes of values * inverse, rounded half to even to int32 (saturating, NaN to 0), plus the Int32 `zero`, the
    exact sum saturating (`cvt.rni.s32.f32`, `min.s32`, `max.s32`, `add.s32`, `prmt.b32`)."""
    low = Int32(imax(Int64(-128) - Int64(zero), Int64(-(1 << 31))))
    high = Int32(imin(Int64(127) - Int64(zero), Int64((1 << 31) - 1)))
    whole = [float_to_int(v * inverse, Int32, "rni") for v in values]
    return pack_codes([Uint32(imin(imax(n, low), high) + zero) for n in whole])


def pack_int8(values, rounding="rni"):
    """Float32 values (1, 2, or a multiple of 4) as int8 codes, four to a word: rounded half to even (or towards zero:
    "rzi"), saturating, NaN to 0 (`cvt.rni.sat.s8.f32`, `prmt.b32`)."""
    text = f"{{ .reg .b16 t; cvt.{rounding}.sat.s8.f32 t, $1; cvt.u32.u16 $0, t; }}"
    return pack_codes([pure(text, Uint32, v) for v in values])


def pack_codes(codes):
    """The lowest bytes of Uint32 codes (1, 2, or a multiple of 4), four to a word (`prmt.b32`)."""
    return tuple(_pack(codes[i : i + 4]) for i in range(0, len(codes), 4))


def _pack(codes):
    word = codes[0] & 0xFF if len(codes) == 1 else pure("prmt.b32 $0, $1, $2, 0x0040;", Uint32, codes[0], codes[1])
    if len(codes) == 4:
        high = pure("prmt.b32 $0, $1, $2, 0x0040;", Uint32, codes[2], codes[3])
        return pure("prmt.b32 $0, $1, $2, 0x5410;", Uint32, word, high)
    return word
