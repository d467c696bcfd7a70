"""The norms written with torch's operators, rounding where the kernels do: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def rms_norm(
    result: Any, input: Any, weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.rms_norm."""
    x = input.float()
    y = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    if weight is not None:
        if profile == "hf":
            y = y.to(input.dtype).float()
        y = y * (weight.float() + weight_bias)
    result.copy_(y.to(result.dtype))
