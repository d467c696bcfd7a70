"""Fresh names and renaming of locals in IR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from porter import ir


class Names:
    """Hands out names that are not taken."""

    def __init__(self, taken: Iterable[str] = ()):
        self.taken = set(taken)
        self._next: dict[str, int] = {}  # the first number of a name that may be free: names are never given back

    def fresh(self, wanted: str) -> str:
        name = wanted
        if name in self.taken:
            n = self._next.get(wanted, 2)
            while (name := f"{wanted}_{n}") in self.taken:
                n += 1
            self._next[wanted] = n + 1
        self.taken.add(name)
        return name


def raw_name(name: str) -> str:
    """A local's name in the source: names that are not unique have numbers behind them."""
    return re.sub(r"(_\d+)+$", "", name)


def declared(node: Any) -> list[str]:
    """Names of locals and shared arrays declared in statements, in order."""
    return [n.name for n in ir.walk(node) if isinstance(n, ir.Decl | ir.SharedDecl)]


def substitute(node: Any, values: Mapping[str, ir.Expr]) -> Any:
    """Replace variables by expressions; declarations are renamed when the expression is a Var."""

    def one(n: Any) -> Any:
        if isinstance(n, ir.Var) and n.name in values:
            return values[n.name]
        if isinstance(n, ir.Decl | ir.SharedDecl) and n.name in values:
            new = values[n.name]
            assert isinstance(new, ir.Var)
            return replace(n, name=new.name)
        return n

    return ir.rewrite(node, one)


def assigned_names(node: Any) -> set[str]:
    """Variables whose value may change in `node`: assigned, their address taken, or passed to an intrinsic as a
    place."""
    out: set[str] = set()
    for n in ir.walk(node):
        if isinstance(n, ir.Assign):
            out |= ir.root_variables(n.target)
        elif isinstance(n, ir.AddressOf | ir.Decay):
            out |= ir.root_variables(n.place)
        elif isinstance(n, ir.Asm):
            for _, place in n.outputs:
                out |= ir.root_variables(place)
        elif isinstance(n, ir.Intrinsic):
            for a in n.args:
                if isinstance(a, ir.Var | ir.Field | ir.Index) and isinstance(a.type, ir.Array | ir.Struct):
                    out |= ir.root_variables(a)
        elif isinstance(n, ir.Decl) and n.ref and n.init is not None:
            out |= ir.root_variables(n.init)
    return out


def is_simple(e: ir.Expr) -> bool:
    """True for an expression that can be repeated at no cost."""
    if isinstance(e, ir.Const | ir.Builtin | ir.Param):
        return True
    if isinstance(e, ir.Cast):
        return is_simple(e.x)
    return isinstance(e, ir.Var)


def is_stable_place(e: ir.Expr, changing: set[str]) -> bool:
    """True when evaluating the place again later names the same object (its indices cannot have changed)."""
    if isinstance(e, ir.Var):
        return True
    if isinstance(e, ir.Field):
        return is_stable_place(e.base, changing)
    if isinstance(e, ir.Index):
        return is_stable_place(e.base, changing) and is_simple(e.index) and not variables(e.index) & changing
    if isinstance(e, ir.Deref):
        return isinstance(e.ptr, ir.Var) and e.ptr.name not in changing
    return False


def variables(e: Any) -> set[str]:
    """The variables that an expression names."""
    return {n.name for n in ir.walk(e) if isinstance(n, ir.Var)}
