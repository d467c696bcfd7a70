"""Rotary position embedding."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference


@reference("rotary_embedding")
def rotary_embedding(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """NeoX halves: elements i and i + rot_dim / 2 of each head turn together; past rot_dim nothing changes."""
    half = int(scalars["rot_dim"]) // 2
    rows = inputs["cos_sin_cache"][inputs["positions"].astype(np.int64)]  # [tokens, rot_dim]
    cos, sin = rows[:, None, :half], rows[:, None, half : 2 * half]
    turned = {}
    for name in ("query", "key"):
        x = np.array(inputs[name], np.float64)
        first, second = x[..., :half].copy(), x[..., half : 2 * half].copy()
        x[..., :half] = first * cos - second * sin
        x[..., half : 2 * half] = second * cos + first * sin
        turned[name] = x
    return turned
