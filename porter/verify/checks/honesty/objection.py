"""What the parts of the check hand to each other."""

from __future__ import annotations

import ast
from typing import NamedTuple

PLAIN = "a port is plain code that can be read"
WORK = "the kernel has to compute the result; torch may allocate and ask for streams"
STATE = "a port remembers nothing but its compiled kernel"


class Objection(NamedTuple):
    """Something that stands against a port: where, what, and what to do."""

    line: int
    message: str
    help: str


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """ast.walk, remembered in the node: every part of the check goes over the same tree many times."""
    found: tuple[ast.AST, ...] | None = getattr(node, "_walked", None)
    if found is None:
        found = tuple(ast.walk(node))
        node._walked = found  # type: ignore[attr-defined]
    return found


def dotted(node: ast.AST) -> str:
    """`cute.kernel` for such an attribute, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))


def decorated(tree: ast.Module, which: str) -> dict[str, ast.FunctionDef]:
    """Functions with a decorator `cute.<which>` (or `cutlass.cute.<which>`), by name."""
    found = {}
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if dotted(target).split(".")[-1] == which and "cute" in dotted(target):
                    found[node.name] = node
    return found


def device_nodes(tree: ast.Module) -> set[int]:
    """ids of all nodes inside kernels and jit functions, and inside functions that only those call."""
    host = {id(f) for f in host_functions(tree)}
    device = [n for n in walk(tree) if isinstance(n, ast.FunctionDef) and id(n) not in host]
    return {id(n) for function in device for n in walk(function)}


def host_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions that run as Python when a kernel is launched, and what they call; not what only kernels call."""
    known: list[ast.FunctionDef] | None = getattr(tree, "_host", None)
    if known is None:
        known = _host_functions(tree)
        tree._host = known  # type: ignore[attr-defined]
    return known


def _host_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    roots = {**decorated(tree, "kernel"), **decorated(tree, "jit")}
    inside = {id(n) for function in roots.values() for n in walk(function)}
    inside |= {
        id(n) for f in walk(tree) if isinstance(f, ast.FunctionDef)
        if any(dotted(d) == "dsl_user_op" for d in f.decorator_list) for n in walk(f)
    }  # fmt: skip
    functions = {n.name: n for n in walk(tree) if isinstance(n, ast.FunctionDef) and id(n) not in inside}
    called = _reached([f for f in walk(tree) if id(f) in inside], functions)
    first = [f for name, f in functions.items() if name not in called or _launches(f)]
    return [*first, *(functions[name] for name in _reached(first, functions) if functions[name] not in first)]


def _launches(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Name) and n.id in ("KERNEL", "torch") for n in walk(function))


def _reached(start: list[ast.AST] | list[ast.FunctionDef], functions: dict[str, ast.FunctionDef]) -> list[str]:
    """Names of functions that the nodes mention, directly or through one another."""
    found: list[str] = []
    todo: list[ast.AST] = list(start)
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, ast.Name) and node.id in functions and node.id not in found:
                found.append(node.id)
                todo.append(functions[node.id])
    return found
