"""The functions that a source file defines and where it calls them, read from its text: what their parameters stand
for at a call."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_EXPLICIT = re.compile(r"\s*(?:<([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*)>)?\s*\(")
_AFTER_HEAD = re.compile(r"\s*(?:const\b|noexcept\b)?\s*\{")
_TEMPLATE = re.compile(r"\btemplate\s*<(.*)>", re.S)
_CLASS = re.compile(r"\b(?:struct|class|union)\b[^;{}()=]*(?:\([^;{}]*?\)[^;{}()=]*)?\{")
_KEYWORDS = frozenset(
    ("if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype", "catch", "defined", "__launch_bounds__")
)


@dataclass(frozen=True)
class FunctionDefinition:
    """A function with a body that is no member of a class. `first`, `last`: its lines, head included."""

    name: str
    template: tuple[str, ...]  # names of its template parameters
    params: tuple[frozenset[str], ...]  # words of each parameter, the name among them
    names: tuple[str, ...]  # of the parameters
    first: int
    last: int


@dataclass
class SourceCall:
    """One call: words of each explicit template argument and of each argument; `line` is where it begins."""

    line: int
    template: list[set[str]] = field(default_factory=list)
    args: list[set[str]] = field(default_factory=list)


class Calls:
    """Definitions and calls of one file; `text` has neither comments nor strings."""

    def __init__(self, text: str):
        self.text = text
        self._lines = [m.end() for m in re.finditer(r"\n", text)]

    def _line(self, at: int) -> int:
        return bisect_right(self._lines, at) + 1

    @cached_property
    def definitions(self) -> list[FunctionDefinition]:
        members = [(m.end(), closing(self.text, m.end() - 1)) for m in _CLASS.finditer(self.text)]
        found = []
        for m in _CALLED.finditer(self.text):
            end = closing(self.text, m.end() - 1)
            body = _AFTER_HEAD.match(self.text, end + 1)
            if body is None or m[1] in _KEYWORDS or any(a <= m.start() < b for a, b in members):
                continue
            start = max(self.text.rfind(c, 0, m.start()) for c in ";{}") + 1
            head = _TEMPLATE.search(self.text, start, m.start())
            params = [_WORD.findall(piece.split("=")[0]) for piece in pieces(self.text[m.end() : end])]
            names = tuple(words[-1] for piece in pieces(head[1] if head else "") if (words := _words_before(piece)))
            found.append(
                FunctionDefinition(
                    m[1],
                    names,
                    tuple(frozenset(p) for p in params if p),
                    tuple(p[-1] for p in params if p),
                    self._line(start + len(self.text[start : m.start()]) - len(self.text[start : m.start()].lstrip())),
                    self._line(closing(self.text, body.end() - 1)),
                )
            )
        return found

    def at(self, line: int) -> FunctionDefinition | None:
        """The definition around a line."""
        return next((d for d in self.definitions if d.first <= line <= d.last), None)

    def of(self, name: str) -> Iterator[SourceCall]:
        """The calls of functions of a name."""
        heads = [d.first for d in self.definitions if d.name == name]
        for m in re.finditer(rf"\b{re.escape(name)}\b", self.text):
            explicit = _EXPLICIT.match(self.text, m.end())
            line = self._line(m.start())
            if explicit is None or (line in heads and _is_head(self.text, explicit.end() - 1)):
                continue
            inside = self.text[explicit.end() : closing(self.text, explicit.end() - 1)]
            template = [set(_WORD.findall(p)) for p in pieces(explicit[1] or "")]
            yield SourceCall(line, template, [set(_WORD.findall(p)) for p in pieces(inside)])


def _is_head(text: str, parenthesis: int) -> bool:
    return _AFTER_HEAD.match(text, closing(text, parenthesis) + 1) is not None


def _words_before(piece: str) -> list[str]:
    return _WORD.findall(piece.split("=")[0])


def closing(text: str, opening: int) -> int:
    """Where the bracket at `opening` closes; the end of the text where it does not."""
    pair = {"(": ")", "{": "}"}[text[opening]]
    depth = 0
    for m in re.compile(rf"[{re.escape(text[opening] + pair)}]").finditer(text, opening):
        depth += 1 if m[0] == text[opening] else -1
        if depth == 0:
            return m.start()
    return len(text)


def pieces(text: str) -> list[str]:
    """What commas outside of brackets separate."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth <= 0:
            out.append(text[start:i])
            start = i + 1
    return [*out, text[start:]] if text.strip() else []
