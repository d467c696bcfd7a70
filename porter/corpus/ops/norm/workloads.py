"""Workloads of the norms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter.corpus.ops.workload import EPS, HIDDEN, Workload, constant, empty, normal

HEADS = tuple({"q_heads": 32, "k_heads": 8, "head": d} for d in (64, 128, 256))


def _rows(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, Any, Any]:
    x, r = (normal(tokens, hidden, dtype=dtype, device=device) for _ in range(2))
    return x, r, normal(hidden, dtype=dtype, device=device)


def _rms_norm(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, out, w = _rows(tokens, dtype, device, hidden)
    return out, x, w, EPS, 0.0, "vllm"


def _fused_add_rms_norm(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    return *_rows(tokens, dtype, device, hidden), EPS, 0.0, "vllm"


def _qk_norm(tokens: int, dtype: Any, device: Any, q_heads: int, k_heads: int, head: int) -> tuple[Any, ...]:
    q, k = (normal(tokens, heads, head, dtype=dtype, device=device) for heads in (q_heads, k_heads))
    return q, k, *(normal(head, dtype=dtype, device=device) for _ in range(2)), EPS, 0.0, "vllm"


def _static_fp8(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, _, w = _rows(tokens, dtype, device, hidden)
    return empty(tokens, hidden, dtype="float8_e4m3fn", device=device), x, w, constant(0.02, device), EPS, "vllm"


def _add_static_fp8(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, r, w = _rows(tokens, dtype, device, hidden)
    return empty(tokens, hidden, dtype="float8_e4m3fn", device=device), x, r, w, constant(0.02, device), EPS, "vllm"


def _per_token(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, _, w = _rows(tokens, dtype, device, hidden)
    codes, scales = (
        empty(tokens, hidden, dtype="float8_e4m3fn", device=device),
        empty(tokens, 1, dtype="float32", device=device),
    )
    return codes, x, w, scales, EPS, None, None


def _per_block(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    codes, x, w, *_ = _per_token(tokens, dtype, device, hidden)
    return codes, x, w, empty(tokens, hidden // 128, dtype="float32", device=device), EPS, None, None, 128, False


def _layer_norm(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, out, w = _rows(tokens, dtype, device, hidden)
    return out, x, w, normal(hidden, dtype=dtype, device=device), EPS


def _gated(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, z, w = _rows(tokens, dtype, device, hidden)
    return normal(tokens, hidden, dtype=dtype, device=device), x, z, w, EPS, True, "silu"


def _silu(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, out, w = _rows(tokens, dtype, device, hidden)
    return out, x, w, EPS


def _qk_norm_rope(tokens: int, dtype: Any, device: Any, q_heads: int, k_heads: int, head: int) -> tuple[Any, ...]:
    import torch

    qkv = normal(tokens, (q_heads + 2 * k_heads) * head, dtype=dtype, device=device)
    wq, wk = (normal(head, dtype=dtype, device=device) for _ in range(2))
    table, positions = normal(8192, head, dtype=dtype, device=device), torch.arange(tokens, device=device) % 8192
    return qkv, q_heads, k_heads, k_heads, head, EPS, wq, wk, table, True, positions, -1


NORMS: dict[str, Workload] = {
    "rms_norm": Workload(_rms_norm, lambda t, e, hidden: (2 * t + 1) * hidden * e, HIDDEN),
    "fused_add_rms_norm": Workload(_fused_add_rms_norm, lambda t, e, hidden: (4 * t + 1) * hidden * e, HIDDEN),
    "qk_norm": Workload(
        _qk_norm, lambda t, e, q_heads, k_heads, head: 2 * (t * (q_heads + k_heads) + 1) * head * e, HEADS
    ),
    "qk_norm_rope": Workload(
        _qk_norm_rope,
        lambda t, e, q_heads, k_heads, head: 2 * t * (q_heads + k_heads) * head * e + 2 * head * e + t * (head * e + 8),
        HEADS,
    ),
    "layer_norm": Workload(_layer_norm, lambda t, e, hidden: (2 * t + 2) * hidden * e, HIDDEN),
    "rms_norm_gated": Workload(_gated, lambda t, e, hidden: (3 * t + 1) * hidden * e, HIDDEN),
    "rms_norm_silu": Workload(_silu, lambda t, e, hidden: (2 * t + 1) * hidden * e, HIDDEN),
    "rms_norm_static_fp8_quant": Workload(
        _static_fp8, lambda t, e, hidden: t * hidden * (e + 1) + hidden * e + 4, HIDDEN
    ),
    "fused_add_rms_norm_static_fp8_quant": Workload(
        _add_static_fp8, lambda t, e, hidden: t * hidden * (3 * e + 1) + hidden * e + 4, HIDDEN
    ),
    "rms_norm_dynamic_per_token_quant": Workload(
        _per_token, lambda t, e, hidden: t * hidden * (e + 1) + hidden * e + 4 * t, HIDDEN
    ),
    "rms_norm_per_block_quant": Workload(
        _per_block, lambda t, e, hidden: t * hidden * (e + 1) + hidden * e + 4 * t * (hidden // 128),
        tuple(d for d in HIDDEN if d["hidden"] % 128 == 0),
    ),
}  # fmt: skip
# vLLM's op launches the kernel of qk_norm_rope
NORMS["fused_qk_norm_rope"] = replace(NORMS["qk_norm_rope"], tuned=False)
