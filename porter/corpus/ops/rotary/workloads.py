"""Workloads of the rotary embedding."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, empty, normal

HEADS = tuple({"q_heads": q, "k_heads": k, "head": 128} for q, k in ((32, 8), (64, 8), (8, 1)))
LATENT_HEADS = ({"heads": 16, "rope": 64, "nope": 512}, {"heads": 128, "rope": 64, "nope": 512})
POSITIONS = 8192


def _rotary_embedding(tokens: int, dtype: Any, device: Any, q_heads: int, k_heads: int, head: int) -> tuple[Any, ...]:
    import torch

    q, k = (normal(tokens, heads * head, dtype=dtype, device=device) for heads in (q_heads, k_heads))
    table = normal(POSITIONS, head, dtype=dtype, device=device)
    return torch.randint(0, POSITIONS, (tokens,), device=device), q, k, head, table, True, 0, False


def _rotary_fp8(tokens: int, dtype: Any, device: Any, **dims: int) -> tuple[Any, ...]:
    positions, q, k, head, table, *_ = _rotary_embedding(tokens, dtype, device, **dims)
    outs = (empty(*t.shape, dtype="float8_e4m3fn", device=device) for t in (q, k))
    return *outs, positions, q, k, head, table, True, 1.0, 1.0, 0, False


def _rope_quantize(tokens: int, dtype: Any, device: Any, heads: int, rope: int, nope: int) -> tuple[Any, ...]:
    import torch

    shapes = (tokens, heads, rope), (tokens, rope), (tokens, heads, nope), (tokens, nope)
    q_rope, k_rope, q_nope, k_nope = (normal(*s, dtype=dtype, device=device) for s in shapes)
    q_out, k_out, q_nope_out, k_nope_out = (empty(*s, dtype="float8_e4m3fn", device=device) for s in shapes)
    table = normal(POSITIONS, rope, dtype=dtype, device=device)
    positions = torch.randint(0, POSITIONS, (tokens,), device=device)
    return q_rope, k_rope, q_nope, k_nope, table, positions, True, 1.0, 1.0, q_out, k_out, q_nope_out, k_nope_out


ROTARY: dict[str, Workload] = {
    "rotary_embedding": Workload(
        _rotary_embedding, lambda t, e, q_heads, k_heads, head: (2 * (q_heads + k_heads) + 1) * t * head * e,
        HEADS,
    ),
    "rotary_embedding_fp8": Workload(
        _rotary_fp8, lambda t, e, q_heads, k_heads, head: t * head * ((q_heads + k_heads) * (e + 1) + e),
        HEADS, tuned=False,
    ),
    "rope_quantize_fp8": Workload(
        _rope_quantize, lambda t, e, heads, rope, nope: t * ((heads + 1) * (rope + nope) * (e + 1) + rope * e),
        LATENT_HEADS, tuned=False,
    ),
}  # fmt: skip
