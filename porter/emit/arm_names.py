"""Names that an instance's own arm declares are not used again for another local after it.

CuTeDSL finds the variables of a loop or branch by reading the text: a name that stands before it, in an arm which this
specialisation does not take, counts as a variable without a value, and the types at the end do not join.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants, InstanceIf
from porter.patterns.names import Names, declared

_STATIC = (ir.Const, ConstVariants, ir.Unary, ir.Binary, ir.Cast, ir.Select)


def separate_arms(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The merged body with locals of loops and branches renamed where an arm before them has their name."""
    names = Names({n.name for n in ir.walk(body) if isinstance(n, ir.Var | ir.Decl | ir.SharedDecl)})
    return _list(body, set(), set(), names)


def _list(body: tuple[Any, ...], maybe: set[str], sure: set[str], names: Names) -> tuple[Any, ...]:
    """`maybe`: declared so far in arms that need not be taken; `sure`: in what is always read. Both are added to."""
    out = []
    for s in body:
        if isinstance(s, ir.Decl | ir.SharedDecl):
            sure.add(s.name)
        elif isinstance(s, InstanceIf):
            s = replace(s, arms=tuple((which, _list(arm, set(maybe), set(sure), names)) for which, arm in s.arms))
            maybe |= set(declared(s))
        elif isinstance(s, ir.If) and all(isinstance(n, _STATIC) for n in ir.walk(s.cond)):
            then, orelse = (_list(arm, set(maybe), set(sure), names) for arm in (s.then, s.orelse))
            s = replace(s, then=then, orelse=orelse)
            maybe |= set(declared(s))
        elif isinstance(s, ir.Scope):
            s = replace(s, body=_list(s.body, maybe, sure, names))
        else:
            locals_ = {n.name for n in ir.walk(s) if isinstance(n, ir.Decl)}
            for name in sorted((locals_ & maybe) - sure):
                if not _is_free(s, name):
                    s = _renamed(s, name, names.fresh(name))
            s = _inside(s, maybe, sure, names)
            sure |= set(declared(s))
        out.append(s)
    return tuple(out)


def _inside(s: Any, maybe: set[str], sure: set[str], names: Names) -> Any:
    """A loop, branch or switch with its own statement lists done."""
    changes: dict[str, Any] = {}
    for f in fields(s):
        value = getattr(s, f.name)
        if _is_body(value):
            changes[f.name] = _list(value, set(maybe), set(sure), names)
    if isinstance(s, ir.Switch):
        changes["cases"] = tuple((values, _list(body, set(maybe), set(sure), names)) for values, body in s.cases)
    return replace(s, **changes) if changes else s


def _is_body(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, ir.Stmt) for v in value)


def _is_free(node: Any, name: str) -> bool:
    """Whether `node` uses the name outside the scope of a declaration of its own."""
    if isinstance(node, ir.For):
        bound = any(isinstance(d, ir.Decl) and d.name == name for d in node.init)
        return _is_free(node.init, name) or (
            not bound and any(_is_free(part, name) for part in (node.cond, node.step, node.body) if part is not None)
        )
    if isinstance(node, tuple):
        for n in node:
            if _is_free(n, name):
                return True
            if isinstance(n, ir.Decl) and n.name == name:
                return False
        return False
    if isinstance(node, ir.Var):
        return node.name == name
    if not isinstance(node, ir.Node):
        return False
    return any(_is_free(getattr(node, f.name), name) for f in fields(node))


def _renamed(node: Any, old: str, new: str) -> Any:
    def one(n: Any) -> Any:
        return replace(n, name=new) if isinstance(n, ir.Var | ir.Decl) and n.name == old else n

    return ir.rewrite(node, one)
