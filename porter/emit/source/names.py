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
from porter.emit.source.calls import Calls, FunctionDefinition
from porter.emit.spelling import parameter
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
        self.calls = Calls(self.text)

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


Word = tuple[str, int]  # a word, and the first line of the function in which it stands (0: of the port's own function)
OWN = 0


class FunctionNames:
    """The names that matter in one function of the port, and in the functions of the file that are inlined there."""

    def __init__(self, file: SourceNames | None, span: Span, params: Params, body: Iterable[ir.Stmt]):
        self.file, self.span, self.params = file, span, params
        self.seen: dict[tuple[int, int, int, int], Params | None] = {}
        self.locals: dict[Word, set[str]] = {}
        self.inlined: dict[int, FunctionDefinition] = {}
        if file is None or not params.names:
            return
        for n in ir.walk(tuple(body)):
            if isinstance(n, ir.Decl | ir.SharedDecl) and (scope := self._scope(n.span)) is not None:
                self.locals.setdefault((raw_name(n.name), scope), set()).update(file.words(n.span))
        for piece in re.split(r"[(),]", _signature(file, span)):
            if words := _WORD.findall(piece):
                self.locals.setdefault((words[-1], OWN), set()).update(words)

    def _scope(self, place: Span) -> int | None:
        """Which function's text a place is in; None where no function is known, such as in a class or a header."""
        if place.file != self.span.file:
            return None
        return self._scope_of_line(place.line)

    def _scope_of_line(self, line: int) -> int | None:
        assert self.file is not None
        if self.span.line <= line <= (self.span.end_line or 1 << 30):
            return OWN
        found = self.file.calls.at(line)
        if found is None:
            return None
        self.inlined[found.first] = found
        return found.first

    def params_at(self, place: Span) -> Params | None:
        """The parameters as a place sees them; None where the place is in a text that is not followed, or unknown."""
        if self.file is None or not self.params.names or place == NO_SPAN or place.file != self.span.file:
            return None
        key = (place.line, place.col, place.end_line, place.end_col)
        if key not in self.seen:
            scope = self._scope(place)
            words = None if scope is None else self._closure(self.file, {(w, scope) for w in self.file.words(place)})
            self.seen[key] = words if words is None else Params(self.params.names, self.params.values, words)
        return self.seen[key]

    def params_of_argument(self, call: Span, function: str, name: str, index: int) -> Params | None:
        """The parameters as a call sees them in what it gives for one template parameter of a function: the argument
        itself, or those that it is deduced from; None where that is not known."""
        scope = self._scope(call) if self.file is not None and self.params.names and call != NO_SPAN else None
        if scope is None or self.file is None:
            return None
        given = next(Calls(self.file.clean.excerpt(call)).of(function), None)
        if given is None:
            return None
        if index < len(given.template):
            words = given.template[index]
        else:
            heads = [d for d in self.file.calls.definitions if d.name == function and name in d.template]
            places = {i for d in heads for i, p in enumerate(d.params) if name in p}
            words = {w for i in places if i < len(given.args) for w in given.args[i]}
        found = self._closure(self.file, {(w, scope) for w in words})
        return Params(self.params.names, self.params.values, found) if found and found & {*self.params.names} else None

    def _closure(self, file: SourceNames, words: set[Word]) -> frozenset[str] | None:
        """What the words lead to, as the port's function names it; None where a call cannot be followed."""
        todo, out = list(words), set(words)
        while todo:
            w, scope = todo.pop()
            new = {(x, scope) for x in self.locals.get((w, scope), set()) | file.meanings.get(w, set())}
            if scope != OWN:
                given = self._given(file, w, self.inlined[scope])
                if given is None:
                    return None
                new |= given
            new -= out
            out |= new
            todo += new
        return frozenset(n for w, scope in out if scope == OWN or w == "sizeof" for n in (w, parameter(w)))

    def _given(self, file: SourceNames, word: str, function: FunctionDefinition) -> set[Word] | None:
        """The words that calls give for a parameter or a template parameter of an inlined function."""
        out: set[Word] = set()
        if word not in function.template and word not in function.names:
            return out
        followed = False
        for call in file.calls.of(function.name):
            scope = self._scope_of_line(call.line)
            if scope is None:
                return None
            followed = True
            if word in function.names:
                places = [function.names.index(word)]
            elif function.template.index(word) < len(call.template):
                out |= {(w, scope) for w in call.template[function.template.index(word)]}
                continue
            else:  # deduced
                places = [i for i, p in enumerate(function.params) if word in p]
            if not places or len(call.args) < max(places) + 1:
                return None
            out |= {(w, scope) for i in places for w in call.args[i]}
        return out if followed else None


def _signature(file: SourceNames, span: Span) -> str:
    text = file.clean.excerpt(span)
    return text[: text.find("{")] if "{" in text else text
