"""Which modules are imported, and what is taken of them: only what the vocabulary lists."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import WORK, Objection, walk
from porter.verify.checks.honesty.vocabulary import MODULES, is_module, may_name

_OF_TORCH = ("itemsize", "is_floating_point", "is_complex", "is_signed", "type", "index", "max", "min", "bits", "eps")
_STANDARD = sys.stdlib_module_names - {"math", "typing"}


def check_imports(tree: ast.Module) -> Iterator[Objection]:
    """Imports outside the list, names outside a module's list, modules used as values or hidden by other names."""
    bound: dict[str, str] = {}  # local name -> dotted path of what was imported
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                bound[alias.asname or root] = alias.name if alias.asname else root
                yield from _module(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield Objection(node.lineno, "imports a neighbouring file", "a port is one file")
                continue
            module = node.module or ""
            if any(a.name == "*" for a in node.names):
                yield Objection(node.lineno, f"`from {module} import *` hides what is used", "import names one by one")
            refused = list(_module(module, node.lineno))
            yield from refused
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{module}.{alias.name}"
                if not refused and alias.name != "*":
                    yield from _name(module, alias.name, node.lineno, "imports")
    modules = {name: path for name, path in bound.items() if is_module(path) or path in ("porter", "cuda")}
    yield from _hidden(tree, modules)
    yield from _uses(tree, modules)


def _module(name: str, line: int) -> Iterator[Objection]:
    if name.startswith("torch.nn"):
        yield Objection(line, f"imports {name}, which computes", WORK)
    elif not is_module(name):
        yield Objection(line, f"imports {name}", f"a port may import {', '.join(MODULES)}")


def _name(module: str, name: str, line: int, verb: str) -> Iterator[Objection]:
    if may_name(module, name) and not _standard(module, name):
        return
    text = f"{module}.{name}"
    if module.split(".")[0] == "torch":
        yield Objection(line, f"imports torch's {name}" if verb == "imports" else f"uses {text}", WORK)
    elif module == "porter.corpus.lib":
        yield Objection(line, f"{verb} {text}, which lib does not define", "see porter/corpus/lib")
    else:
        yield Objection(line, f"{verb} {text}", f"{name} of {module} is not allowed in ports")


def _standard(module: str, name: str) -> bool:
    """A module of Python's library that an allowed module happens to have imported (`cute.runtime.ctypes`)."""
    if module == "porter.corpus.lib" or MODULES.get(module, ...) is not None:
        return False  # its names are listed one by one
    return name in _STANDARD and not is_module(f"{module}.{name}")


def _uses(tree: ast.Module, modules: dict[str, str]) -> Iterator[Objection]:
    inner = {id(n.value) for n in walk(tree) if isinstance(n, ast.Attribute)}
    for node in walk(tree):
        if id(node) in inner or not isinstance(node, ast.Attribute | ast.Name) or isinstance(node.ctx, ast.Store):
            continue
        attributes: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            attributes.append(at.attr)
            at = at.value
        if not isinstance(at, ast.Name) or at.id not in modules:
            continue
        path = modules[at.id]
        for at_name, name in enumerate(reversed(attributes)):
            inside = f"{path}.{name}"
            if is_module(inside) or inside in ("cuda.bindings", "porter.corpus"):
                path = inside
                continue
            if is_module(path):
                yield from _name(path, name, node.lineno, "uses")
                rest = attributes[: len(attributes) - at_name - 1]
                if path.split(".")[0] == "torch" and rest and rest[-1] not in _OF_TORCH:
                    yield Objection(node.lineno, f"uses {inside}.{rest[-1]}", WORK)
            else:
                yield Objection(node.lineno, f"uses {inside}", f"a port may import {', '.join(MODULES)}")
            break
        else:
            help = "name what is used of it: passed around, nobody could see what that is"
            yield Objection(node.lineno, f"uses the module {path} as a value", help)


def _hidden(tree: ast.Module, modules: dict[str, str]) -> Iterator[Objection]:
    for node in walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        for name in names:
            if name in modules:
                line = getattr(node, "lineno", 1)
                yield Objection(line, f"gives the name {name} of a module to something else", "choose another name")
