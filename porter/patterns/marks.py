"""Which pattern rewrote which statement: passes run through `mark_changes`, which compares what went in with what came
out.

A statement that a pass made or changed gets the pattern's name into its spans (`Span.rewritten`); statements that later
passes and the emitter make of it inherit the spans, and so the name. No pass marks anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from porter import ir
from porter.source import Span

Statements = Sequence[ir.Stmt]
# what stood at a place of the source, all that a pass has made there, one statement of it -> the names of the patterns
# that made that one; () for none. Without statements: the parameters of a function.
PatternNames = Callable[[Statements, Statements, ir.Stmt | None], tuple[str, ...]]

_BODIES = ("then", "orelse", "body")
_LEAVES = (ir.Return, ir.Break, ir.Continue)


def one_pattern(name: str) -> PatternNames:
    """The naming of a pass that is one pattern."""
    return lambda before, made, s: (name,)


def mark_kernel_changes(
    before: ir.Kernel, after: ir.Kernel, names_of: PatternNames, *, hints: bool = False
) -> ir.Kernel:
    """`after` with what a pass has made of `before` marked: statements of the body and of functions, and parameters.

    A statement that came from another function of the kernel counts as made; with `hints` also one of which only a load
    has become read-only.
    """
    if after is before:
        return after
    bodies = (before.body, *(f.body for f in before.functions.values()))
    functions = {}
    for key, fn in after.functions.items():
        earlier = before.functions.get(key)
        body = _marked(earlier.body if earlier else (), fn.body, bodies, names_of, hints)
        functions[key] = replace(fn, body=body, params=_params(earlier.params if earlier else (), fn.params, names_of))
    body = _marked(before.body, after.body, bodies, names_of, hints)
    return replace(after, body=body, functions=functions, params=_params(before.params, after.params, names_of))


def mark_changes(
    before: tuple[ir.Stmt, ...], after: tuple[ir.Stmt, ...], names_of: PatternNames
) -> tuple[ir.Stmt, ...]:
    """`after` with the statements that a pass over one body has made or changed marked."""
    return _marked(before, after, (before,), names_of, False)


def renamed(span: Span, names: tuple[str, ...]) -> Span:
    """The span with patterns added to those that rewrote what stands there."""
    return replace(span, rewritten=tuple(dict.fromkeys((*span.rewritten, *names))))


def own_nodes(s: ir.Stmt) -> Iterator[Any]:
    """The statement and the expressions of its own, without the statements inside it."""
    yield s
    for value in _own_values(s):
        yield from (n for n in ir.walk(value) if not isinstance(n, ir.Stmt))


def leaves_in(s: ir.Stmt) -> set[type]:
    """Which of Return, Break and Continue a statement is or holds."""
    return {type(n) for n in _statements((s,)) if isinstance(n, _LEAVES)}


def _params(
    before: tuple[ir.FunctionParam, ...], after: tuple[ir.FunctionParam, ...], names_of: PatternNames
) -> tuple[ir.FunctionParam, ...]:
    names = names_of((), (), None) if before != after else ()
    return tuple(p if p in before or not names else replace(p, rewritten=(*p.rewritten, *names)) for p in after)


def _marked(
    before: tuple[ir.Stmt, ...],
    after: tuple[ir.Stmt, ...],
    bodies: Sequence[tuple[ir.Stmt, ...]],
    names_of: PatternNames,
    hints: bool,
) -> tuple[ir.Stmt, ...]:
    """`whole`: the bodies that a statement at a place of the source may have come from."""
    were, are = list(_statements(before)), list(_statements(after))
    same = {id(s) for s in were} & {id(s) for s in are}
    known = {_key(s, hints) for s in were if id(s) not in same}
    made: dict[Span, list[ir.Stmt]] = {}
    for s in are:
        if id(s) not in same and _key(s, hints) not in known:
            made.setdefault(s.span, []).append(s)
    if not made:
        return after
    places: dict[Span, list[ir.Stmt]] = {}
    for s in (s for body in bodies for s in _statements(body)):
        places.setdefault(s.span, []).append(s)
    names = {id(s): names_of(places.get(span, ()), found, s) for span, found in made.items() for s in found}
    if not any(names.values()):
        return after

    def visit(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(one(s) for s in body)

    def one(s: ir.Stmt) -> ir.Stmt:
        patterns = names.get(id(s), ())
        changes: dict[str, Any] = {"span": renamed(s.span, patterns)} if patterns else {}
        for name in ir.field_names(type(s)):
            value = getattr(s, name)
            if _is_body(value):
                changes[name] = visit(value)
            elif name == "cases":
                changes[name] = tuple((v, visit(b)) for v, b in value)
            elif patterns and isinstance(value, ir.Node | tuple):
                changes[name] = _respanned(value, patterns)
        return replace(s, **changes) if changes else s

    return visit(after)


def _respanned(value: Any, names: tuple[str, ...]) -> Any:
    """Expressions with the names in their spans: statements that a later pass makes of one start there."""

    def one(n: Any) -> Any:
        return replace(n, span=renamed(n.span, names)) if isinstance(n, ir.Expr) and n.span.line else n

    return ir.rewrite(value, one)


def _statements(body: tuple[Any, ...]) -> Iterator[ir.Stmt]:
    """Every statement of a body, those inside of others too, in their order."""
    waiting = list(reversed(body))
    while waiting:
        s = waiting.pop()
        yield s
        inside: list[ir.Stmt] = []
        for name in ir.field_names(type(s)):
            value = getattr(s, name)
            if _is_body(value):
                inside += value
            elif name == "cases":
                for _, case in value:
                    inside += case
        waiting += reversed(inside)


def _is_body(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], ir.Stmt)


def _own_values(s: ir.Stmt) -> Iterator[Any]:
    for f in fields(s):
        value = getattr(s, f.name)
        if f.compare and f.name not in _BODIES:
            yield tuple(v for v, _ in value) if f.name == "cases" else value


def _key(s: ir.Stmt, hints: bool) -> tuple[Any, ...]:
    """What makes a statement another one: its place, its own parts, and which ways out of it there are inside."""
    ways_out: tuple[str, ...] = ()
    if isinstance(s, ir.If | ir.For | ir.While | ir.DoWhile | ir.Switch | ir.Scope):
        ways_out = tuple(type(n).__name__ for n in _statements((s,)) if isinstance(n, _LEAVES))
    readonly = tuple(n.readonly for n in own_nodes(s) if isinstance(n, ir.Deref)) if hints else ()
    return (type(s), s.span, *_own_values(s), ways_out, readonly)
