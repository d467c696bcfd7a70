"""Which Python a port may use: an allow-list of statements, builtins, attributes, decorators, defaults, class bodies.

The aim is that nothing hidden can run: no code when it is imported beyond definitions and constants, no way from an
allowed object to one that is not.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import PLAIN, Objection, device_nodes, dotted, walk
from porter.verify.checks.honesty.vocabulary import (
    BASES,
    BUILTINS,
    DECORATORS,
    DUNDER_METHODS,
    ESCAPES,
    GATES,
    HOST_METHODS,
    SIZES,
    words,
)

_STATEMENTS = (
    ast.FunctionDef, ast.ClassDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If,
    ast.With, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Expr, ast.Pass, ast.Break, ast.Continue,
)  # fmt: skip
_TOP = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Expr)
_EXPRESSIONS = (
    ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue, ast.JoinedStr,
    ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice,
)  # fmt: skip
_VALUES = (  # of which values of module names, class attributes and defaults are made
    ast.BinOp, ast.UnaryOp, ast.Dict, ast.Set, ast.Constant, ast.Attribute, ast.Subscript, ast.Name, ast.List,
    ast.Tuple, ast.Slice, ast.operator, ast.unaryop, ast.expr_context, ast.keyword, ast.Starred,
)  # fmt: skip
_TYPE = re.compile(r"(?!.*__)[\w.\[\], |]*")
_COMPUTED = {n for n in dir(builtins) if n not in BUILTINS}
_AT_IMPORT = words("tuple frozenset range len min max int float bool str abs runtime math cutlass cute TypeVar field")


def check_language(tree: ast.Module, text: str) -> Iterator[Objection]:
    """Everything in the syntax that a port has no need of."""
    device = device_nodes(tree)
    methods = {id(f): c for c in walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
    own = _attributes_of_self(tree)
    for node in walk(tree):
        if isinstance(node, ast.Try | ast.TryStar):
            help = "let it raise"
            yield Objection(node.lineno, "catches exceptions: a failure must not fall back to something else", help)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield Objection(
                node.lineno, "keeps state between calls", "a port remembers nothing but its compiled kernel"
            )
        elif isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            yield Objection(node.lineno, f"has a statement `{_kind(node)}`", PLAIN)
        elif isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
            yield Objection(node.lineno, f"has an expression `{_kind(node)}`", PLAIN)
        if isinstance(node, ast.Attribute):
            yield from _attribute(node, own, id(node) in device)
        elif isinstance(node, ast.Call):
            yield from _call(node, id(node) in device)
        elif isinstance(node, ast.FunctionDef):
            yield from _function(node, id(node) in methods)
        elif isinstance(node, ast.Lambda):
            yield from _defaults(node.args)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node)
        elif isinstance(node, ast.With) and id(node) not in device:
            yield Objection(node.lineno, "has a statement `With`", PLAIN)
    yield from _annotations(tree)
    yield from _top_level(tree)
    yield from _names(tree, text)


def _annotations(tree: ast.Module) -> Iterator[Objection]:
    """Annotations in quotes are code too: whoever asks for a function's types evaluates them."""
    for node in walk(tree):
        found: ast.expr | None = None
        if isinstance(node, ast.arg | ast.AnnAssign):
            found = node.annotation
        elif isinstance(node, ast.FunctionDef):
            found = node.returns
        for part in walk(found) if found is not None else ():
            if isinstance(part, ast.Call):
                yield Objection(part.lineno, f"an annotation calls `{ast.unparse(part.func)}`", PLAIN)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str) and not _TYPE.fullmatch(part.value):
                yield Objection(part.lineno, f"an annotation in quotes is more than a type: {part.value!r}", PLAIN)


def _kind(node: ast.AST) -> str:
    return type(node).__name__


def _attributes_of_self(tree: ast.Module) -> set[int]:
    """ids of `self.x` in methods, where `self` is the first parameter."""
    found: set[int] = set()
    for cls in (n for n in walk(tree) if isinstance(n, ast.ClassDef)):
        for method in (m for m in cls.body if isinstance(m, ast.FunctionDef) and m.args.args):
            first = method.args.args[0].arg
            found |= {
                id(n)
                for n in walk(method)
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == first
            }
    return found


def _attribute(node: ast.Attribute, own: set[int], device: bool) -> Iterator[Objection]:
    if node.attr in ESCAPES | GATES or (
        node.attr.startswith("_") and (id(node) not in own or node.attr.startswith("__"))
    ):
        yield Objection(node.lineno, f"uses {node.attr}", PLAIN)
    if not isinstance(node.ctx, ast.Load) and id(node) not in own:
        yield Objection(
            node.lineno, f"changes an attribute: `{ast.unparse(node)}`", "nothing may be replaced or patched"
        )


def _call(node: ast.Call, device: bool) -> Iterator[Objection]:
    if not isinstance(node.func, ast.Name):
        return
    name = node.func.id
    if name in ("getattr", "hasattr"):
        asked = node.args[1] if len(node.args) > 1 else None
        attribute = asked.value if isinstance(asked, ast.Constant) else None
        if not device or not isinstance(attribute, str):
            yield Objection(node.lineno, f"calls {name}()", PLAIN)
        elif attribute.startswith("_") or attribute in ESCAPES | GATES:
            yield Objection(node.lineno, f"uses {attribute}", PLAIN)
    elif name == "type" and (len(node.args) != 1 or node.keywords):
        yield Objection(node.lineno, "makes a class with type()", PLAIN)


def _function(node: ast.FunctionDef, method: bool) -> Iterator[Objection]:
    yield from _defaults(node.args)
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = dotted(target)
        if name.split(".")[-1] in ("cache", "lru_cache", "cached", "cached_property"):
            yield Objection(decorator.lineno, f"{node.name} remembers results of earlier calls", "remove the cache")
        elif name not in DECORATORS and not name.endswith((".register_fake", ".setter")):
            yield Objection(decorator.lineno, f"decorates {node.name} with `{ast.unparse(target)}`", PLAIN)
        elif isinstance(decorator, ast.Call):
            for value in (*decorator.args, *(k.value for k in decorator.keywords)):
                yield from _value(value, "an argument of a decorator", frozenset())
    if node.name.startswith("__") and (not method or node.name not in DUNDER_METHODS):
        yield Objection(node.lineno, f"defines {node.name}", PLAIN)


def _defaults(arguments: ast.arguments) -> Iterator[Objection]:
    for value in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
        yield from _value(value, "a default argument", frozenset())
        for node in walk(value):
            if isinstance(node, ast.List | ast.Dict | ast.Set):
                yield Objection(node.lineno, f"a default argument is kept between calls: `{ast.unparse(value)}`", PLAIN)


def _class(node: ast.ClassDef) -> Iterator[Objection]:
    for base in node.bases:
        name = dotted(base)
        if name not in BASES and ("." in name or not name or name in _COMPUTED):
            yield Objection(base.lineno, f"makes a class of {ast.unparse(base)}", PLAIN)
    for keyword in node.keywords:
        yield Objection(node.lineno, f"makes a class with {keyword.arg or '**'}", PLAIN)
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if dotted(target) not in DECORATORS:
            yield Objection(decorator.lineno, f"decorates {node.name} with `{ast.unparse(target)}`", PLAIN)
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            if statement.value is not None:
                yield from _value(statement.value, f"the body of class {node.name}", _AT_IMPORT)
        elif not isinstance(statement, ast.FunctionDef | ast.Pass) and not _is_text(statement):
            yield Objection(statement.lineno, f"the body of class {node.name} runs code when it is imported", PLAIN)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _top_level(tree: ast.Module) -> Iterator[Objection]:
    for statement in tree.body:
        if not isinstance(statement, _TOP) or (isinstance(statement, ast.Expr) and not _is_text(statement)):
            yield Objection(statement.lineno, "runs code when it is imported", "a port defines functions and constants")
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if not all(isinstance(n, ast.Name | ast.Tuple | ast.expr_context) for t in targets for n in walk(t)):
                text = ast.unparse(targets[0])
                yield Objection(statement.lineno, f"changes `{text}` when it is imported", "nothing may be replaced")
            if statement.value is not None:
                yield from _value(statement.value, "a module's constant", _AT_IMPORT)


def _value(value: ast.expr, what: str, callable_: frozenset[str]) -> Iterator[Objection]:
    """A value that is evaluated when the port is imported: made of constants and names; calls only of `callable_`."""
    for node in walk(value):
        if isinstance(node, ast.Call):
            if dotted(node.func).split(".")[0] not in callable_:
                yield Objection(node.lineno, f"{what} calls `{ast.unparse(node.func)}` when it is imported", PLAIN)
        elif isinstance(node, ast.Lambda):
            return
        elif not isinstance(node, _VALUES):
            line = getattr(node, "lineno", value.lineno)
            yield Objection(line, f"{what} is computed when it is imported: `{ast.unparse(value)}`", PLAIN)
            return


def _names(tree: ast.Module, text: str) -> Iterator[Objection]:
    """Builtins outside the list. What Python's own scoping calls a local variable may have such a name."""
    table = symtable.symtable(text, "port", "exec")
    todo = [table]
    seen: set[tuple[str, int]] = set()
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        for symbol in scope.get_symbols():
            name = symbol.get_name()
            function = scope.get_type() == "function"
            if function and (symbol.is_local() or symbol.is_parameter() or symbol.is_free()):
                continue
            hidden = name in _COMPUTED or (name.startswith("__") and name != "__all__")
            if not hidden or symbol.is_namespace() or not (symbol.is_referenced() or symbol.is_assigned()):
                continue
            line = _line_of(tree, name, scope.get_lineno() if function else 0)
            if (name, line) not in seen:
                seen.add((name, line))
                called = any(isinstance(n, ast.Call) and dotted(n.func) == name for n in walk(tree))
                yield Objection(line, f"calls {name}()" if called else f"uses {name}", PLAIN)


def _line_of(tree: ast.Module, name: str, scope: int) -> int:
    lines = [n.lineno for n in walk(tree) if isinstance(n, ast.Name) and n.id == name and n.lineno >= scope]
    return min(lines, default=max(scope, 1))


def check_host_attributes(tree: ast.Module, functions: list[ast.FunctionDef], modules: set[str]) -> Iterator[Objection]:
    """What host code takes of values, tensors among them: the listed methods and sizes, and fields of own classes."""
    fields = {n.target.id for c in walk(tree) if isinstance(c, ast.ClassDef)
              for n in c.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}  # fmt: skip
    fields |= {n.attr for n in walk(tree) if isinstance(n, ast.Attribute) and dotted(n).startswith("self.")}
    for function in functions:
        for node in walk(function):
            if not isinstance(node, ast.Attribute) or dotted(node).split(".")[0] in modules | {"self", "cls"}:
                continue
            if node.attr not in HOST_METHODS | SIZES | fields:
                message = f"uses .{node.attr} of `{ast.unparse(node.value)}`"
                yield Objection(node.lineno, message, "host code may look at tensors and launch")
