"""Expressions of a port taken apart: sums, products, calls, and their text."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from porter.syntax import expression_tree as expression

__all__ = [
    "called",
    "coordinate",
    "expression",
    "factors",
    "names_in",
    "narrowed",
    "product",
    "starts",
    "summands",
    "text_of",
    "total",
]


def text_of(node: ast.AST) -> str:
    return ast.unparse(node)


def called(node: ast.AST | None, name: str) -> ast.Call | None:
    """The call, where the node is one of `name` ("lib.copy")."""
    return node if isinstance(node, ast.Call) and text_of(node.func) == name else None


def names_in(node: ast.AST) -> set[str]:
    """The variables of an expression; what it calls is none of them."""
    functions = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in functions}


def summands(node: ast.expr) -> list[ast.expr]:
    """The terms of a sum, in order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*summands(node.left), *summands(node.right)]
    return [node]


_THROUGH = ("lib.view", "lib.natural", "lib.assume_aligned")


def starts(node: ast.expr) -> list[str]:
    """The names that a pointer expression may start from: several where it chooses between pointers."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return starts(node.left)
    if isinstance(node, ast.IfExp):
        return [*starts(node.body), *starts(node.orelse)]
    if isinstance(node, ast.Call) and text_of(node.func) in _THROUGH:
        return starts(node.args[0])
    return []


def factors(node: ast.expr) -> list[ast.expr]:
    """The factors of a product, in order, conversions to Int64 around a product looked through."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*factors(node.left), *factors(node.right)]
    wide = called(node, "Int64")
    if wide is not None and isinstance(wide.args[0], ast.BinOp) and isinstance(wide.args[0].op, ast.Mult):
        return factors(wide.args[0])
    return [node]


def narrowed(node: ast.expr) -> ast.expr:
    """The number without widening to 64 bits around it."""
    while True:
        wide = called(node, "Int64") or called(node, "Uint64")  # the same bits, and so is a product of them
        if wide is None or len(wide.args) != 1:
            return node
        node = wide.args[0]


def coordinate(node: ast.expr) -> ast.expr:
    """A factor as a coordinate: a tensor's strides are 64 bits wide, so what is widened for the product need not be.

    `Uint32` stays around everything but an index of the grid or of the block, which is never negative.
    """
    inner = narrowed(node)
    unsigned = called(inner, "Uint32")
    if unsigned is not None and isinstance(unsigned.args[0], ast.Name) and unsigned.args[0].id in _INDICES:
        return unsigned.args[0]
    if isinstance(inner, ast.Name) or called(node, "Uint64") is None:
        return inner if isinstance(inner, ast.Name) else node
    return ast.Call(ast.Name("Int64"), [inner], [])


_INDICES = {f"{group}{axis}" for group in ("bid", "tid") for axis in "xyz"}


def product(parts: Iterable[ast.expr]) -> str:
    return " * ".join(f"({text_of(p)})" if isinstance(p, ast.BinOp) else text_of(p) for p in parts)


def total(parts: Iterable[ast.expr]) -> str:
    return " + ".join(text_of(p) for p in parts)
