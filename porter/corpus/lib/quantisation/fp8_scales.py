"""Scales and codes of fp8 quantisation: absolute maxima, quotients without the slow path of `div.rn`."""

from cutlass import Float32

from porter.corpus.lib.floats import fma, fmax, fmin, rcp_approx_ftz
from porter.corpus.lib.packed import pack_e4m3

E4M3_MAX = 448.0
LEAST_SCALE = 1.0 / (448.0 * 512.0)  # of dynamic scales, in float32
_LARGEST = 3.4028234663852886e38


def absmax(values):
    """Largest magnitude of some Float32, as `fmaxf` has it (NaN is passed over; `max.f32` with `abs`)."""
    largest = abs(values[0])
    for v in values[1:]:
        largest = fmax(largest, abs(v))
    return fmax(largest, Float32(0.0))


def dynamic_scale(largest, upper=None):
    """max(min(largest / 448, upper), 1 / (448 * 512)): the scale of values whose largest magnitude is given.

    The quotient is rounded to nearest: times the rounded 1/448, then corrected (`mul`, two `fma`, `min`).
    """
    inverse = Float32(1.0 / E4M3_MAX)
    q = largest * inverse
    residual = fmin(fma(Float32(E4M3_MAX), q, -largest), Float32(1.0e30))  # inf - inf where largest is infinite
    scale = fma(-residual, inverse, q)
    if upper is not None:
        scale = fmin(scale, upper)
    return fmax(scale, Float32(LEAST_SCALE))


def divided_codes(values, scale, bounded=False):
    """e4m3 codes of values / scale, the quotients rounded to nearest first, for one scale of at least 2^-100 (see
    `quotients`; `min.f32`, `cvt.rn.satfinite.e4m3x2.f32`). An infinite scale gives 0 for finite values and 448 for
    others, as the division and the clamp do."""
    return pack_e4m3(quotients(values, scale, bounded))


def quotients(values, scale, bounded=False):
    """values / scale rounded to nearest, for one scale of at least 2^-100: one `rcp.approx.ftz.f32`, and for each value
    `mul` and two `fma`. Infinity over infinity is NaN.

    `bounded`: the scale may be far below the values, so that a quotient of a finite scale is infinite; that takes
    `min.f32` and `max.f32` more.
    """
    if not bounded:
        scale = fmin(scale, Float32(_LARGEST))  # no inf * 0 in the residual
    r = rcp_approx_ftz(scale)
    found = []
    for x in values:
        q = x * r
        residual = fma(scale, q, -x)
        if bounded:  # infinite or NaN where q or the scale is infinite: q is right and stays so, as r is finite
            residual = fmax(fmin(residual, Float32(_LARGEST)), Float32(-_LARGEST))
        found.append(fma(-residual, r, q))
    return found
