"""Conversions to and from e2m1, e5m2, e4m3 and ue8m0: by instruction, or by integer arithmetic where there is none.

e2m1 and ue8m0 have instructions from sm_100a on (`hardware=True`); the other way gives the same codes everywhere.
Eight e2m1 codes are a word, the first in the lowest four bits.
"""

from cutlass import Float32, Uint32

from porter.corpus.lib.floats import add_rn, fma, fmin, mul_rn
from porter.corpus.lib.inline import pure
from porter.corpus.lib.integers import byte_perm, imin, prmt, select
from porter.corpus.lib.packed import pack_e4m3

E2M1_MAX = 6.0
E5M2_MAX = 57344.0
_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF
_E8M0_NAN = 0xFF


def e8m0_up(x, hardware=False):
    """The ue8m0 code (Uint32) of the least power of two that is not below x >= 0: its exponent plus 127.

    At most 254 (2^127, also for infinity), 0 (2^-127) up to that; NaN is 255. `cvt.rp.satfinite.ue8m0x2.f32`, or an
    integer addition that carries into the exponent.
    """
    if hardware:
        return _e8m0("rp", x)
    b = x.bitcast(Uint32)
    code = select(b <= Uint32(0x00400000), Uint32(0), (b + Uint32(0x007FFFFF)) >> 23)
    return select(x == x, imin(code, Uint32(254)), Uint32(_E8M0_NAN))


def e8m0_down(x, hardware=False):
    """The ue8m0 code (Uint32) of the largest power of two that is not above x >= 0; 0 below 2^-127, at most 254, NaN is
    255. `cvt.rz.satfinite.ue8m0x2.f32`, or the exponent's bits."""
    if hardware:
        return _e8m0("rz", x)
    return select(x == x, imin(x.bitcast(Uint32) >> 23, Uint32(254)), Uint32(_E8M0_NAN))


def _e8m0(rounding, x):
    text = f"{{ .reg .b16 t; cvt.{rounding}.satfinite.ue8m0x2.f32 t, $1, $1; cvt.u32.u16 $0, t; and.b32 $0, $0, 255; }}"
    return pure(text, Uint32, x)


def from_e8m0(code, hardware=False):
    """The power of two of a ue8m0 code (Uint32), Float32; NaN for 255. `cvt.rn.bf16x2.ue8m0x2`, or a shift."""
    if hardware:
        text = "{ .reg .b16 t; cvt.u16.u32 t, $1; cvt.rn.bf16x2.ue8m0x2 $0, t; }"
        return (pure(text, Uint32, code) << 16).bitcast(Float32)
    b = select(code == Uint32(0), Uint32(0x00400000), code << 23)
    return select(code == Uint32(_E8M0_NAN), Uint32(_MAGNITUDE), b).bitcast(Float32)


def pack_e2m1(values, hardware=False, products=False):
    """Float32 values (a multiple of 8) as e2m1 codes, eight to a word: to the nearest, ties to even, at most 6; NaN
    is 6. `cvt.rn.satfinite.e2m1x2.f32`, or `fma.rn.sat.f32`, `fma.rn.f32` and `add.rn.f32` that round to whole codes,
    and `prmt.b32`. `products`: the values are results of arithmetic, whose NaN has no sign; that saves an
    instruction a value."""
    if hardware:
        pairs = [f"cvt.rn.satfinite.e2m1x2.f32 b{i}, ${2 * i + 2}, ${2 * i + 1};" for i in range(4)]
        text = f"{{ .reg .b8 b0, b1, b2, b3; {' '.join(pairs)} mov.b32 $0, {{b0, b1, b2, b3}}; }}"
        return tuple(pure(text, Uint32, *values[i : i + 8]) for i in range(0, len(values), 8))
    signed = values if products else [fmin(v, Float32(E2M1_MAX)) for v in values]  # NaN: +6
    return tuple(_e2m1_word(signed[i : i + 8]) for i in range(0, len(values), 8))


_WHOLE = 12582912.0  # 1.5 * 2^23: what is added to it is rounded to a whole number, the last bits of the sum
_WHOLE_BITS = 0x4B400000


def _e2m1_word(values):
    """Eight e2m1 codes. Over |x| a code rises by 4 up to 2, by 2 up to 4, and by 1 up to 6: the sum of |x| / 2,
    |x| / 2 - 1 and |x| / 2 - 2, each held between 0 and 1 and all exact there, times these. Where one of them is
    neither 0 nor 1, the sum of those before is even, so that ties are to even. Comparisons go at half the rate of
    sums, so that there is one only."""
    word = Uint32(0)
    for v in reversed(values):
        size = fmin(abs(v), Float32(E2M1_MAX))  # NaN: 6
        code = fma(_held(size, 0.0), Float32(4.0), Float32(_WHOLE))
        code = fma(_held(size, -1.0), Float32(2.0), code)
        word = word * 16 + add_rn(code, _held(size, -2.0)).bitcast(Uint32)
    known = sum(_WHOLE_BITS << (4 * i) for i in range(8)) & 0xFFFFFFFF
    even, odd = (_sign_bytes([v.bitcast(Uint32) for v in values[i::2]]) for i in (0, 1))
    return (word - Uint32(known)) | (even & Uint32(0x08080808)) | (odd & Uint32(0x80808080))


def _held(size, more):
    """size / 2 + more, between 0 and 1."""
    return pure("fma.rn.sat.f32 $0, $1, $2, $3;", Float32, size, Float32(0.5), Float32(more))


def _sign_bytes(four):
    """A word whose bytes are 255 where a number is negative, else 0 (three `prmt.b32`)."""
    low, high = (prmt(four[i], four[i + 1], 0x00FB) for i in (0, 2))
    return byte_perm(low, high, 0x5410)


def unpack_e2m1(words, hardware=False):
    """The values of e2m1 codes, eight a word, Float32. `cvt.rn.f16x2.e2m1x2`, or bits that become the exponent and a
    `mul.rn.f32` by 2^126."""
    values = []
    for w in words:
        if hardware:
            for i in range(4):
                text = f"{{ .reg .b8 b0, b1, b2, b3; mov.b32 {{b0, b1, b2, b3}}, $1; cvt.rn.f16x2.e2m1x2 $0, b{i}; }}"
                values += _halves(pure(text, Uint32, w))
        else:
            for i in range(8):
                code = w >> (4 * i)
                b = ((code & Uint32(8)) << 28) | ((code & Uint32(7)) << 22)
                values.append(mul_rn(b.bitcast(Float32), Float32(2.0**126)))
    return values


def unpack_e4m3(words, count):
    """The first `count` (even) values of e4m3 codes, four a word, Float32 (`cvt.rn.f16x2.e4m3x2`, `cvt.f32.f16`)."""
    return _unpack_fp8(words, count, "e4m3")


def unpack_e5m2(words, count):
    """The first `count` (even) values of e5m2 codes, four a word, Float32 (`cvt.rn.f16x2.e5m2x2`, `cvt.f32.f16`)."""
    return _unpack_fp8(words, count, "e5m2")


def _unpack_fp8(words, count, name):
    values = []
    for i in range(0, count, 2):
        text = f"{{ .reg .b16 p0, p1; mov.b32 {{p0, p1}}, $1; cvt.rn.f16x2.{name}x2 $0, p{i // 2 % 2}; }}"
        values += _halves(pure(text, Uint32, words[i // 4]))
    return values


def pack_e5m2(values, clamp=False):
    """Float32 values (1, 2, or a multiple of 4) as e5m2 codes, four to a word: to the nearest, ties to even,
    saturating (`cvt.rn.satfinite.e5m2x2.f32`). NaN stays, or with `clamp` becomes 57344, as CUDA's clamp before a cast
    leaves it (`min.f32`)."""
    values = [fmin(v, Float32(E5M2_MAX)) for v in values] if clamp else values
    if len(values) <= 2:
        values = [*values, Float32(0.0)] if len(values) == 1 else values
        return (pure("{ .reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t, $2, $1; cvt.u32.u16 $0, t; }", Uint32, *values),)
    four = (
        "{ .reg .b16 l, h; cvt.rn.satfinite.e5m2x2.f32 l, $2, $1; cvt.rn.satfinite.e5m2x2.f32 h, $4, $3; "
        "mov.b32 $0, {l, h}; }"
    )
    return tuple(pure(four, Uint32, *values[i : i + 4]) for i in range(0, len(values), 4))


def pack_fp8(values, codes):
    """Float32 values (1, 2, or a multiple of 4) as fp8 codes, "e4m3" or "e5m2", saturating, NaN to the largest
    (`cvt.rn.satfinite.e4m3x2.f32`, `cvt.rn.satfinite.e5m2x2.f32`)."""
    return pack_e5m2(values, clamp=True) if codes == "e5m2" else pack_e4m3(values)


def _halves(word):
    """Both halves of a word of two float16, as Float32."""
    return [
        pure("{ .reg .b16 l, h; mov.b32 {l, h}, $1; cvt.f32.f16 $0, l; }", Float32, word),
        pure("{ .reg .b16 l, h; mov.b32 {l, h}, $1; cvt.f32.f16 $0, h; }", Float32, word),
    ]
