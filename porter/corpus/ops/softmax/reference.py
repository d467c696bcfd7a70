"""Softmax and top-k written with torch's operators: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def softmax(out: Any, input: Any, temperature: Any = None) -> None:
    """See porter.corpus.ops.softmax.functions.softmax."""
    x = input.float()
    if temperature is not None:
        x = x / temperature.reshape(*x.shape[:-1], 1)
    out.copy_(x.softmax(-1))


def topk(values: Any, indices: Any, input: Any, softmax: bool = False) -> None:
    """See porter.corpus.ops.softmax.topk.topk."""
    k = values.shape[-1]
    x = input.float() + 0.0  # -0 equals 0: not every sort of torch says so
    order = x.sort(dim=-1, descending=True, stable=True)
    chosen = order.values[..., :k]
    values.copy_(chosen.softmax(-1) if softmax else chosen)
    indices.copy_(order.indices[..., :k])
