"""Locals of separate scopes get their own names back: `i_1` of a second loop is `i` again where no other `i` is near.

A name is only shared by locals of one type: CuTeDSL gives a variable one type wherever it is assigned.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.names import substitute

_SUFFIX = re.compile(r"_\d+$")


def tidy_names(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel and its functions with numbered names shortened."""
    constants = {g.name for g in kernel.globals}
    functions = {
        k: replace(f, body=_tidy(f.body, constants | {p.name for p in f.params})) for k, f in kernel.functions.items()
    }
    body = _tidy(kernel.body, constants | {p.name for p in kernel.params})
    return replace(kernel, body=body, functions=functions)


def _tidy(body: tuple[ir.Stmt, ...], reserved: set[str]) -> tuple[ir.Stmt, ...]:
    types: dict[str, set[Any]] = {}
    for n in ir.walk(body):
        if isinstance(n, ir.Decl | ir.SharedDecl):
            types.setdefault(_SUFFIX.sub("", n.name), set()).add((type(n), n.type))
    shared = {n.name for n in ir.walk(body) if isinstance(n, ir.SharedDecl)}
    return _Tidier(types, reserved | shared).scope(body, {}, frozenset(reserved))


class _Tidier:
    def __init__(self, types: dict[str, set[Any]], reserved: set[str]):
        self.types = types
        self.reserved = reserved

    def scope(self, body: tuple[Any, ...], values: dict[str, ir.Expr], visible: frozenset[str]) -> tuple[Any, ...]:
        """One statement list; `visible` are the final names of enclosing scopes."""
        # names of this very list are taken before its nested scopes choose theirs
        values = dict(values)
        taken = set(visible)
        for s in body:
            if isinstance(s, ir.Decl):
                taken.add(self._choose(s, values, taken))
        known = frozenset(taken)
        return tuple(self._stmt(s, values, known) for s in body)

    def _choose(self, d: ir.Decl, values: dict[str, ir.Expr], taken: set[str]) -> str:
        base = _SUFFIX.sub("", d.name)
        if base == d.name or base in taken or base in self.reserved or len(self.types.get(base, ())) != 1:
            return d.name
        values[d.name] = ir.Var(base, type=d.type)
        return base

    def _stmt(self, s: Any, values: dict[str, ir.Expr], taken: frozenset[str]) -> Any:
        if isinstance(s, ir.For):
            inner = dict(values)
            names = set(taken)
            for d in s.init:
                if isinstance(d, ir.Decl):
                    names.add(self._choose(d, inner, names))
            head = {"init": substitute(s.init, inner), "step": substitute(s.step, inner)}
            cond = substitute(s.cond, inner) if s.cond is not None else None
            return replace(s, **head, cond=cond, body=self.scope(s.body, inner, frozenset(names)))
        if isinstance(s, ir.If):
            return replace(
                s,
                cond=substitute(s.cond, values),
                then=self.scope(s.then, values, taken),
                orelse=self.scope(s.orelse, values, taken),
            )
        if isinstance(s, ir.While | ir.DoWhile):
            # the test's own statements share the body's scope
            field = "pre" if isinstance(s, ir.While) else "post"
            names = {n.name for n in getattr(s, field) if isinstance(n, ir.Decl)}
            new = replace(s, cond=substitute(s.cond, values), body=self.scope(s.body, values, frozenset(taken | names)))
            return replace(new, **{field: substitute(getattr(s, field), values)})
        if isinstance(s, ir.Scope):
            return replace(s, body=self.scope(s.body, values, taken))
        if isinstance(s, ir.Switch):
            return replace(
                s, value=substitute(s.value, values), cases=tuple((v, self.scope(b, values, taken)) for v, b in s.cases)
            )
        return substitute(s, values)
