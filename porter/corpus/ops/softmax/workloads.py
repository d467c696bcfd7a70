"""Workloads of softmax and top-k."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, empty, normal

LENGTHS = tuple({"length": n} for n in (128, 256, 4096, 32768, 131072))
CHOSEN = ({"length": 128, "k": 8}, {"length": 256, "k": 8}, {"length": 4096, "k": 64})


def _softmax(tokens: int, dtype: Any, device: Any, length: int) -> tuple[Any, ...]:
    x = normal(tokens, length, dtype=dtype, device=device)
    return empty(tokens, length, dtype=dtype, device=device), x, None


def _topk(tokens: int, dtype: Any, device: Any, length: int, k: int) -> tuple[Any, ...]:
    values, indices = (empty(tokens, k, dtype=t, device=device) for t in ("float32", "int32"))
    return values, indices, normal(tokens, length, dtype=dtype, device=device), False


SOFTMAX: dict[str, Workload] = {
    "softmax": Workload(_softmax, lambda t, e, length: 2 * t * length * e, LENGTHS),
    "topk": Workload(_topk, lambda t, e, length, k: t * (length * e + 8 * k), CHOSEN, tuned=False),
}
