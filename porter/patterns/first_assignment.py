"""A local that is declared and set later in the same block is declared where it is set. Exact."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any

from porter import ir


def declare_at_first_assignment(stmts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The statement list, and the lists inside it, with such declarations moved down."""
    out: list[Any] = [_inside(s) for s in stmts]
    places: dict[str, list[int]] = {}  # of each name, the statements that mention it
    for k, s in enumerate(out):
        for name in {n.name for n in ir.walk(s) if isinstance(n, ir.Var)}:
            places.setdefault(name, []).append(k)
    moved: set[int] = set()
    for i, s in enumerate(out):
        if isinstance(s, ir.Decl) and s.init is None and isinstance(s.type, ir.Scalar | ir.Pointer):
            known = places.get(s.name, [])
            at = bisect_right(known, i)
            if at < len(known) and _sets(out[known[at]], s.name):
                j = known.pop(at)
                first = out[j]
                out[j] = replace(s, init=first.value, span=first.span, comment=s.comment or first.comment)
                moved.add(i)
    return tuple(s for i, s in enumerate(out) if i not in moved)


def _sets(s: Any, name: str) -> bool:
    return (
        isinstance(s, ir.Assign)
        and isinstance(s.target, ir.Var)
        and s.target.name == name
        and not _mentions(s.value, name)
    )


def _mentions(node: Any, name: str) -> bool:
    return any(isinstance(n, ir.Var) and n.name == name for n in ir.walk(node))


def _inside(s: Any) -> Any:
    if isinstance(s, ir.Switch):
        return replace(s, cases=tuple((v, declare_at_first_assignment(b)) for v, b in s.cases))
    changes = {}
    for name in ("then", "orelse", "body"):
        v = getattr(s, name, None)
        if isinstance(v, tuple) and v:
            changes[name] = declare_at_first_assignment(v)
    return replace(s, **changes) if changes else s
