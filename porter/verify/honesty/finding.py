"""What the parts of the check hand to each other."""

from __future__ import annotations

import ast
from typing import NamedTuple

PLAIN = "a port is plain code that can be read"
WORK = "the kernel has to compute the result; torch may allocate and ask for streams"
STATE = "a port remembers nothing but its compiled kernel"


class Finding(NamedTuple):
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
    """ids of all nodes inside kernels and jit functions."""
    functions = {**decorated(tree, "kernel"), **decorated(tree, "jit")}
    return {id(n) for function in functions.values() for n in walk(function)}


def host_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions that run as Python when a kernel is launched: neither kernels nor jit functions nor inside one."""
    device = device_nodes(tree)
    return [n for n in walk(tree) if isinstance(n, ast.FunctionDef) and id(n) not in device]
