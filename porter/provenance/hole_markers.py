"""The marks of holes in a port's text: `runtime.hole(2, "PRT503", Int32)` stands where the second hole is open."""

from __future__ import annotations

import re

MARK = re.compile(r"\bruntime\.hole\((\d+)\b")


def open_holes(text: str) -> tuple[int, ...]:
    """The numbers (from 1) of the holes that are open, each once, in the order of the text."""
    return tuple(dict.fromkeys(int(n) for n in MARK.findall(text)))
