"""Messages for a model: each with its code, its line of the port, the CUDA line behind that, and the next step."""

from __future__ import annotations

from collections.abc import Sequence

from porter.model import Diagnostic, LineMapEntry, Severity
from porter.provenance.line_map import cuda_span
from porter.source import NO_SPAN


def located_messages(diagnostics: Sequence[Diagnostic], line_map: tuple[LineMapEntry, ...]) -> str:
    """`PRT811 (k.py:26, k.cu:4): message`, notes and help below. `line_map` is of the text that they are about."""
    lines = []
    for d in diagnostics:
        kind = "note" if d.severity is Severity.NOTE else d.code
        at = place(d, line_map)
        lines.append(f"{kind} ({at}): {d.message}" if at else f"{kind}: {d.message}")
        lines += [f"  {note}" for note in d.notes]
        if d.help:
            lines.append(f"  {d.help}")
    return "\n".join(lines)


def place(diagnostic: Diagnostic, line_map: tuple[LineMapEntry, ...]) -> str:
    """Where it is, by file names without folders: `k.py:26, k.cu:4`, "" when it says nothing of a place."""
    span = diagnostic.span
    name = span.file.rsplit("/", 1)[-1]
    if not span.line or not name:
        return ""
    at = f"{name}:{span.line}"
    cuda = cuda_span(line_map, span.line) if name.endswith(".py") else NO_SPAN
    return at if cuda == NO_SPAN else f"{at}, {cuda.file.rsplit('/', 1)[-1]}:{cuda.line}"
