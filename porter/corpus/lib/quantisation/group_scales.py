"""Scales of groups of a row whose threads are neighbours in a warp: 16 to 128 elements, a few lanes a group."""

from cutlass import Float32, Uint32

from porter.corpus.lib.floats import fmax, fmin
from porter.corpus.lib.integers import select
from porter.corpus.lib.packed import pack_e4m3
from porter.corpus.lib.quantisation.fp8_scales import absmax
from porter.corpus.lib.quantisation.int8_scales import pack_int8
from porter.corpus.lib.warp import shfl_xor, warp_max

LEAST_POWER_OF = 1e-10  # scales that become powers of two are at least this


def group_absmax(values, lanes):
    """Largest magnitude of a group of `lanes` neighbouring lanes (a power of two), each with some Float32, in every
    lane; NaN is passed over (`max.f32`, `shfl.sync.bfly.b32`)."""
    return warp_max(absmax(values), width=lanes)


def power_of_two_scale(scale):
    """(ue8m0 code, that power of two, its reciprocal) of the least power of two that is not below max(scale, 1e-10):
    Uint32, Float32, Float32. Infinity has code 255, itself and 0. An integer addition that carries into the exponent,
    on every architecture (`add.s32`)."""
    code = (fmax(scale, Float32(LEAST_POWER_OF)).bitcast(Uint32) + Uint32(0x007FFFFF)) >> 23
    inverse = select(code == Uint32(255), Uint32(0), (Uint32(254) - code) << 23)
    return code, (code << 23).bitcast(Float32), inverse.bitcast(Float32)


def clamped_codes(values, low, high, codes):
    """e4m3 ("e4m3") or int8 ("i8") codes of min(max(v, low), high), NaN to the code of `low`: fp8 rounded to nearest
    even (`cvt.rn.satfinite.e4m3x2.f32`), int8 towards zero, as a cast in C (`cvt.rzi.sat.s8.f32`)."""
    values = [fmin(fmax(v, low), high) for v in values]
    return pack_int8(values, "rzi") if codes == "i8" else pack_e4m3(values, clamp=False)


def four_groups(code, group, lanes):
    """The codes (Uint32, up to 255) of four neighbouring groups of `lanes` lanes, 8 at most, as one word, in every
    lane: that of group 4c + j in byte j. `group`: the number of this lane's group (two `shfl.sync.bfly.b32`)."""
    word = code << (Uint32(group & 3) * 8)
    word = word | shfl_xor(word, lanes)
    return word | shfl_xor(word, 2 * lanes)
