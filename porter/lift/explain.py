"""What was lifted and what stopped the rest: a remark for each line of a port that touches memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from porter.emit.plan import PortPlan
from porter.lift.lines import Function, Line, every, functions_of
from porter.lift.scopes import separate, without_marks
from porter.lift.shapes import without_shape
from porter.lift.terms import starts, summands, text_of
from porter.model import PortedModule, patterns_of
from porter.source import Span

LIFTS = ("tensor", "tensor_access", "vector_arithmetic", "named_reduction")
BUFFER, ARRAY, SHARED = "buffer", "array", "shared"
_SHARED = ("lib.shared", "lib.dyn_shared")
_ACCESSES = ("lib.copy", "lib.ldg", "lib.store")


@dataclass(frozen=True)
class Remark:
    """One line of a port. `lifts`: those that wrote it; `why`: what kept it over pointers, "" where it was lifted.

    `shared`: it touches no buffer, only shared memory, which no lift takes up.
    """

    span: Span | None
    function: str
    text: str
    lifts: tuple[str, ...] = ()
    why: str = ""
    shared: bool = False


def explain(module: PortedModule, plan: PortPlan) -> list[Remark]:
    """A remark for each lifted line, and for each that still goes through a pointer, in the order of the port."""
    _, functions, _ = functions_of(module)
    unknown = without_shape(plan)
    names = {f.name for f in functions}
    for f in functions:
        separate(f.body)
    readers = [_Reader(f, unknown if f is functions[-1] else None, names) for f in functions]
    for callee in reversed(readers[:-1]):
        callee.given_parameters(readers)
    return [r for reader in readers for r in reader.remarks()]


def global_pointers(fn: Function, functions: list[Function]) -> list[str]:
    """The parameters of a device function that are pointers to buffers in every call, `functions` being all of the
    port's."""
    names = {f.name for f in functions}
    readers = [_Reader(f, None, names) for f in functions]
    known = [r.given_parameters(readers) for r in reversed(readers)][::-1]
    at = next(n for n, f in enumerate(functions) if f is fn)
    return sorted(known[at])


class _Reader:
    """One function. `unknown`: why a buffer has no tensor, by parameter; None in a device function."""

    def __init__(self, fn: Function, unknown: dict[str, str] | None, functions: set[str]):
        self.fn, self.unknown, self.functions = fn, unknown, functions
        self.kinds = {a.arg: BUFFER for a in fn.arguments() if a.annotation and text_of(a.annotation) == "cute.Pointer"}
        self.roots = {name: {name} for name in self.kinds}
        self.values: dict[str, ast.expr] = {}
        self.lines = [x for x in every(fn.body) if x.node is not None]
        for x in self.lines:
            self._define(x.node)

    def given_parameters(self, callers: list[_Reader]) -> set[str]:
        """Find out what the pointers point to that callers give, and return those that are buffers in every call."""
        buffers = set()
        for n, a in enumerate(self.fn.arguments()):
            given = {c.kind_of(call.args[n]) for c in callers for call in c.calls(self.fn.name) if n < len(call.args)}
            if self.kinds.get(a.arg) == BUFFER and len(given) == 1:
                (kind,) = given
                self.kinds[a.arg] = kind or BUFFER
                buffers |= {a.arg} if kind == BUFFER else set()
        return buffers

    def calls(self, function: str) -> Iterator[ast.Call]:
        for x in self.lines:
            for n in ast.walk(x.node) if x.node else ():
                if isinstance(n, ast.Call) and text_of(n.func) == function:
                    yield n

    def kind_of(self, node: ast.expr) -> str:
        """The kind of the pointer that an expression is; "" for another value."""
        return next((self.kinds[n] for n in self._pointers(node)), "")

    def _define(self, node: ast.stmt | None) -> None:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return
        name, value = node.targets[0].id, node.value
        begun = [n for n in starts(value) if n in self.kinds]
        called = text_of(value.func) if isinstance(value, ast.Call) else ""
        if called in _SHARED:
            self.kinds[name] = SHARED
        elif called == "lib.local":
            self.kinds[name] = ARRAY
        elif begun and name not in begun:
            self.kinds[name] = self.kinds[begun[0]]
        else:
            return
        self.values[name] = value
        self.roots[name] = set().union(*(self.roots.get(n, set()) for n in begun))

    def remarks(self) -> Iterator[Remark]:
        for x in self.lines:
            lifts = tuple(n for n in patterns_of(x.entry.author) if n in LIFTS) if x.entry else ()
            span = x.entry.span if x.entry else None
            text = without_marks(x.text)
            touched = list(self._touched(x))
            kinds = {self.kinds[n] for _, n in touched}
            if BUFFER in kinds:
                yield Remark(span, self.fn.name, text, (), self._why(x, touched))
            elif lifts and x.entry is not None:
                yield Remark(span, self.fn.name, text, lifts)
            elif SHARED in kinds:
                yield Remark(span, self.fn.name, text, (), "shared memory is not lifted", shared=True)

    def _touched(self, x: Line) -> Iterator[tuple[str, str]]:
        """(how, name) of the pointers that a line accesses memory through: "" for an access, else what takes one."""
        node = x.node
        assert node is not None
        for n in ast.walk(node):
            if isinstance(n, ast.Subscript):
                for name in self._pointers(n.value):
                    if self.kinds[name] != ARRAY:
                        yield "", name
            elif isinstance(n, ast.Call):
                called = text_of(n.func)
                takes = called in _ACCESSES or called.startswith("lib.atomic") or called in self.functions
                for a in n.args if takes else ():
                    for name in self._pointers(a):
                        yield "" if called in _ACCESSES else called, name

    def _pointers(self, node: ast.expr) -> list[str]:
        return [n for n in starts(node) if n in self.kinds]

    def _why(self, x: Line, touched: list[tuple[str, str]]) -> str:
        if self.unknown is None:
            return "in a device function, which takes a pointer"
        for how, name in touched:
            if how.startswith("lib.atomic") and self.kinds[name] == BUFFER:
                return "an atomic operation takes an address"
            if how and self.kinds[name] == BUFFER:
                return f"the device function {how} takes a pointer"
        buffers = [n for _, n in touched if self.kinds[n] == BUFFER]
        for n in buffers:
            told = self._why_pointer(n)
            if told:
                return told
        arrays = [n for _, n in touched if self.kinds[n] == ARRAY]
        for n in arrays:
            told = self._why_array(n)
            if told:
                return told
        if any(self.kinds[n] == SHARED for _, n in touched):
            return "shared memory is not lifted"
        roots = sorted(set().union(*(self.roots[n] for n in buffers)))
        return f"the address is not coordinates of {' or '.join(roots)}, or another use of it is not"

    def _why_pointer(self, name: str) -> str:
        assert self.unknown is not None
        roots = sorted(self.roots[name])
        if len(roots) > 1:
            return f"a pointer into {' or '.join(roots)}"
        for root in roots:
            if root in self.unknown:
                return f"{root}: {self.unknown[root]}"
        return "memory seen as elements of another type" if self._is_seen(name) else ""

    def _is_seen(self, name: str) -> bool:
        """Whether a pointer is another one seen as elements of another type, or is itself seen so."""
        while name in self.values:
            value = self.values[name]
            if isinstance(value, ast.Call) and text_of(value.func) in ("lib.view", "lib.natural"):
                return True
            if any(_views(x, name) for x in self.lines):
                return True
            begun = [n for n in starts(value) if n in self.kinds and n != name]
            if not begun:
                break
            name = begun[0]
        return False

    def _why_array(self, name: str) -> str:
        for x in self.lines:
            if _views(x, name):
                return f"the array {without_marks(name)} is seen as elements of another type"
            for n in ast.walk(x.node) if x.node else ():
                if isinstance(n, ast.Call) and text_of(n.func) == "lib.copy":
                    ends = [self._pointers(a) for a in n.args[:2]]
                    if [name] not in ends:
                        continue
                    other = next((e[0] for e in ends if e and e[0] != name), "")
                    if self.kinds.get(other) == SHARED:
                        return f"the array {without_marks(name)} also goes to or comes from shared memory"
                    if any(self.kinds.get(text_of(s[0])) == ARRAY and len(s) > 1 for s in map(summands, n.args[:2])):
                        return f"parts of the array {without_marks(name)} are moved"
        return ""


def _views(x: Line, name: str) -> bool:
    return x.node is not None and any(
        isinstance(n, ast.Call) and text_of(n.func) in ("lib.view", "lib.natural") and name in starts(n.args[0])
        for n in ast.walk(x.node)
    )


def format_remarks(remarks: list[Remark], kernel: str) -> str:
    """The remarks as text: place in the source and line of the port, below it the lifts, or what stopped them."""
    left = sum(1 for r in remarks if r.why and not r.shared)
    lifted = sum(1 for r in remarks if r.lifts)
    shared = sum(1 for r in remarks if r.shared)
    rows = [f"{kernel}: {lifted} lines lifted, {left} over pointers, {shared} that touch shared memory alone"]
    for r in remarks:
        place = f"{r.span.file.rsplit('/', 1)[-1]}:{r.span.line}" if r.span else r.function
        rows += [f"  {place}: {r.text}", f"      {', '.join(r.lifts) if r.lifts else f'pointer: {r.why}'}"]
    return "\n".join(rows) + "\n"
