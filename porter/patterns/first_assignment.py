"""A local that is declared and set later in the same block is declared where it is set. Exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir


def declare_at_first_assignment(stmts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The statement list, and the lists inside it, with such declarations moved down."""
    out = [_inside(s) for s in stmts]
    i = 0
    while i < len(out):
        s = out[i]
        if isinstance(s, ir.Decl) and s.init is None and isinstance(s.type, ir.Scalar | ir.Pointer):
            j = next((k for k in range(i + 1, len(out)) if _mentions(out[k], s.name)), None)
            if j is not None and _sets(out[j], s.name):
                first = out[j]
                out[j] = replace(s, init=first.value, span=first.span, comment=s.comment or first.comment)
                del out[i]
                continue
        i += 1
    return tuple(out)


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
