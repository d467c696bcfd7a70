"""Which CUDA lines a line of a port came from: after an edit, and for messages."""

from __future__ import annotations

import difflib
from dataclasses import replace

from porter.model import LineMapEntry
from porter.source import NO_SPAN, Span


def reanchor(
    entries: tuple[LineMapEntry, ...], old: tuple[str, ...], new: tuple[str, ...], author: str = "person"
) -> tuple[LineMapEntry, ...]:
    """The line map after an edit, `old` and `new` being `line_hashes` of the emitted and of the present text.

    Unchanged lines move with the text and keep their author. A changed or inserted line is `author`'s; it points to the
    CUDA span of the line it replaced, else of the mapped line above it, so that a message about it finds the source.
    """
    by_line = {e.line: e for e in entries}
    moved: list[LineMapEntry] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            moved += [replace(by_line[a + 1], line=a - a0 + b0 + 1) for a in range(a0, a1) if a + 1 in by_line]
            continue
        replaced = [by_line[a + 1] for a in range(a0, a1) if a + 1 in by_line]
        above = moved[-1].span if moved else NO_SPAN
        for k, b in enumerate(range(b0, b1)):
            span = replaced[min(k, len(replaced) - 1)].span if replaced else above
            if span != NO_SPAN:
                moved.append(LineMapEntry(b + 1, span, author))
    return tuple(moved)


def cuda_span(entries: tuple[LineMapEntry, ...], line: int) -> Span:
    """The CUDA span behind a line of the port: its own, else of the nearest mapped line above it, else NO_SPAN."""
    best = max((e for e in entries if e.line <= line), key=lambda e: e.line, default=None)
    return best.span if best else NO_SPAN
