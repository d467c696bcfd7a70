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
    """See porter.corpus.ops.rotary.rotary_embedding."""
    cos, sin = cos_sin_cache[positions.reshape(-1)].float().unsqueeze(1).chunk(2, dim=-1)
    if inverse:
        sin = -sin
    for t in (query, key):
        if t is None or t.numel() == 0:
            continue
        heads = t.unflatten(-1, (-1, head_size)) if t.shape[-1] != head_size else t
        rotated = heads[..., rope_dim_offset : rope_dim_offset + cos_sin_cache.shape[-1]]
        x = rotated.reshape(cos.shape[0], -1, rotated.shape[-1]).double()
        a, b = x.chunk(2, dim=-1) if is_neox else (x[..., ::2], x[..., 1::2])
        # the second product is rounded to float32, the first and the sum are one fused multiply-add
        first = (a * cos - (b * sin).float()).float()
        second = (b * cos + (a * sin).float()).float()
        y = x.float()
        if is_neox:
            y[..., : first.shape[-1]], y[..., first.shape[-1] :] = first, second
        else:
            y[..., ::2], y[..., 1::2] = first, second
        rotated.copy_(y.reshape(rotated.shape))
