"""How numbers are worded in messages."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """The count and its noun: `1 kernel`, `3 kernels`, `2 branches`, `0 entries`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{count} {noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}s"
