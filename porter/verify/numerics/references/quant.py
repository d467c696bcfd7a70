"""Quantisation: codes with their values before rounding, and the scales as the float32 numbers they are stored as."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference
from porter.verify.numerics.references.rounding import (
    FP8_MAX,
    FP8_MIN_SCALE,
    ceil_power_of_two,
    clamp_fp8,
    fp8_codes,
    int8_codes,
    to_f32,
)


def largest_magnitude(x: np.ndarray) -> np.ndarray:
    """max |x| over the last dimension, which is kept; NaN does not take part (fmaxf)."""
    return np.fmax.reduce(np.abs(x), axis=-1, keepdims=True, initial=0.0)


@reference("per_token_fp8_quant")
def per_token_fp8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One scale a token, max|x| / 448 with a floor; a true division."""
    x = inputs["input"]
    scale = np.fmax(to_f32(largest_magnitude(x) / FP8_MAX), FP8_MIN_SCALE)
    return {**fp8_codes("out", clamp_fp8(x / scale)), "scales": scale}


@reference("per_tensor_fp8_quant")
def per_tensor_fp8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One scale for all, with a floor; the codes by the float32 reciprocal of the scale."""
    x = inputs["input"]
    scale = np.fmax(to_f32(largest_magnitude(x.reshape(-1)) / FP8_MAX), FP8_MIN_SCALE)
    return {**fp8_codes("out", clamp_fp8(x * to_f32(1.0 / scale))), "scale": scale}


@reference("per_token_group_fp8_quant")
def per_token_group_fp8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One scale for each 128 elements of a row; rounded up to a power of two with UE8M0."""
    x = inputs["input"]
    groups = x.reshape(x.shape[0], x.shape[-1] // 128, 128)
    amax = np.fmax(largest_magnitude(groups), to_f32(scalars["eps"]))
    scale = to_f32(amax / FP8_MAX)
    if args.get("UE8M0"):
        scale = ceil_power_of_two(np.fmax(scale, to_f32(1e-10)))
    # fminf(fmaxf(q, -448), 448): here NaN becomes -448
    pre = np.fmin(np.fmax(groups / scale, -FP8_MAX), FP8_MAX).reshape(x.shape)
    return {**fp8_codes("output_q", pre), "output_s": scale[..., 0]}


@reference("static_int8_quant")
def static_int8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """x / scale, nearest with ties to even, saturated; NaN gives 0."""
    return int8_codes("out", inputs["input"] / inputs["scale_ptr"])


@reference("dynamic_int8_quant")
def dynamic_int8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One scale a token, max|x| / 127; codes by the float32 reciprocal 127 / max|x|, 0 for a row of zeros.

    The reciprocal of a row of denormals overflows to infinity; then 0 * inf is NaN, which the clamp sends to -128.
    """
    x = inputs["input"]
    amax = largest_magnitude(x)
    inverse = np.where(amax == 0.0, 0.0, to_f32(127.0 / amax))
    pre = np.fmin(np.fmax(x * inverse, -128.0), 127.0)
    return {**int8_codes("out", pre), "scale_out": to_f32(amax / 127.0)}
