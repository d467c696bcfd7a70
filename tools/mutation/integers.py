"""Mistakes with C's integers: unsigned numbers, division."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.mutation.port_text import Edit, PortText, comparison, is_call, show
from tools.mutation.registry import NUMERICS, SANITIZER, mutation


@mutation("unsigned-as-signed", "an unsigned element read as signed", NUMERICS, SANITIZER)
def unsigned_as_signed(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "Uint8", "Uint16") and isinstance(node.args[0], ast.Subscript | ast.Call):
            yield Edit(node.func, f"cutlass.{show(node.func).replace('Uint', 'Int')}")


@mutation("unsigned-compare", "an unsigned comparison done as a signed one", NUMERICS, SANITIZER)
def unsigned_compare(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Compare):
        made = {show(n.targets[0]) for n in ast.walk(function)
                if isinstance(n, ast.Assign) and is_call(n.value, "Uint32")}  # fmt: skip
        parts = comparison(node, ast.Gt) or comparison(node, ast.Lt)
        if parts and show(parts[0]) in made:
            sign = ">" if comparison(node, ast.Gt) else "<"
            yield Edit(node, f"Int32({show(parts[0])}) {sign} Int32({show(parts[1])})")


@mutation("floor-division", "Python's floor division where C truncates", NUMERICS, SANITIZER)
def floor_division(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Call):
        if is_call(node, "lib.c_div") and _may_be_negative(function, node.args[0]):
            yield Edit(node, f"({show(node.args[0])}) // ({show(node.args[1])})")


def _may_be_negative(function: ast.FunctionDef, node: ast.expr) -> bool:
    """A difference, or a name that holds one. Sizes and indices are never negative: floor division is right there."""
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) for n in ast.walk(node)):
        return not any(isinstance(n, ast.Constant) for n in ast.walk(node))
    made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and show(n.targets[0]) == show(node)]
    return any(isinstance(n.value, ast.BinOp) and isinstance(n.value.op, ast.Sub) for n in made)
