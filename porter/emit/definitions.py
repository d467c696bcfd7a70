"""Every definition of a body under a name of its own: what the emitter learns of a variable never reaches another one.

Locals of scopes beside each other share a name in the port (`patterns/tidy_names`, `arm_names`), and instances declare
what one name stands for in arms of their own. `separate_definitions` gives each definition a key that no other has and
remembers the name that the port shows. Facts (bounds, constants, memory spaces, ...) are kept by key; the shown name is
only looked up when text is written.

Where code of several instances uses what each of them has declared in an arm of its own, these declarations are one
definition: they have one key, and only the facts that hold in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from porter import ir
from porter.emit.generic import InstanceIf
from porter.patterns.names import Names

Shown = dict[str, str]  # key of a definition -> the name that the port shows
_Visible = dict[str, dict[int, int]]  # name -> by instance, the number of the declaration that it means


def separate_definitions(
    body: tuple[ir.Stmt, ...], instances: int = 1, outside: Iterable[str] = ()
) -> tuple[tuple[ir.Stmt, ...], Shown]:
    """The body with a key for every definition, and the shown name of each.

    `outside` are names that are declared elsewhere (parameters, constants of the file): they are their own keys.
    """
    used = {n.name for n in ir.walk(body) if isinstance(n, ir.Var | ir.Decl | ir.SharedDecl)}
    every = frozenset(range(instances))
    found = _Resolver()
    found.list(body, {}, every)
    namer = _Namer(found, {*outside, *used})
    return namer.list(body, {}, every), namer.shown


def declared_often(body: Any) -> set[str]:
    """Keys that several declarations share: those of arms which are alternatives."""
    count = Counter(n.name for n in ir.walk(body) if isinstance(n, ir.Decl | ir.SharedDecl))
    return {key for key, n in count.items() if n > 1}


class _Resolver:
    """Follows C's scopes in every instance at once; declarations are numbered in the order of the text.

    Joins those that one use means in different instances.
    """

    def __init__(self) -> None:
        self.joined: list[int] = []  # for each declaration, one that it is joined with: itself, or an earlier one
        self.count = 0

    def first(self, declaration: int) -> int:
        """The first declaration of a definition."""
        while self.joined[declaration] != declaration:
            declaration = self.joined[declaration]
        return declaration

    def declaration(self, number: int, name: str) -> str:
        self.joined.append(number)
        return name

    def use(self, name: str, declarations: set[int]) -> str:
        first = {self.first(d) for d in declarations}
        for d in first:
            self.joined[d] = min(first)
        return name

    # ---- scopes

    def list(self, body: tuple[Any, ...], visible: _Visible, where: frozenset[int]) -> tuple[Any, ...]:
        """One statement list; what it declares becomes visible. `where`: the instances that have it."""
        return tuple(self.stmt(s, visible, where) for s in body)

    def stmt(self, s: Any, visible: _Visible, where: frozenset[int]) -> Any:
        if isinstance(s, ir.Decl | ir.SharedDecl):
            done = self.uses(s, visible, where)
            number, self.count = self.count, self.count + 1
            visible[s.name] = visible.get(s.name, {}) | dict.fromkeys(where, number)
            return replace(done, name=self.declaration(number, s.name))
        if isinstance(s, InstanceIf):
            cond = self.uses(s.cond, visible, where)
            arms = tuple((ids, self.list(arm, visible, where & frozenset(ids))) for ids, arm in s.arms)
            return replace(s, cond=cond, arms=arms)
        if isinstance(s, ir.For | ir.While | ir.DoWhile):
            return self.loop(s, dict(visible), where)
        if isinstance(s, ir.Switch):
            value = self.uses(s.value, visible, where)
            return replace(s, value=value, cases=tuple((v, self.list(b, dict(visible), where)) for v, b in s.cases))
        changes: dict[str, Any] = {}
        for f in fields(s):
            value = getattr(s, f.name)
            if _is_body(value):
                changes[f.name] = self.list(value, dict(visible), where)
            elif isinstance(value, ir.Node | tuple):
                changes[f.name] = self.uses(value, visible, where)
        return replace(s, **changes)

    def loop(self, s: ir.For | ir.While | ir.DoWhile, visible: _Visible, where: frozenset[int]) -> Any:
        """`visible` is the loop's own: its head declares for test, step and body (that of a do loop for the test
        alone)."""
        changes: dict[str, Any] = {}
        if isinstance(s, ir.DoWhile):
            changes["body"] = self.list(s.body, dict(visible), where)
            changes["post"] = self.list(s.post, visible, where)
            return replace(s, **changes, cond=self.uses(s.cond, visible, where))
        head = "init" if isinstance(s, ir.For) else "pre"
        changes[head] = self.list(getattr(s, head), visible, where)
        changes["cond"] = self.uses(s.cond, visible, where)
        if isinstance(s, ir.For):
            changes["step"] = self.list(s.step, dict(visible), where)
        return replace(s, **changes, body=self.list(s.body, dict(visible), where))

    def uses(self, node: Any, visible: _Visible, where: frozenset[int]) -> Any:
        """An expression, or a statement without statements inside, with its variables resolved."""

        def one(n: Any) -> Any:
            if not isinstance(n, ir.Var) or n.name not in visible:
                return n
            meant = {d for i, d in visible[n.name].items() if i in where}
            name = self.use(n.name, meant) if meant else n.name
            return n if name == n.name else replace(n, name=name)

        return ir.rewrite(node, one) if node is not None else None


class _Namer(_Resolver):
    """Goes the same way again, with what was joined, and gives out the keys."""

    def __init__(self, found: _Resolver, taken: set[str]):
        super().__init__()
        self.joined = found.joined
        self.names = Names(taken)
        self.keys: dict[int, str] = {}
        self.shown: Shown = {}

    def declaration(self, number: int, name: str) -> str:
        first = self.first(number)
        if first not in self.keys:
            key = self.names.fresh(name) if name in self.shown else name
            self.keys[first] = key
            self.shown[key] = name
        return self.keys[first]

    def use(self, name: str, declarations: set[int]) -> str:
        return self.keys[self.first(min(declarations))]


def _is_body(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, ir.Stmt) for v in value)
