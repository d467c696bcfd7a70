"""Activations written with torch's operators, rounding where the kernels do: fallbacks and what tests compare to."""

from __future__ import annotations

from typing import Any

E4M3_MAX = 448.0
LEAST_SCALE = 1.0 / (E4M3_MAX * 512.0)


def _halves(input: Any) -> tuple[Any, Any]:
    d = input.shape[-1] // 2
    return input[..., :d], input[..., d:]


def silu_and_mul(result: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.silu_and_mul."""
    import torch

    gate, up = _halves(input)
    result.copy_(torch.nn.functional.silu(gate) * up)


def mul_and_silu(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.mul_and_silu."""
    import torch

    first, second = _halves(input)
    out.copy_(first * torch.nn.functional.silu(second))


def gelu_and_mul(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.gelu_and_mul."""
    import torch

    gate, up = _halves(input)
    out.copy_(torch.nn.functional.gelu(gate) * up)


def gelu_tanh_and_mul(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.gelu_tanh_and_mul."""
    import torch

    gate, up = _halves(input)
    out.copy_(torch.nn.functional.gelu(gate, approximate="tanh") * up)


def fatrelu_and_mul(out: Any, input: Any, threshold: float) -> None:
    """See porter.corpus.ops.activation.fatrelu_and_mul."""
    gate, up = _halves(input)
    kept = gate.float()
    out.copy_(kept.where(kept > threshold, kept.new_zeros(())).to(input.dtype) * up)


def silu_and_mul_with_clamp(result: Any, input: Any, limit: float, alpha: float = 1.0, beta: float = 0.0) -> None:
    """See porter.corpus.ops.activation.silu_and_mul_with_clamp."""
    gate, up = _halves(input)
    gate, up = gate.clamp(max=limit).float(), up.clamp(-limit, limit)
    activated = (gate / (1.0 + (-alpha * gate).exp())).to(input.dtype)
    result.copy_(activated * (up.float() + beta).to(input.dtype))


def swigluoai_and_mul(out: Any, input: Any, alpha: float = 1.702, limit: float = 7.0) -> None:
    """See porter.corpus.ops.activation.swigluoai_and_mul."""
    gate, up = input[..., ::2].float().clamp(max=limit), input[..., 1::2].float().clamp(-limit, limit)
    out.copy_((up + 1.0) * gate / (1.0 + (-alpha * gate).exp()))


def silu_and_mul_quant(result: Any, input: Any, scale: Any) -> None:
    """See porter.corpus.ops.activation.silu_and_mul_quant."""
    import torch

    gate, up = _halves(input)
    y = (torch.nn.functional.silu(gate) * up).float() * scale.reciprocal()
    result.copy_(y.clamp(-E4M3_MAX, E4M3_MAX).to(result.dtype))


def silu_and_mul_per_block_quant(
    out: Any, input: Any, scales: Any, group_size: int, scale_ub: Any = None, is_scale_transposed: bool = False
) -> None:
    """See porter.corpus.ops.activation.silu_and_mul_per_block_quant."""
    gate, up = (half.float() for half in _halves(input))
    y = (gate * gate.sigmoid() * up).reshape(-1, gate.shape[-1] // group_size, group_size)
    s = y.abs().amax(-1) / E4M3_MAX
    if scale_ub is not None:
        s = s.minimum(scale_ub)
    s = s.clamp_min(LEAST_SCALE)
    q = (y / s.unsqueeze(-1)).clamp(-E4M3_MAX, E4M3_MAX)
    out.copy_(q.reshape(out.shape).to(out.dtype))
    if is_scale_transposed and scales.stride(-1) == 1 and scales.shape[0] == s.shape[1]:
        scales.copy_(s.t())
    else:
        scales.view(s.shape).copy_(s)


def relu_squared(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.relu_squared."""
    x = input.float()
    out.copy_(x.where(x > 0, x.new_zeros(())).square())


def gelu_new(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.gelu_new."""
    x = input
    inner = x + (x * x * x).float().mul(0.044715).to(x.dtype)
    t = inner.float().mul(0.79788456).to(x.dtype).tanh()
    out.copy_(0.5 * x * (1.0 + t))


def gelu_fast(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.gelu_fast."""
    x = input
    inner = 1.0 + x.float().mul(0.044715).to(x.dtype) * x
    t = (x.float().mul(0.79788456).to(x.dtype) * inner).tanh()
    out.copy_(0.5 * x * (1.0 + t))


def gelu_quick(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.gelu_quick."""
    x = input.float()
    out.copy_(x / (1.0 + (-1.702 * x).exp()))
