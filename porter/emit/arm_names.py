"""Names that an instance's own arm declares are not used again for another local after it.

CuTeDSL finds the variables of a loop or branch by reading the text: a name that stands before it, in an arm which this
specialisation does not take, counts as a variable without a value, and the types at the end do not join.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

from porter import ir
from porter.emit.definitions import Shown, declared_often
from porter.emit.generic import ConstVariants, InstanceIf
from porter.patterns.names import Names, assigned_names, declared

_STATIC = (ir.Const, ConstVariants, ir.Unary, ir.Binary, ir.Cast, ir.Select)


def _constants(body: tuple[ir.Stmt, ...]) -> set[str]:
    """Variables whose value is known at trace time."""
    changing = assigned_names(body) | declared_often(body)
    found: set[str] = set()
    for n in ir.walk(body):
        if isinstance(n, ir.Decl) and n.init is not None and n.name not in changing and _is_constant(n.init, found):
            found.add(n.name)
    return found


def _is_constant(e: ir.Expr, constants: set[str]) -> bool:
    return all(isinstance(n, _STATIC) or (isinstance(n, ir.Var) and n.name in constants) for n in ir.walk(e))


def separate_arms(body: tuple[ir.Stmt, ...], shown: Shown) -> Shown:
    """The shown names, others for locals of loops and branches where an arm before them has their name."""
    worker = _Arms(body, dict(shown))
    worker.list(body, set(), set())
    return worker.shown


class _Arms:
    def __init__(self, body: tuple[ir.Stmt, ...], shown: Shown):
        self.shown = shown
        outside = {n.name for n in ir.walk(body) if isinstance(n, ir.Var) and n.name not in shown}
        self.names = Names({*shown.values(), *outside})
        self.declarations = Counter(declared(body))
        self.constants = _constants(body)

    def list(self, body: tuple[Any, ...], maybe: set[str], sure: set[str]) -> None:
        """`maybe`: shown names declared so far in arms that need not be taken; `sure`: in what is always read. Both are
        added to."""
        for s in body:
            if isinstance(s, ir.Decl | ir.SharedDecl):
                sure.add(self.shown[s.name])
            elif isinstance(s, InstanceIf):
                for _, arm in s.arms:
                    self.list(arm, set(maybe), set(sure))
                maybe |= self.declared(s)
            elif self.is_static(s):
                self.list(s.then, set(maybe), set(sure))
                self.list(s.orelse, set(maybe), set(sure))
                maybe |= self.declared(s)
            elif isinstance(s, ir.Scope):
                self.list(s.body, maybe, sure)
            else:
                self.rename(s, maybe - sure)
                self.inside(s, maybe, sure)
                in_arms = {key for arm in self.arms(s) for key in declared(arm)}
                maybe |= {self.shown[key] for key in in_arms}
                sure |= {self.shown[key] for key in declared(s) if key not in in_arms}

    def is_static(self, s: Any) -> bool:
        """A branch that is decided at trace time."""
        return isinstance(s, ir.If) and _is_constant(s.cond, self.constants)

    def arms(self, s: Any) -> tuple[Any, ...]:
        """What need not be taken in a statement."""
        return tuple(n for n in ir.walk(s) if isinstance(n, InstanceIf) or self.is_static(n))

    def declared(self, s: Any) -> set[str]:
        return {self.shown[key] for key in declared(s)}

    def rename(self, s: Any, taken: set[str]) -> None:
        """Other names for the locals of a loop, branch or switch that have a taken one."""
        here = Counter(declared(s))
        fresh: dict[str, str] = {}
        for key, count in here.items():
            name = self.shown[key]
            if name in taken and count == self.declarations[key]:  # nothing before it declares the same definition
                fresh[name] = fresh.get(name) or self.names.fresh(name)
                self.shown[key] = fresh[name]

    def inside(self, s: Any, maybe: set[str], sure: set[str]) -> None:
        if isinstance(s, ir.Switch):
            for _, arm in s.cases:
                self.list(arm, set(maybe), set(sure))
        for f in fields(s):
            value = getattr(s, f.name)
            if isinstance(value, tuple) and value and all(isinstance(v, ir.Stmt) for v in value):
                self.list(value, set(maybe), set(sure))
