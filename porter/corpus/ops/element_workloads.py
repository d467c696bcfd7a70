"""Workloads of the activations, the rotary embedding and softmax."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, constant, empty, normal

WIDTHS = tuple({"width": d} for d in (2048, 4096, 8192, 14336))
ROTARY_HEADS = tuple({"q_heads": q, "k_heads": k, "head": 128} for q, k in ((32, 8), (64, 8), (8, 1)))
LENGTHS = tuple({"length": n} for n in (128, 256, 4096, 32768, 131072))
POSITIONS = 8192


def _silu_and_mul(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    x = normal(tokens, 2 * width, dtype=dtype, device=device)
    return empty(tokens, width, dtype=dtype, device=device), x, "vllm"


def _silu_and_mul_quant(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    _, x, _ = _silu_and_mul(tokens, dtype, device, width)
    return empty(tokens, width, dtype="float8_e4m3fn", device=device), x, constant(0.02, device)


def _silu_and_mul_per_block_quant(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    codes, x, _ = _silu_and_mul_quant(tokens, dtype, device, width)
    return codes, x, empty(tokens, width // 128, dtype="float32", device=device), 128, None, False


def _rotary_embedding(tokens: int, dtype: Any, device: Any, q_heads: int, k_heads: int, head: int) -> tuple[Any, ...]:
    import torch

    q, k = (normal(tokens, heads * head, dtype=dtype, device=device) for heads in (q_heads, k_heads))
    table = normal(POSITIONS, head, dtype=dtype, device=device)
    return torch.randint(0, POSITIONS, (tokens,), device=device), q, k, head, table, True, 0, False


def _softmax(tokens: int, dtype: Any, device: Any, length: int) -> tuple[Any, ...]:
    x = normal(tokens, length, dtype=dtype, device=device)
    return empty(tokens, length, dtype=dtype, device=device), x, None


ELEMENTS: dict[str, Workload] = {
    "silu_and_mul": Workload(_silu_and_mul, lambda t, e, width: 3 * t * width * e, WIDTHS),
    "silu_and_mul_quant": Workload(_silu_and_mul_quant, lambda t, e, width: (2 * e + 1) * t * width, WIDTHS),
    "silu_and_mul_per_block_quant": Workload(
        _silu_and_mul_per_block_quant, lambda t, e, width: (2 * e + 1) * t * width + 4 * t * (width // 128), WIDTHS
    ),
    "rotary_embedding": Workload(
        _rotary_embedding, lambda t, e, q_heads, k_heads, head: (2 * (q_heads + k_heads) + 1) * t * head * e,
        ROTARY_HEADS,
    ),
    "softmax": Workload(_softmax, lambda t, e, length: 2 * t * length * e, LENGTHS),
}  # fmt: skip
