"""Embedding written with torch's operators: the fallback, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def embedding(out: Any, indices: Any, weight: Any, vocab_start: int = 0, vocab_end: int = -1) -> None:
    """See porter.corpus.ops.embedding.functions.embedding."""
    end = vocab_start + weight.shape[0] if vocab_end == -1 else vocab_end
    held = (indices >= vocab_start) & (indices < end)
    if weight.shape[0] == 0:
        out.zero_()
        return
    out.copy_(weight[(indices - vocab_start).where(held, indices.new_zeros(()))])
    out.masked_fill_(~held.unsqueeze(-1), 0)
