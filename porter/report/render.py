"""Print a diagnostic as compilers do: code, message, place, the source line underlined, notes and the next step."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rich.text import Text

from porter.model import Diagnostic, Severity
from porter.source import lines_of

CODE_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
TAB = "    "


def render(d: Diagnostic) -> Text:
    """The whole message, styled; `str()` of it (`.plain`) is what a pipe gets. Ends without a newline."""
    out = Text()
    out.append(f"{d.code} " if d.code else "", CODE_STYLE[d.severity])
    out.append(d.message, "bold")
    number = str(d.span.line) if d.span.line else ""
    margin = " " * max(len(number), 1)
    if d.span.file:
        place = f"{d.span.file}:{d.span.line}:{d.span.col}" if d.span.line else d.span.file
        out.append(f"\n{margin}--> ", "blue").append(place)
    row = source_line(d.span.file, d.span.line) if d.span.line else None
    if row is not None:
        text, marks = excerpt(row, d.span.line, d.span.col, d.span.end_line, d.span.end_col)
        out.append(f"\n{margin} |\n{number} |", "blue").append(f" {text}".rstrip())
        if marks.strip():
            out.append(f"\n{margin} |", "blue").append(f" {marks}", CODE_STYLE[d.severity])
    for note in d.notes:
        out.append(f"\n{margin} = ", "blue").append(note.replace("\n", f"\n{margin}   "))
    if d.help:
        out.append(f"\n{margin} = ", "blue").append("help: ", "bold").append(d.help)
    return out


def excerpt(row: str, line: int, col: int, end_line: int, end_col: int) -> tuple[str, str]:
    """The row with tabs widened, and the ^^^ below it. Columns are 1-based.

    A span of several lines is underlined to the row's end, one without an end to the end of the word it starts at.
    """
    start = min(max(col, 1) - 1, len(row))
    if end_line > line:
        stop = len(row.rstrip())
    elif end_line == line and end_col > col:
        stop = min(end_col - 1, len(row))
    else:
        stop = start + 1
        while stop < len(row) and is_word(row[start]) and is_word(row[stop]):
            stop += 1
    before, marked = row[:start].replace("\t", TAB), row[start:stop].replace("\t", TAB)
    return row.replace("\t", TAB), " " * len(before) + "^" * max(len(marked), 1)


def is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def source_line(file: str, line: int) -> str | None:
    path = Path(file).absolute()
    try:
        now = path.stat()
        rows = _lines(path, now.st_mtime_ns, now.st_size)
    except (OSError, ValueError):  # a NUL in its name
        return None
    return rows[line - 1] if 1 <= line <= len(rows) else None


@lru_cache(maxsize=64)
def _lines(path: Path, changed: int, size: int) -> tuple[str, ...]:
    # `changed` and `size` tell a file that was edited while the review is open, `path` one in another working folder
    return tuple(lines_of(path.read_text(encoding="utf-8", errors="replace")))
