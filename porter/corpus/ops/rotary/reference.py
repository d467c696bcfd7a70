"""Rotary embedding written with torch's operators: the fallback, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def rotary_embedding(
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    rope_dim_offset: int = 0,
    inverse: bool = False,
) -> None:
    """See porter.corpus.ops.rotary.functions.rotary_embedding."""
    cos, sin = cos_sin_cache[positions.reshape(-1)].float().unsqueeze(1).chunk(2, dim=-1)
    if inverse:
        sin = -sin
    for t in (query, key):
        if t is None or t.numel() == 0:
            continue
        rotated = _rotated(t, head_size, rope_dim_offset, cos_sin_cache.shape[-1])
        rotated.copy_(_turn(rotated, cos, sin, is_neox))


def rotary_embedding_fp8(
    query_out: Any,
    key_out: Any,
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    query_scale: float = 1.0,
    key_scale: float = 1.0,
    rope_dim_offset: int = 0,
    inverse: bool = False,
) -> None:
    """See porter.corpus.ops.rotary.functions.rotary_embedding_fp8."""
    cos, sin = cos_sin_cache[positions.reshape(-1)].float().unsqueeze(1).chunk(2, dim=-1)
    for out, t, scale in ((query_out, query, query_scale), (key_out, key, key_scale)):
        if t is None or t.numel() == 0:
            continue
        whole = t.float()
        rotated = _rotated(whole, head_size, rope_dim_offset, cos_sin_cache.shape[-1])
        rotated.copy_(_turn(rotated, cos, -sin if inverse else sin, is_neox))
        out.copy_((whole * scale).clamp(-448.0, 448.0).to(out.dtype))


def _rotated(t: Any, head_size: int, offset: int, rot: int) -> Any:
    """The part of every head that turns, a view of t."""
    heads = t.unflatten(-1, (-1, head_size)) if t.shape[-1] != head_size else t
    return heads[..., offset : offset + rot]


def _turn(rotated: Any, cos: Any, sin: Any, is_neox: bool) -> Any:
    """Turned in float32; the product with sin is rounded, the other product and the sum are one fused operation."""
    x = rotated.reshape(cos.shape[0], -1, rotated.shape[-1]).double()
    a, b = x.chunk(2, dim=-1) if is_neox else (x[..., ::2], x[..., 1::2])
    first = (a * cos - (b * sin).float()).float()
    second = (b * cos + (a * sin).float()).float()
    y = x.float()
    if is_neox:
        y[..., : first.shape[-1]], y[..., first.shape[-1] :] = first, second
    else:
        y[..., ::2], y[..., 1::2] = first, second
    return y.reshape(rotated.shape)


def rope_quantize_fp8(
    q_rope: Any, k_rope: Any, q_nope: Any, k_nope: Any, cos_sin_cache: Any, pos_ids: Any, is_neox: bool,
    quant_scale_q: float, quant_scale_kv: float, q_rope_out: Any, k_rope_out: Any, q_nope_out: Any = None,
    k_nope_out: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.rotary.quantised.rope_quantize_fp8."""
    cos, sin = cos_sin_cache[pos_ids].float().unsqueeze(1).chunk(2, dim=-1)
    for out, t, scale in ((q_rope_out, q_rope, quant_scale_q), (k_rope_out, k_rope, quant_scale_kv)):
        if t.numel():
            out.copy_((_turn(t.float(), cos, sin, is_neox) * scale).clamp(-448.0, 448.0).to(out.dtype))
    for out, t, scale in ((q_nope_out, q_nope, quant_scale_q), (k_nope_out, k_nope, quant_scale_kv)):
        if t is not None:
            out.copy_((t.float() * scale).clamp(-448.0, 448.0).to(out.dtype))
