"""Every definition of a body under a name of its own: what the emitter learns of a variable never reaches another one.

Locals of scopes beside each other share a name in the port (`patterns/tidy_names`, `arm_names`), and instances declare
what one name stands for in arms of their own. `separate_definitions` gives each definition a key that no other has and
remembers the name that the port shows. Facts (bounds, constants, memory spaces, ...) are kept by key; the shown name is
only looked up when text is written.

Instances may declare one name in arms of their own: for the code after them these are one definition, with one key and
only the facts that hold in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from porter import ir
from porter.emit.generic import InstanceIf
from porter.patterns.names import Names

Shown = dict[str, str]  # key of a definition -> the name that the port shows


def separate_definitions(body: tuple[ir.Stmt, ...], outside: Iterable[str] = ()) -> tuple[tuple[ir.Stmt, ...], Shown]:
    """The body with a key for every definition, and the shown name of each.

    `outside` are names that are declared elsewhere (parameters, constants of the file): they are their own keys.
    """
    used = {n.name for n in ir.walk(body) if isinstance(n, ir.Var | ir.Decl | ir.SharedDecl)}
    worker = _Separator({*outside, *used})
    done = worker.list(body, {})
    return done, worker.shown


class _Separator:
    def __init__(self, taken: set[str]):
        self.names = Names(taken)
        self.seen: set[str] = set()
        self.shown: Shown = {}

    def key(self, name: str) -> str:
        """A key for a further definition of a name; the first one keeps the name."""
        key = self.names.fresh(name) if name in self.seen else name
        self.names.taken.add(key)
        self.seen |= {name, key}
        self.shown[key] = name
        return key

    def list(self, body: tuple[Any, ...], env: dict[str, str]) -> tuple[Any, ...]:
        """One statement list. `env`: keys by name; what the list declares is added."""
        return tuple(self.stmt(s, env) for s in body)

    def stmt(self, s: Any, env: dict[str, str]) -> Any:
        if isinstance(s, ir.Decl | ir.SharedDecl):
            done = self.uses(s, env)
            # a name is only declared again where it is visible when other instances declare it elsewhere
            key = env.get(s.name) or self.key(s.name)
            env[s.name] = key
            return replace(done, name=key)
        if isinstance(s, InstanceIf):
            cond = self.uses(s.cond, env) if s.cond is not None else None
            return replace(s, cond=cond, arms=tuple((which, self.list(arm, env)) for which, arm in s.arms))
        if isinstance(s, ir.For | ir.While | ir.DoWhile):
            return self.loop(s, dict(env))
        if isinstance(s, ir.Switch):
            cases = tuple((values, self.list(arm, dict(env))) for values, arm in s.cases)
            return replace(s, value=self.uses(s.value, env), cases=cases)
        changes: dict[str, Any] = {}
        for f in fields(s):
            value = getattr(s, f.name)
            if _is_body(value):
                changes[f.name] = self.list(value, dict(env))
            elif isinstance(value, ir.Node | tuple):
                changes[f.name] = self.uses(value, env)
        return replace(s, **changes)

    def loop(self, s: ir.For | ir.While | ir.DoWhile, env: dict[str, str]) -> Any:
        """`env` is the loop's own: its head declares for test, step and body (that of a do loop for the test alone)."""
        changes: dict[str, Any] = {}
        if isinstance(s, ir.DoWhile):
            changes["body"] = self.list(s.body, dict(env))
            changes["post"] = self.list(s.post, env)
            changes["cond"] = self.uses(s.cond, env)
            return replace(s, **changes)
        head = "init" if isinstance(s, ir.For) else "pre"
        changes[head] = self.list(getattr(s, head), env)
        changes["cond"] = self.uses(s.cond, env) if s.cond is not None else None
        if isinstance(s, ir.For):
            changes["step"] = self.list(s.step, dict(env))
        changes["body"] = self.list(s.body, dict(env))
        return replace(s, **changes)

    def uses(self, node: Any, env: dict[str, str]) -> Any:
        """An expression, or a statement without statements inside, with variables by key."""
        changed = {name: key for name, key in env.items() if name != key}
        if not changed:
            return node
        return ir.rewrite(
            node,
            lambda n: replace(n, name=changed[n.name]) if isinstance(n, ir.Var) and n.name in changed else n,
        )


def declared_often(body: Any) -> set[str]:
    """Keys that several declarations share: those of arms which are alternatives."""
    once: set[str] = set()
    often: set[str] = set()
    for n in ir.walk(body):
        if isinstance(n, ir.Decl | ir.SharedDecl):
            (often if n.name in once else once).add(n.name)
    return often


def _is_body(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, ir.Stmt) for v in value)
