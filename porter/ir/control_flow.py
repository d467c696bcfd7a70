"""Where control goes: what statements leave their list on every path."""

from __future__ import annotations

from collections.abc import Sequence

from porter import ir


def always_leaves(body: Sequence[ir.Stmt]) -> bool:
    """Whether control never runs off the end of these statements: a return, break or continue stands on every path."""
    for s in body:
        if isinstance(s, ir.Return | ir.Break | ir.Continue):
            return True
        if isinstance(s, ir.Scope) and always_leaves(s.body):
            return True
        if isinstance(s, ir.If):
            if s.is_constexpr:
                if always_leaves(s.then if s.taken else s.orelse):
                    return True
            elif s.orelse and always_leaves(s.then) and always_leaves(s.orelse):
                return True
    return False
