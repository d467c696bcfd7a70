"""Embedding lookup of one rank of a split vocabulary."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference


@reference("embedding")
def embedding(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Rows of the table; zeros for ids outside [vocab_start, vocab_end)."""
    ids = inputs["ids"].astype(np.int64)
    start, end = int(scalars["vocab_start"]), int(scalars["vocab_end"])
    mine = (ids >= start) & (ids < end)
    rows = inputs["weight"][np.where(mine, ids - start, 0)]
    return {"out": np.where(mine[:, None], rows, 0.0)}
