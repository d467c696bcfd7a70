"""The norms written with torch's operators, rounding where the kernels do: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def rms_norm(
    result: Any, input: Any, weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.rms_norm."""
    result.copy_(_normalised(input.float(), weight, epsilon, weight_bias, profile, result.dtype))


def fused_add_rms_norm(
    input: Any, residual: Any, weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.fused_add_rms_norm."""
    h = input.float() + residual.float()
    residual.copy_(h.to(residual.dtype))
    if profile != "flashinfer":
        h = residual.float()
    input.copy_(_normalised(h, weight, epsilon, weight_bias, profile, input.dtype))


def qk_norm(
    q: Any, k: Any, q_weight: Any, k_weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.qk_norm."""
    for t, w in ((q, q_weight), (k, k_weight)):
        heads = t.unflatten(-1, (-1, w.shape[0]))
        heads.copy_(_normalised(heads.float(), w, epsilon, weight_bias, profile, t.dtype))


def _normalised(x: Any, weight: Any, epsilon: float, bias: float, profile: str, dtype: Any) -> Any:
    y = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    if weight is not None:
        if profile == "hf":
            y = y.to(dtype).float()
        y = y * (weight.float() + bias)
    return y.to(dtype)
