"""The norms written with torch's operators, rounding where the kernels do: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.code_reference import dynamic_scale, e4m3, fp8, int8


def rms_norm(
    result: Any, input: Any, weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.functions.rms_norm."""
    result.copy_(_normalised(input.float(), weight, epsilon, weight_bias, profile, result.dtype))


def fused_add_rms_norm(
    input: Any, residual: Any, weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.functions.fused_add_rms_norm."""
    h = input.float() + residual.float()
    residual.copy_(h.to(residual.dtype))
    if profile != "flashinfer":
        h = residual.float()
    input.copy_(_normalised(h, weight, epsilon, weight_bias, profile, input.dtype))


def qk_norm(
    q: Any, k: Any, q_weight: Any, k_weight: Any, epsilon: float, weight_bias: float = 0.0, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.functions.qk_norm."""
    for t, w in ((q, q_weight), (k, k_weight)):
        heads = t.unflatten(-1, (-1, w.shape[0]))
        heads.copy_(_normalised(heads.float(), w, epsilon, weight_bias, profile, t.dtype))


def layer_norm(result: Any, input: Any, weight: Any, bias: Any, epsilon: float) -> None:
    """See porter.corpus.ops.norm.functions.layer_norm."""
    x = input.float()
    centred = x - x.mean(-1, keepdim=True)
    y = centred * (centred.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    y = y if weight is None else y * weight.float()
    result.copy_((y if bias is None else y + bias.float()).to(result.dtype))


def rms_norm_gated(
    result: Any, input: Any, gate: Any, weight: Any, epsilon: float, norm_before_gate: bool = True,
    activation: str = "silu",
) -> None:  # fmt: skip
    """See porter.corpus.ops.norm.functions.rms_norm_gated."""
    z = gate.float()
    act = z.sigmoid() if activation == "sigmoid" else z * z.sigmoid()
    x = input.float() if norm_before_gate else input.float() * act
    y = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight.float()
    result.copy_((y * act if norm_before_gate else y).to(result.dtype))


def rms_norm_silu(result: Any, input: Any, weight: Any, epsilon: float) -> None:
    """See porter.corpus.ops.norm.functions.rms_norm_silu."""
    x = input.float()
    y = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight.float()
    result.copy_((y * y.sigmoid()).to(result.dtype))


def qk_norm_rope(
    qkv: Any, num_heads_q: int, num_heads_k: int, num_heads_v: int, head_dim: int, eps: float, q_weight: Any,
    k_weight: Any, cos_sin_cache: Any, is_neox: bool, position_ids: Any, forced_token_heads_per_warp: int = -1,
) -> None:  # fmt: skip
    """See porter.corpus.ops.norm.heads.qk_norm_rope."""
    import torch

    rot = cos_sin_cache.shape[-1]
    angles = cos_sin_cache[position_ids].float()[:, None]
    cos, sin = angles[..., : rot // 2], angles[..., rot // 2 :]
    start = 0
    for count, w in ((num_heads_q, q_weight), (num_heads_k, k_weight)):
        heads = qkv[:, start : start + count * head_dim].unflatten(-1, (count, head_dim))
        start += count * head_dim
        x = heads.float()
        x = x * (w.float() * (x.square().mean(-1, keepdim=True) + eps).rsqrt())
        a, b = (x[..., : rot // 2], x[..., rot // 2 : rot]) if is_neox else (x[..., 0:rot:2], x[..., 1:rot:2])
        turned = (a * cos - b * sin, b * cos + a * sin)
        x[..., :rot] = torch.cat(turned, -1) if is_neox else torch.stack(turned, -1).flatten(-2)
        heads.copy_(x.to(qkv.dtype))


def _normalised(x: Any, weight: Any, epsilon: float, bias: float, profile: str, dtype: Any) -> Any:
    y = x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    if weight is not None:
        if profile == "hf":
            y = y.to(dtype).float()
        y = y * (weight.float() + bias)
    return y.to(dtype)


def rms_norm_static_fp8_quant(
    result: Any, input: Any, weight: Any, scale: Any, epsilon: float, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.quantised.rms_norm_static_fp8_quant."""
    _static_codes(result, input.float(), weight, scale, epsilon, profile, input.dtype)


def fused_add_rms_norm_static_fp8_quant(
    result: Any, input: Any, residual: Any, weight: Any, scale: Any, epsilon: float, profile: str = "vllm"
) -> None:
    """See porter.corpus.ops.norm.quantised.fused_add_rms_norm_static_fp8_quant."""
    h = input.float() + residual.float()
    residual.copy_(h.to(residual.dtype))
    _static_codes(result, residual.float() if profile == "vllm" else h, weight, scale, epsilon, profile, input.dtype)


def _static_codes(result: Any, h: Any, weight: Any, scale: Any, epsilon: float, profile: str, dtype: Any) -> None:
    import torch

    norm = _normalised(h, weight, epsilon, 0.0, profile, dtype if profile == "vllm" else torch.float32)
    result.copy_(fp8(norm.float() * (1.0 / scale.float()), result.dtype))


def rms_norm_dynamic_per_token_quant(
    result: Any, input: Any, weight: Any, scale: Any, epsilon: float, scale_ub: Any = None, residual: Any = None
) -> None:
    """See porter.corpus.ops.norm.quantised.rms_norm_dynamic_per_token_quant."""
    norm = _norm_of_sum(input, weight, epsilon, residual)
    found = dynamic_scale(norm, scale_ub, result.dtype)
    scale.copy_(found.view(scale.shape))
    codes = norm / found if result.dtype.is_floating_point else norm * (1.0 / found)
    result.copy_(_codes(codes, result.dtype))


def rms_norm_per_block_quant(
    result: Any, input: Any, weight: Any, scale: Any, epsilon: float, scale_ub: Any, residual: Any,
    group_size: int, is_scale_transposed: bool,
) -> None:  # fmt: skip
    """See porter.corpus.ops.norm.quantised.rms_norm_per_block_quant."""
    norm = _norm_of_sum(input, weight, epsilon, residual)
    groups = norm.view(-1, norm.shape[-1] // group_size, group_size)
    found = dynamic_scale(groups, scale_ub, result.dtype)
    by_row = found.squeeze(-1)
    swap = is_scale_transposed and scale.shape == by_row.t().shape and scale.stride(-1) == 1
    scale.copy_(by_row.t() if swap else by_row.view(scale.shape))
    codes = groups / found if result.dtype.is_floating_point else groups * (1.0 / found)
    result.copy_(_codes(codes, result.dtype).view(result.shape))


def _norm_of_sum(input: Any, weight: Any, epsilon: float, residual: Any) -> Any:
    """The norm in float32 values, rounded before the weight and after; residual becomes the rounded sum."""
    h = input.float()
    if residual is not None:
        h = h + residual.float()
        residual.copy_(h.to(residual.dtype))
    return _normalised(h, weight, epsilon, 0.0, "hf", input.dtype).float()


def _codes(values: Any, dtype: Any) -> Any:
    if dtype.is_floating_point:
        return e4m3(values)
    return int8(values)
