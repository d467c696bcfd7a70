"""Scales and codes of dynamic int8 quantisation."""

from cutlass import Float32, Uint32

from porter.corpus.lib.floats import div_rn, fmax, fmin, rcp_rn
from porter.corpus.lib.inline import pure
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


def pack_int8(values):
    """Float32 values (1, 2, or a multiple of 4) as int8 codes, four to a word: rounded half to even, saturating, NaN to
    0 (`cvt.rni.sat.s8.f32`, `prmt.b32`)."""
    text = "{ .reg .b16 t; cvt.rni.sat.s8.f32 t, $1; cvt.u32.u16 $0, t; }"
    rounded = [pure(text, Uint32, v) for v in values]
    return tuple(_pack(rounded[i : i + 4]) for i in range(0, len(rounded), 4))


def _pack(codes):
    word = codes[0] & 0xFF if len(codes) == 1 else pure("prmt.b32 $0, $1, $2, 0x0040;", Uint32, codes[0], codes[1])
    if len(codes) == 4:
        high = pure("prmt.b32 $0, $1, $2, 0x0040;", Uint32, codes[2], codes[3])
        return pure("prmt.b32 $0, $1, $2, 0x5410;", Uint32, word, high)
    return word
