"""Activation functions on Float32, rounding by rounding as CUDA kernels compute them, without slow-path branches."""

import cutlass.cute as cute
from cutlass import Float32

from porter.corpus.lib.floats import div_rn, fma, fmin, mul_rn, rcp_approx_ftz
from porter.corpus.lib.integers import select
from porter.corpus.lib.packed import round_to

# Stands for a residual that is inf * 0: finite, above any true residual, and gone after the product with 1/d = 0.
_NO_RESIDUAL = 1.0e30


def exp(x):
    """`expf`, accurate: two-step reduction by log2(e), then `ex2.approx.ftz.f32`, instruction for instruction as nvcc
    compiles it."""
    return cute.math.exp(x)


def over_one_plus_exp(a, x):
    """a / (1 + expf(x)), the quotient rounded to nearest (`rcp.approx.ftz.f32`, two `mul`, two `fma`, one `min`).

    As a division rounded to nearest without its range check: an approximate quotient corrected by its exact residual.
    Numerator and denominator are divided by 4, which is exact, so that the reciprocal is normal for every finite
    denominator; an infinite one gives a signed zero. |a| must be above 2^-124, or have 16 bits at most.
    """
    quarter = Float32(0.25)
    d = fma(exp(x), quarter, quarter)
    a = a * quarter
    r = rcp_approx_ftz(d)
    q = a * r
    residual = fmin(fma(d, q, -a), Float32(_NO_RESIDUAL))  # +0 when exact: then -0 * r leaves the sign of a zero alone
    return fma(-residual, r, q)


def sigmoid(x):
    """1 / (1 + expf(-x)), rounded to nearest (`rcp.approx.ftz.f32`, two `fma`, one `min`, one `mul`)."""
    quarter = Float32(0.25)
    d = fma(exp(-x), quarter, quarter)
    r = rcp_approx_ftz(d)
    residual = fmin(fma(d, r, Float32(-1.0)), Float32(_NO_RESIDUAL))
    return fma(r, -residual, r) * quarter


def silu(x):
    """x / (1 + expf(-x)) of a value that came from 16 bits."""
    return over_one_plus_exp(x, -x)


def silu_exact(x):
    """x / (1 + expf(-x)) for every float32 (`div.rn.f32`)."""
    return div_rn(x, Float32(1.0) + exp(-x))


def gelu(x):
    """x/2 * (1 + erff(x / sqrt(2))): `gelu` of torch without approximation."""
    return mul_rn(mul_rn(x, Float32(0.5)), Float32(1.0) + cute.math.erf(mul_rn(x, Float32(0.7071067811865476))))


def gelu_tanh(x):
    """x/2 * (1 + tanhf(sqrt(2/pi) * (x + 0.044715 x^3))): `gelu` of torch with approximate="tanh"."""
    cube = mul_rn(mul_rn(x, x), x)
    inner = mul_rn(Float32(0.7978845608028654), fma(Float32(0.044715), cube, x))
    return mul_rn(mul_rn(Float32(0.5), x), Float32(1.0) + cute.math.tanh(inner))


def relu_above(x, threshold):
    """x where it is above the threshold, else 0 (NaN gives 0)."""
    return select(x > Float32(threshold), x, Float32(0.0))


def relu_squared(x, dtype):
    """max(x, 0)^2 (NaN gives 0)."""
    kept = relu_above(x, 0.0)
    return mul_rn(kept, kept)


def gelu_quick(x, dtype):
    """x / (1 + expf(-1.702 x))."""
    scaled = mul_rn(x, Float32(-1.702))
    return div_rn(x, Float32(1.0) + exp(scaled)) if dtype is Float32 else over_one_plus_exp(x, scaled)


def gelu_new(x, dtype):
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), every step rounded to `dtype`."""
    cube = _times(_times(x, x, dtype), x, dtype)
    inner = _plus_product(x, Float32(0.044715), cube, dtype)
    return _half_times_one_plus(x, _tanh(_times(Float32(0.79788456), inner, dtype), dtype), dtype)


def gelu_fast(x, dtype):
    """x/2 * (1 + tanh(0.79788456 x * (1 + 0.044715 x * x))), every step rounded to `dtype`."""
    inner = _plus_product(Float32(1.0), _times(Float32(0.044715), x, dtype), x, dtype)
    scaled = _times(_times(x, Float32(0.79788456), dtype), inner, dtype)
    return _half_times_one_plus(x, _tanh(scaled, dtype), dtype)


def _times(a, b, dtype):
    return round_to(mul_rn(a, b), dtype)


def _tanh(x, dtype):
    return round_to(cute.math.tanh(x), dtype)


def _plus_product(a, b, c, dtype):
    """a + b * c: fused in float32, as nvcc contracts it, else with the product rounded."""
    return fma(b, c, a) if dtype is Float32 else round_to(a + _times(b, c, dtype), dtype)


def _half_times_one_plus(x, t, dtype):
    return mul_rn(_times(Float32(0.5), x, dtype), round_to(Float32(1.0) + t, dtype))
