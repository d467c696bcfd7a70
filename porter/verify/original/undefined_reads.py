"""Reads of the original whose value C++ leaves open: of a variable that nothing sets, of elements behind an object.

NVRTC makes of such a read what it likes, PTX shows no trace of it, and no port can be equal to it but by chance. Found
are reads that certainly happen when the code around them runs: a condition that is not constant ends the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from porter import codes, ir
from porter.emit.evaluate import evaluate
from porter.emit.statements.loops import trips
from porter.model import Diagnostic, Severity
from porter.source import Span

_EXITS = (ir.Break, ir.Continue, ir.Return)


@dataclass(frozen=True)
class UndefinedRead:
    """One such read: what is read, in the words of a message, and where."""

    what: str
    span: Span


def undefined_reads(kernel: ir.Kernel) -> list[UndefinedRead]:
    """The reads in a kernel's body and in the functions that it calls, as the front end lowers them; one a variable.

    The kernel is one instance: conditions over its template arguments are constant.
    """
    found: dict[tuple[str, str], UndefinedRead] = {}
    for owner, body in (("", kernel.body), *((f.key, f.body) for f in kernel.functions.values())):
        for name, read in _Body(body, kernel.functions).reads():
            found.setdefault((owner, name), read)
    return list(found.values())


def as_diagnostics(found: Sequence[UndefinedRead], kernel: str, instance: str) -> list[Diagnostic]:
    """Warnings: the code may be one that is never run."""
    return [
        Diagnostic(
            codes.UNDEFINED_READ,
            f"{kernel}{instance} {read.what}",
            read.span,
            Severity.WARNING,
            "what such a read gives is the compiler's choice: original and port may differ there. Is this an instance "
            "that the project launches?",
        )
        for read in found
    ]


class _Body:
    """One function's body: its locals, what sets them, where its pointers to locals begin."""

    def __init__(self, body: tuple[ir.Stmt, ...], functions: Mapping[str, ir.Function]) -> None:
        self.body = ir.rewrite(body, _taken)
        self.functions = functions
        self.types: dict[str, ir.Type] = {}
        self.set: set[str] = set()
        self.starts: dict[str, tuple[str, int]] = {}  # pointer -> (local, offset in bytes)
        self._learn()

    def _learn(self) -> None:
        pointers: dict[str, ir.Expr] = {}
        assigned: set[str] = set()
        for n in ir.walk(self.body):
            if isinstance(n, ir.Decl):
                if n.ref:
                    self._escapes(n.init)
                    continue
                self.types[n.name] = n.type
                if n.init is not None:
                    self.set.add(n.name)
                    if isinstance(n.type, ir.Pointer):
                        pointers[n.name] = n.init
            elif isinstance(n, ir.Assign | ir.Copy):
                self._escapes(n.target)
                assigned |= ir.root_variables(n.target)
            elif isinstance(n, ir.Asm):
                for _, place in n.outputs:
                    self._escapes(place)
            elif isinstance(n, ir.AddressOf | ir.Decay):
                self._escapes(n.place)
            elif isinstance(n, ir.Call | ir.Intrinsic):
                for i, a in enumerate(n.args):
                    if self._is_reference(n, i):
                        self._escapes(a)
        # a pointer that may itself be changed through its address points anywhere
        moved = assigned.union(*(ir.root_variables(n.place) for n in ir.walk(self.body) if isinstance(n, ir.AddressOf)))
        for name, init in pointers.items():
            start = self._start(init)
            if start is not None and name not in moved:
                self.starts[name] = start

    def _escapes(self, place: ir.Expr | None) -> None:
        self.set |= ir.root_variables(place)

    def _start(self, e: ir.Expr) -> tuple[str, int] | None:
        """The local and the byte in it that a pointer expression points to, when both are constant."""
        while isinstance(e, ir.Cast) and isinstance(e.type, ir.Pointer):
            e = e.x
        if isinstance(e, ir.Var):
            return self.starts.get(e.name)
        if isinstance(e, ir.AddressOf | ir.Decay):
            return self._place(e.place)
        return None

    def _place(self, e: ir.Expr) -> tuple[str, int] | None:
        if isinstance(e, ir.Var):
            return (e.name, 0) if e.name in self.types else None
        if isinstance(e, ir.Field) and isinstance(e.base.type, ir.Struct):
            base = self._place(e.base)
            offset = next((f.offset for f in e.base.type.fields if f.name == e.name), None)
            return (base[0], base[1] + offset) if base is not None and offset is not None else None
        if isinstance(e, ir.Index) and isinstance(e.index, ir.Const):
            base = self._place(e.base)
            return (base[0], base[1] + int(e.index.value) * ir.sizeof(e.type)) if base is not None else None
        return None

    # ---- what is read

    def reads(self) -> Iterator[tuple[str, UndefinedRead]]:
        """(local, read) for each of them, in the order of the text."""
        yield from self._stmts(self.body, [{}])

    def _stmts(self, stmts: Sequence[ir.Stmt], known: list[dict[str, int]]) -> Iterator[tuple[str, UndefinedRead]]:
        """`known`: values of loop variables in some turns that are made, each set of values one turn."""
        for n, s in enumerate(stmts):
            if n and any(isinstance(x, _EXITS) for x in ir.walk(stmts[n - 1])):
                known = [{}]  # which turns come this far is not known
            if isinstance(s, ir.If):
                yield from self._values(s.cond, known)
            elif isinstance(s, ir.For):
                yield from self._stmts(s.init, known)
                turns = trips(s, 0, {})
                if turns is None:
                    yield from self._stmts(s.body, known)
                elif turns:
                    name = s.init[0].name if isinstance(s.init[0], ir.Decl) else ""
                    whole = not any(isinstance(x, ir.Break | ir.Return) for x in ir.walk(s.body))
                    ends = [{**k, name: v} for k in known for v in {turns[0], turns[-1] if whole else turns[0]}]
                    yield from self._stmts(s.body, ends)
            elif isinstance(s, ir.While):
                yield from self._stmts((*s.pre, *s.body), known)
            elif isinstance(s, ir.DoWhile | ir.Scope):
                yield from self._stmts(s.body, known)
            elif isinstance(s, ir.Switch):
                yield from self._values(s.value, known)
            elif isinstance(s, ir.Decl):
                # a copy of nothing into a variable is no use of it yet
                if not isinstance(s.init, ir.Var):
                    yield from self._values(s.init, known)
            elif isinstance(s, ir.Assign):
                yield from self._targets(s.target, known)
                if not isinstance(s.value, ir.Var):
                    yield from self._values(s.value, known)
            elif isinstance(s, ir.ExprStmt | ir.Return):
                yield from self._values(s.value, known)
            elif isinstance(s, ir.Asm):
                for _, e in s.inputs:
                    yield from self._values(e, known)

    def _targets(self, place: ir.Expr, known: list[dict[str, int]]) -> Iterator[tuple[str, UndefinedRead]]:
        """What is read to find a place; a write behind an object is for the sanitizer, which sees it."""
        for part in ir.children(place):
            if not isinstance(part, ir.Var):
                yield from self._values(part, known)

    def _values(self, e: ir.Expr | None, known: list[dict[str, int]]) -> Iterator[tuple[str, UndefinedRead]]:
        """Reads that happen whenever the expression is evaluated."""
        if e is None or isinstance(e, ir.AddressOf | ir.Decay):
            return
        if isinstance(e, ir.Var):
            if isinstance(e.type, ir.Scalar) and e.name in self.types and e.name not in self.set:
                yield e.name, UndefinedRead(f"reads `{e.name}`, which nothing sets", e.span)
            return
        if isinstance(e, ir.Deref | ir.Index) and isinstance(e.type, ir.Scalar):
            yield from self._behind(e, known)
        if isinstance(e, ir.Select) or (isinstance(e, ir.Binary) and e.op in ("&&", "||")):
            yield from self._values(ir.children(e)[0], known)
            return
        for i, part in enumerate(ir.children(e)):
            if self._is_reference(e, i):
                yield from self._targets(part, known)
            else:
                yield from self._values(part, known)

    def _is_reference(self, e: ir.Expr, argument: int) -> bool:
        """Whether a call takes an argument by reference, or may."""
        if isinstance(e, ir.Call):
            params = self.functions[e.function].params if e.function in self.functions else ()
            return argument >= len(params) or params[argument].by_ref
        return isinstance(e, ir.Intrinsic) and ("::" in e.name or e.name in ("swap", "exchange"))

    def _behind(self, e: ir.Deref | ir.Index, known: list[dict[str, int]]) -> Iterator[tuple[str, UndefinedRead]]:
        width = ir.sizeof(e.type)
        if isinstance(e, ir.Index):
            start, index = self._place(e.base), e.index
        elif isinstance(e.ptr, ir.PtrAdd):
            start, index = self._start(e.ptr.ptr), e.ptr.index
        else:
            start, index = self._start(e.ptr), ir.Const(0, type=ir.I32)
        if start is None:
            return
        name, offset = start
        size = ir.sizeof(self.types[name])
        for values in known:
            at = evaluate(index, 0, values)
            if at is not None and not 0 <= offset + at * width <= size - width:
                place = f"bytes {offset + at * width} to {offset + at * width + width - 1}"
                yield name, UndefinedRead(f"reads {place} of `{name}`, which has {size}", e.span)
                return


def _taken(s: ir.Node) -> ir.Node:
    """The arm of a condition that is constant."""
    if not isinstance(s, ir.If):
        return s
    holds = evaluate(s.cond, 0, {}) if s.taken is None else int(s.taken)
    return s if holds is None else ir.Scope(s.then if holds else s.orelse, span=s.span)
