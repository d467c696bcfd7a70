"""Activations written with torch's operators, rounding where the kernels do: fallbacks and what tests compare to."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.code_reference import (
    E4M3_MAX,
    INT8_MAX,
    LEAST_INT8_SCALE,
    LEAST_SCALE,
    e4m3,
    fp8,
    int8,
    quotient,
)


def _halves(input: Any) -> tuple[Any, Any]:
    d = input.shape[-1] // 2
    return input[..., :d], input[..., d:]


def _product(out: Any, activated: Any, up: Any, profile: str) -> None:
    """`activated` is float32."""
    if profile == "flashinfer":
        out.copy_(activated * up.float())
    else:
        out.copy_(activated.to(up.dtype) * up)


def silu_and_mul(result: Any, input: Any, profile: str = "vllm") -> None:
    """See porter.corpus.ops.activation.functions.silu_and_mul."""
    import torch

    gate, up = _halves(input)
    _product(result, torch.nn.functional.silu(gate.float()), up, profile)


def mul_and_silu(out: Any, input: Any, profile: str = "vllm") -> None:
    """See porter.corpus.ops.activation.functions.mul_and_silu."""
    import torch

    first, second = _halves(input)
    _product(out, torch.nn.functional.silu(second.float()), first, profile)


def gelu_and_mul(out: Any, input: Any, profile: str = "vllm") -> None:
    """See porter.corpus.ops.activation.functions.gelu_and_mul."""
    gate, up = _halves(input)
    g = gate.float()  # written out: torch's own differs between devices for infinities
    _product(out, g * 0.5 * (1.0 + (g * 0.7071067811865476).erf()), up, profile)


def gelu_tanh_and_mul(out: Any, input: Any, profile: str = "vllm") -> None:
    """See porter.corpus.ops.activation.functions.gelu_tanh_and_mul."""
    gate, up = _halves(input)
    g = gate.float()
    inner = 0.7978845608028654 * (g + 0.044715 * (g * g * g))
    _product(out, 0.5 * g * (1.0 + inner.tanh()), up, profile)


def fatrelu_and_mul(out: Any, input: Any, threshold: float) -> None:
    """See porter.corpus.ops.activation.functions.fatrelu_and_mul."""
    gate, up = _halves(input)
    kept = gate.float()
    out.copy_(kept.where(kept > threshold, kept.new_zeros(())).to(input.dtype) * up)


def silu_and_mul_with_clamp(result: Any, input: Any, limit: float, alpha: float = 1.0, beta: float = 0.0) -> None:
    """See porter.corpus.ops.activation.functions.silu_and_mul_with_clamp."""
    gate, up = _halves(input)
    gate, up = gate.clamp(max=limit).float(), up.clamp(-limit, limit)
    activated = (gate / (1.0 + (-alpha * gate).exp())).to(input.dtype)
    result.copy_(activated * (up.float() + beta).to(input.dtype))


def swigluoai_and_mul(out: Any, input: Any, alpha: float = 1.702, limit: float = 7.0) -> None:
    """See porter.corpus.ops.activation.functions.swigluoai_and_mul."""
    gate, up = input[..., ::2].float(), input[..., 1::2].float()
    most = gate.new_full((), limit)
    gate, up = gate.fmin(most), up.fmin(most).fmax(-most)  # the limit takes the place of NaN
    out.copy_((up + 1.0) * gate / (1.0 + (-alpha * gate).exp()))


def silu_and_mul_quant(result: Any, input: Any, scale: Any) -> None:
    """See porter.corpus.ops.activation.quantised.silu_and_mul_quant."""
    import torch

    gate, up = _halves(input)
    y = (torch.nn.functional.silu(gate) * up).float() * scale.reciprocal()
    result.copy_(fp8(y, result.dtype))


def silu_and_mul_per_block_quant(
    out: Any, input: Any, scales: Any, group_size: int, scale_ub: Any = None, is_scale_transposed: bool = False
) -> None:
    """See porter.corpus.ops.activation.quantised.silu_and_mul_per_block_quant."""
    gate, up = (half.float() for half in _halves(input))
    y = (gate * gate.sigmoid() * up).reshape(-1, gate.shape[-1] // group_size, group_size)
    fp8 = out.dtype.is_floating_point
    largest = y.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(-1)  # as fmaxf has it
    s = quotient(largest, E4M3_MAX if fp8 else INT8_MAX)
    if scale_ub is not None:
        s = s.minimum(scale_ub)
    s = s.clamp_min(LEAST_SCALE if fp8 else LEAST_INT8_SCALE)
    out.copy_((e4m3 if fp8 else int8)(y / s.unsqueeze(-1)).reshape(out.shape))
    if is_scale_transposed and scales.stride(-1) == 1 and scales.shape[0] == s.shape[1]:
        scales.copy_(s.t())
    else:
        scales.view(s.shape).copy_(s)


def relu_squared(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.functions.relu_squared."""
    x = input.float()
    out.copy_(x.where(x > 0, x.new_zeros(())).square())


def gelu_new(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.functions.gelu_new."""
    x = input
    inner = x + (x * x * x).float().mul(0.044715).to(x.dtype)
    t = inner.float().mul(0.79788456).to(x.dtype).tanh()
    out.copy_(0.5 * x * (1.0 + t))


def gelu_fast(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.functions.gelu_fast."""
    x = input
    inner = 1.0 + x.float().mul(0.044715).to(x.dtype) * x
    t = (x.float().mul(0.79788456).to(x.dtype) * inner).tanh()
    out.copy_(0.5 * x * (1.0 + t))


def gelu_quick(out: Any, input: Any) -> None:
    """See porter.corpus.ops.activation.functions.gelu_quick."""
    x = input.float()
    out.copy_(x / (1.0 + (-1.702 * x).exp()))
