"""Which template parameters a place of the source depends on, by the names that its text leads to.

Where instances differ in a number or a type, some parameter decides it; several may have fitting values in those
instances. Only such count that the source names at that place: in the statement, in the declarations of the variables
that it uses, or in the aliases, constants, macros and classes that those name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

from porter import ir
from porter.emit.generic import Params
from porter.patterns.names import raw_name
from porter.source import NO_SPAN, Source, Span

_WORD = re.compile(r"[A-Za-z_]\w*")
_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=([^;]*);|\btypedef\b([^;]*?)\b(\w+)\s*;")
_CONSTANT = re.compile(r"\b(?:constexpr|const)\b[^;(){}=]*?\b(\w+)\s*(?:=|\{)([^;]*);")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.M)
_CLASS = re.compile(
    r"\b(?:struct|class|union)\s+(?:alignas\s*\([^;{]*?\)\s*|__align__\s*\([^;{]*?\)\s*)?(\w+)[^;{}()]*\{"
)
_FUNCTION = re.compile(r"\bconstexpr\b[^;{}()=]*?\b(\w+)\s*\([^;{}]*\)[^;{}]*\{")
_TEMPLATE = re.compile(r"\btemplate\s*<([^{};]*)>\s*[^<>]*$")


class SourceNames:
    """The names of one source file; `params_at` asks it for places of one function."""

    def __init__(self, source: Source):
        self.text = _NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source.text)
        self.clean = Source(source.path, self.text)  # without comments and strings

    @cached_property
    def meanings(self) -> dict[str, set[str]]:
        """Name -> the words of what the file says it stands for."""
        out: dict[str, set[str]] = {}
        for m in _ALIAS.finditer(self.text):
            out.setdefault(m[1] or m[4], set()).update(_WORD.findall(m[2] or m[3]))
        for pattern in (_CONSTANT, _MACRO):
            for m in pattern.finditer(self.text):
                out.setdefault(m[1], set()).update(_WORD.findall(m[2]))
        for pattern in (_CLASS, _FUNCTION):
            for m in pattern.finditer(self.text):
                words = set(_WORD.findall(m[0] + self._block(m.end())))
                head = _TEMPLATE.search(self.text[max(0, m.start() - 400) : m.start()])
                own = set(re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", head[1])) if head else set()
                out.setdefault(m[1], set()).update(words - own)
        return out

    def _block(self, start: int) -> str:
        """The text up to the brace that closes the one before `start`."""
        depth, at = 1, start
        while at < len(self.text) and depth:
            depth += {"{": 1, "}": -1}.get(self.text[at], 0)
            at += 1
        return self.text[start:at]

    def words(self, span: Span) -> set[str]:
        return set(_WORD.findall(self.clean.excerpt(span)))


@lru_cache(maxsize=4)
def names_of(source: Source) -> SourceNames:
    """The names of a file, read once for all its kernels."""
    return SourceNames(source)


class FunctionNames:
    """The names that matter in one function of the port."""

    def __init__(self, file: SourceNames | None, span: Span, params: Params, body: Iterable[ir.Stmt]):
        self.file, self.span, self.params = file, span, params
        self.seen: dict[tuple[int, int, int, int], Params] = {}
        self.locals: dict[str, set[str]] = {}
        if file is None or not params.names:
            return
        for n in ir.walk(tuple(body)):
            if isinstance(n, ir.Decl | ir.SharedDecl) and self._inside(n.span):
                self.locals.setdefault(raw_name(n.name), set()).update(file.words(n.span))
        for piece in re.split(r"[(),]", _signature(file, span)):
            if words := _WORD.findall(piece):
                self.locals.setdefault(words[-1], set()).update(words)

    def _inside(self, place: Span) -> bool:
        return place.file == self.span.file and self.span.line <= place.line <= (self.span.end_line or 1 << 30)

    def params_at(self, place: Span) -> Params | None:
        """The parameters as a place sees them; None where the place is outside of the function's text, or unknown."""
        if self.file is None or not self.params.names or place == NO_SPAN or not self._inside(place):
            return None
        key = (place.line, place.col, place.end_line, place.end_col)
        if key not in self.seen:
            words = self._closure(self.file, self.file.words(place))
            self.seen[key] = Params(self.params.names, self.params.values, frozenset(words))
        return self.seen[key]

    def _closure(self, file: SourceNames, words: set[str]) -> set[str]:
        todo, out = list(words), set(words)
        while todo:
            w = todo.pop()
            new = (self.locals.get(w, set()) | file.meanings.get(w, set())) - out
            out |= new
            todo += new
        return out


def _signature(file: SourceNames, span: Span) -> str:
    text = file.clean.excerpt(span)
    return text[: text.find("{")] if "{" in text else text
