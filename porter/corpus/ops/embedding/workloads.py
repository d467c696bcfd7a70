"""Workloads of embedding."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, empty, normal

HIDDEN = ({"width": 2048}, {"width": 4096}, {"width": 8192})
VOCABULARY = 4096  # rows of a GPU's part of the table


def _embedding(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    import torch

    table = normal(VOCABULARY, width, dtype=dtype, device=device)
    indices = torch.randint(0, 2 * VOCABULARY, (tokens,), device=device)
    return empty(tokens, width, dtype=dtype, device=device), indices, table, 0, -1


EMBEDDING: dict[str, Workload] = {
    "embedding": Workload(_embedding, lambda t, e, width: t * (2 * width * e + 8), HIDDEN),
}
