"""A CUDA source file and places in it. Nothing here parses; it only reads text and counts lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from porter.plain_files import read_plain_text


@dataclass(frozen=True, order=True)
class Span:
    """A half-open region of one file. Lines and columns are 1-based, as compilers print them.

    `rewritten` names the patterns that rewrote what stands there, in order; it is no part of the place.
    """

    file: str
    line: int
    col: int = 1
    end_line: int = 0
    end_col: int = 0
    rewritten: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


NO_SPAN = Span("", 0, 0)


def lines_of(text: str) -> list[str]:
    """The lines as clang and Python's parser count them. str.splitlines ends one at a form feed or U+2028 too."""
    return text.removesuffix("\n").split("\n") if text else []


@dataclass(frozen=True)
class Source:
    """One .cu/.cuh file as read from disk (or from memory when `text` is given)."""

    path: Path
    text: str = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Read a plain file; raises OSError when it cannot be read and UnicodeDecodeError when it is not text."""
        p = Path(path)
        return cls(p, read_plain_text(p))

    @cached_property
    def lines(self) -> list[str]:
        return lines_of(self.text)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def excerpt(self, span: Span) -> str:
        """The text a span covers (whole lines when the span has no end)."""
        if span.line < 1 or span.line > len(self.lines):
            return ""
        if not span.end_line:
            return self.lines[span.line - 1]
        rows = self.lines[span.line - 1 : span.end_line]
        if span.line == span.end_line:
            return rows[0][span.col - 1 : span.end_col - 1]
        return "\n".join([rows[0][span.col - 1 :], *rows[1:-1], rows[-1][: span.end_col - 1]])
