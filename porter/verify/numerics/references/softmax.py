"""Softmax and log-softmax over the last dimension."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference


@reference("softmax")
def softmax(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """A row of nothing but -inf gives zeros; a NaN or +inf gives a row of NaN."""
    x = inputs["input"]
    largest = np.fmax.reduce(x, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(x - np.where(largest == -np.inf, 0.0, largest))
    total = np.sum(e, axis=-1, keepdims=True)
    return {"out": np.where(total == 0.0, 0.0, e / total)}


@reference("log_softmax")
def log_softmax(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """x - max - log(sum(exp(x - max))); NaN for a row of nothing but -inf or with a NaN or +inf."""
    x = inputs["input"]
    shifted = x - np.fmax.reduce(x, axis=-1, keepdims=True, initial=-np.inf)
    return {"out": shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))}
