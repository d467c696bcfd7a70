"""Locals of separate scopes get their own names back: `i_1` of a second loop is `i` again where no other `i` is near.

A name is only shared by locals of one type: CuTeDSL gives a variable one type wherever it is assigned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from porter import ir
from porter.patterns.names import Names, substitute

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
    used = {n.name for n in ir.walk(body) if isinstance(n, ir.Var | ir.Decl | ir.SharedDecl)}
    tidier = _Tidier(types, reserved | shared, Names(reserved | used))
    return tidier.scope(body, _Visible(taken=set(reserved)))


@dataclass
class _Visible:
    """What a place sees. `values`: the new names of variables; `taken`: the names of the scopes around it, `before`: of
    those, the ones that are declared already."""

    values: dict[str, ir.Expr] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)

    def inside(self) -> _Visible:
        return _Visible(dict(self.values), set(self.taken), set(self.before))


class _Tidier:
    def __init__(self, types: dict[str, set[Any]], reserved: set[str], names: Names):
        self.types = types
        self.reserved = reserved
        self.names = names

    def scope(self, body: tuple[Any, ...], around: _Visible) -> tuple[Any, ...]:
        """One statement list."""
        # names of this very list are taken before its nested scopes choose theirs
        here = around.inside()
        chosen = {}
        for s in body:
            if isinstance(s, ir.Decl):
                chosen[s.name] = self._choose(s, here)
                here.taken.add(chosen[s.name])
        out = []
        for s in body:
            out.append(self._stmt(s, here))
            if isinstance(s, ir.Decl):
                here.before.add(chosen[s.name])
        return tuple(out)

    def _choose(self, d: ir.Decl, here: _Visible, *, shorten: bool = True) -> str:
        base = _SUFFIX.sub("", d.name)
        if d.name in here.before:  # a variable of an enclosing scope has got this name: it keeps its value
            name = self.names.fresh(base)
        elif not shorten or base == d.name or base in here.taken | self.reserved or len(self.types.get(base, ())) != 1:
            return d.name
        else:
            name = base
        here.values[d.name] = ir.Var(name, type=d.type)
        return name

    def _head(self, declarations: Any, here: _Visible, *, shorten: bool) -> None:
        """Names of what the head of a loop declares."""
        for d in declarations:
            if isinstance(d, ir.Decl):
                name = self._choose(d, here, shorten=shorten)
                here.taken.add(name)
                here.before.add(name)

    def _stmt(self, s: Any, here: _Visible) -> Any:
        if isinstance(s, ir.For):
            inner = here.inside()
            self._head(s.init, inner, shorten=True)
            head = {"init": substitute(s.init, inner.values), "step": substitute(s.step, inner.values)}
            cond = substitute(s.cond, inner.values) if s.cond is not None else None
            return replace(s, **head, cond=cond, body=self.scope(s.body, inner))
        if isinstance(s, ir.If):
            cond = substitute(s.cond, here.values)
            return replace(s, cond=cond, then=self.scope(s.then, here), orelse=self.scope(s.orelse, here))
        if isinstance(s, ir.While | ir.DoWhile):
            # the test's own statements share the body's scope
            name = "pre" if isinstance(s, ir.While) else "post"
            inner = here.inside()
            self._head(ir.walk(getattr(s, name)), inner, shorten=False)
            test = substitute(getattr(s, name), inner.values)
            new = replace(s, cond=substitute(s.cond, inner.values), body=self.scope(s.body, inner))
            return replace(new, **{name: test})
        if isinstance(s, ir.Scope):
            return replace(s, body=self.scope(s.body, here))
        if isinstance(s, ir.Switch):
            cases = tuple((v, self.scope(b, here)) for v, b in s.cases)
            return replace(s, value=substitute(s.value, here.values), cases=cases)
        return substitute(s, here.values)
