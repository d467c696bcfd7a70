"""Softmax, top-k and embedding written with torch's operators: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def softmax(out: Any, input: Any, temperature: Any = None) -> None:
    """See porter.corpus.ops.softmax.softmax."""
    x = input.float()
    if temperature is not None:
        x = x / temperature.unsqueeze(-1)
    out.copy_(x.softmax(-1))
