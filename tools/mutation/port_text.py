"""A port's text with its syntax tree: device functions, expressions as text, and replacement of one node."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """`node` gets another text."""

    node: ast.expr | ast.stmt
    text: str


class PortText:
    """What generators of mutants look at."""

    def __init__(self, text: str):
        self.text = text
        self.tree = ast.parse(text)
        self.lines = [line.encode() for line in text.splitlines(keepends=True)]
        functions = [n for n in self.tree.body if isinstance(n, ast.FunctionDef)]
        self.device = [f for f in functions if f.decorator_list and not f.name.startswith("_launch_")]
        self.config = next(f for f in functions if f.name == "launch_config")

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[tuple[ast.FunctionDef, ast.AST]]:
        """Nodes of the device functions, in the order of the text."""
        for function in self.device:
            found = [n for s in function.body for n in ast.walk(s) if isinstance(n, kinds)]
            for node in sorted(found, key=lambda n: (n.lineno, n.col_offset)):  # type: ignore[attr-defined]
                yield function, node

    def applied(self, edit: Edit) -> str:
        """The text with one node replaced. Lines keep their numbers: replacements are one line."""
        assert "\n" not in edit.text and edit.node.end_lineno is not None and edit.node.end_col_offset is not None
        first, last = edit.node.lineno - 1, edit.node.end_lineno - 1
        head = self.lines[first][: edit.node.col_offset]
        tail = self.lines[last][edit.node.end_col_offset :]
        blank = [b"\n"] * (last - first)
        changed = [*self.lines[:first], head + edit.text.encode() + tail, *blank, *self.lines[last + 1 :]]
        return b"".join(changed).decode()


def show(node: ast.AST) -> str:
    return ast.unparse(node)


def is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and show(node.func) in names


def binary(node: ast.AST, op: type[ast.operator]) -> tuple[ast.expr, ast.expr] | None:
    """The operands of a binary operation of this kind."""
    return (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, op) else None


def comparison(node: ast.AST, op: type[ast.cmpop]) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], op):
        return node.left, node.comparators[0]
    return None


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def pointers(function: ast.FunctionDef) -> list[str]:
    """The function's pointer parameters."""
    return [a.arg for a in function.args.args if a.annotation is not None and show(a.annotation) == "cute.Pointer"]


def parameters(function: ast.FunctionDef) -> set[str]:
    return {a.arg for a in function.args.args}
