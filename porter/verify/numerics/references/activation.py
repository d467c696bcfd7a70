"""Gated activations: an activation of one half of the input times the other half."""

from __future__ import annotations

import math

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference
from porter.verify.numerics.references.rounding import to_element


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x); NaN at -inf, where engines divide infinity by infinity."""
    return x * sigmoid(x)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x / 2 * (1 + tanh(u)), written as x * sigmoid(2 u): the sum would cancel for negative x."""
    u = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return x * sigmoid(2.0 * u)


def _halves(inputs: Arrays) -> tuple[np.ndarray, np.ndarray]:
    x = inputs["input"]
    d = x.shape[-1] // 2
    return x[..., :d], x[..., d:]


@reference("silu_and_mul:vllm")
def silu_and_mul_rounded(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The activation is rounded to the element type before the product, as unfused kernels do."""
    gate, up = _halves(inputs)
    return {"out": to_element(silu(gate), args) * up}


@reference("silu_and_mul", "silu_and_mul:flashinfer")
def silu_and_mul(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One rounding, at the end."""
    gate, up = _halves(inputs)
    return {"out": silu(gate) * up}


@reference("gelu_tanh_and_mul:vllm")
def gelu_tanh_and_mul_rounded(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The activation is rounded to the element type before the product."""
    gate, up = _halves(inputs)
    return {"out": to_element(gelu_tanh(gate), args) * up}


@reference("gelu_tanh_and_mul", "gelu_tanh_and_mul:flashinfer")
def gelu_tanh_and_mul(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """One rounding, at the end."""
    gate, up = _halves(inputs)
    return {"out": gelu_tanh(gate) * up}


@reference("swigluoai_and_mul")
def swigluoai_and_mul(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Interleaved gate and up, both clamped; (up + 1) * gate * sigmoid(alpha * gate). NaN goes through the clamps."""
    alpha, limit = scalars["alpha"], scalars["limit"]
    gate, up = inputs["input"][..., 0::2], inputs["input"][..., 1::2]
    gate = np.minimum(gate, limit)
    up = np.clip(up, -limit, limit)
    return {"out": (up + 1.0) * gate * sigmoid(alpha * gate)}
