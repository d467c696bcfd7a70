"""Does anything survive from one call to the next? Results kept by pointer, tables filled while running, counters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import STATE, Objection, decorated, dotted, walk
from porter.verify.checks.honesty.vocabulary import words

_CHANGE = words("append add update setdefault pop popitem clear insert extend remove discard sort reverse appendleft")
_READ = words("get items keys values index count")


def check_state(tree: ast.Module) -> Iterator[Objection]:
    """Stores into what belongs to the module, and module tables that are handed around, where they could be filled."""
    module_names = {t.id for s in tree.body for t in _targets(s)}
    module_names |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    imported = {
        (a.asname or a.name.split(".")[0])
        for n in walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names
    }  # fmt: skip
    tables = {t.id for s in tree.body for t in _targets(s) if _is_table(getattr(s, "value", None))}
    for function in [n for n in walk(tree) if isinstance(n, ast.FunctionDef)]:
        local = _bound(function)
        for node in walk(function):
            root = _stored(node)
            if root in imported - local:
                yield Objection(node.lineno, f"stores into {root}", STATE)  # type: ignore[attr-defined]
            elif root in module_names - local:
                yield Objection(node.lineno, f"stores into the module's {root}", STATE)  # type: ignore[attr-defined]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGE:
                base = dotted(node.func.value) or dotted(_base(node.func.value))
                if base.split(".")[0] in (module_names | imported) - local:
                    yield Objection(node.lineno, f"changes {base}, which belongs to the module", STATE)
    yield from _handed_around(tree, tables)
    yield from _objects(tree)


def _bound(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    return names | {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _base(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node


def _stored(node: ast.AST) -> str:
    """`x` of an assignment to `x[...]` or `x.y[...]`, or of its deletion."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        base = _base(node)
        return base.id if isinstance(base, ast.Name) else ""
    return ""


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    nodes: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        nodes = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        nodes = [statement.target]
    for node in nodes:
        yield from (n for n in walk(node) if isinstance(n, ast.Name))


def _is_table(value: ast.expr | None) -> bool:
    return value is not None and any(isinstance(n, ast.Dict | ast.List | ast.Set) for n in walk(value))


def _handed_around(tree: ast.Module, tables: set[str]) -> Iterator[Objection]:
    """A table of the module may be read where it stands; under another name it could be written unseen."""
    read: set[int] = set()
    for node in walk(tree):
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)) or (
            isinstance(node, ast.Attribute) and node.attr in _READ | _CHANGE
        ):
            read.add(id(node.value))
        elif isinstance(node, ast.Compare):
            read |= {
                id(c) for c, op in zip(node.comparators, node.ops, strict=True) if isinstance(op, ast.In | ast.NotIn)
            }
        elif isinstance(node, ast.For | ast.comprehension):
            read.add(id(node.iter))
        elif isinstance(node, ast.Call) and dotted(node.func) in ("len", "sorted", "max", "min", "tuple"):
            read |= {id(a) for a in node.args}
    for node in walk(tree):
        if isinstance(node, ast.Name) and node.id in tables and isinstance(node.ctx, ast.Load) and id(node) not in read:
            yield Objection(node.lineno, f"hands the module's table {node.id} around", f"{STATE}; make it a tuple")


def _objects(tree: ast.Module) -> Iterator[Objection]:
    """Objects of the port's own classes that live as long as the module, and attributes of classes that are written."""
    classes = {n.name for n in walk(tree) if isinstance(n, ast.ClassDef)}
    for cls in [n for n in walk(tree) if isinstance(n, ast.ClassDef)]:
        for statement in cls.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and _is_table(statement.value):
                yield Objection(statement.lineno, f"class {cls.name} has a table that all its objects share", STATE)
    for statement in tree.body:
        for node in walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
            if isinstance(node, ast.Call) and dotted(node.func) in classes:
                yield Objection(node.lineno, f"keeps an object of {dotted(node.func)} in the module", STATE)
    for name, function in {**decorated(tree, "kernel"), **decorated(tree, "jit")}.items():
        for node in walk(function):
            if isinstance(node, ast.Call) and dotted(node.func) == "id":
                yield Objection(node.lineno, f"{name} asks for the identity of an object", STATE)
