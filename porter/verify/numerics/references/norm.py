"""Norms over the last dimension, statistics in float64."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference
from porter.verify.numerics.references.rounding import (
    FP8_MIN_SCALE,
    clamp_fp8,
    codes_through_element,
    nearby,
    to_element,
    to_f32,
)


def reciprocal_rms(x: np.ndarray, epsilon: float) -> np.ndarray:
    """1 / sqrt(mean(x^2) + epsilon) over the last dimension, which is kept."""
    return 1.0 / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + epsilon)


@reference("rms_norm", "rms_norm:vllm", "rms_norm:flashinfer")
def rms_norm(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One rounding, at the end; without a weight when the pointer is null."""
    x = inputs["input"]
    weight = inputs.get("weight", np.float64(1.0))
    return {"out": x * reciprocal_rms(x, scalars["epsilon"]) * weight}


@reference("rms_norm:hf")
def rms_norm_hf(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The normalised row is rounded to the element type before the weight multiplies it."""
    x = inputs["input"]
    normalised = to_element(x * reciprocal_rms(x, scalars["epsilon"]), args)
    return {"out": normalised * inputs.get("weight", np.float64(1.0))}


@reference("fused_add_rms_norm:vllm")
def fused_add_rms_norm_rounded(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The sum is rounded first; statistics and result come from the rounded sum."""
    exact = inputs["input"] + inputs["residual"]
    z = to_element(exact, args)
    return {"residual": exact, "input": z * reciprocal_rms(z, scalars["epsilon"]) * inputs["weight"]}


@reference("fused_add_rms_norm", "fused_add_rms_norm:flashinfer")
def fused_add_rms_norm(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Statistics and result come from the sum as it was before rounding."""
    h = inputs["input"] + inputs["residual"]
    return {"residual": h, "input": h * reciprocal_rms(h, scalars["epsilon"]) * inputs["weight"]}


@reference("layer_norm")
def layer_norm(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Mean and variance of the row, the variance from differences to the mean."""
    x = inputs["input"]
    centred = x - np.mean(x, axis=-1, keepdims=True)
    rstd = 1.0 / np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + scalars["epsilon"])
    return {"out": centred * rstd * inputs["gamma"] + inputs["beta"]}


@reference("qk_norm")
def qk_norm(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """RMSNorm of every head of q and of k, each with its own weight."""
    epsilon = scalars["epsilon"]
    return {n: inputs[n] * reciprocal_rms(inputs[n], epsilon) * inputs[f"{n}_weight"] for n in ("q", "k")}


@reference("rms_norm_static_fp8_quant")
def rms_norm_static_fp8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The norm rounded to the element type, times the float32 reciprocal of the scale, as e4m3."""
    x = inputs["input"]
    exact = x * reciprocal_rms(x, scalars["epsilon"]) * inputs["weight"]
    inverse = to_f32(1.0 / inputs["scale"])
    return codes_through_element("out", exact, args, lambda y: clamp_fp8(to_f32(y * inverse)))


@reference("rms_norm_dynamic_fp8_quant")
def rms_norm_dynamic_fp8_quant(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Normalised, rounded, weighted, rounded; then one scale a token from the largest of the rounded values."""
    x = inputs["input"]
    weight = inputs["weight"]
    unrounded = x * reciprocal_rms(x, scalars["epsilon"])
    exact = to_element(unrounded, args) * weight
    others = [n * weight for n in nearby(unrounded, args)]
    rounded = to_element(exact, args)
    largest = np.fmax.reduce(np.abs(rounded), axis=-1, keepdims=True, initial=0.0)
    scale = np.fmax(to_f32(largest / 448.0), FP8_MIN_SCALE)
    found = codes_through_element("out", exact, args, lambda y: clamp_fp8(y / scale), others)
    return {**found, "scales": scale}
