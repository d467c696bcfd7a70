"""Reductions of a warp by their names: a loop of shuffles is `lib.warp_sum` or `lib.warp_max`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from porter.lift.lines import Function, Line, by
from porter.lift.terms import called, text_of

LIFT = "named_reduction"
_FULL = "4294967295"


def operators(functions: Iterable[Function]) -> dict[str, str]:
    """The functions of the port that add two numbers, or give the larger one: name -> "warp_sum" or "warp_max"."""
    found = {}
    for fn in functions:
        if len(fn.body) == 1 and isinstance(fn.body[0].node, ast.Return):
            text = fn.body[0].text
            names = [a.arg for a in fn.arguments()]
            if len(names) == 2 and text == f"return {names[0]} + {names[1]}":
                found[fn.name] = "warp_sum"
            elif len(names) == 2 and text == f"return lib.fmax({names[0]}, {names[1]})":
                found[fn.name] = "warp_max"
    return found


def name_reductions(block: list[Line], joins: Mapping[str, str] = {}) -> list[Line]:
    """The lines with each loop that is a reduction over a warp, or over aligned parts of one, as one call. `joins`: see
    `operators`."""
    out = []
    for x in block:
        x.body = name_reductions(x.body, joins)
        text = _reduction(x, joins)
        out.append(x if text is None else Line(text, by(x.entry, LIFT)))
    return out


def _reduction(line: Line, joins: Mapping[str, str]) -> str | None:
    loop = line.node
    if not isinstance(loop, ast.For) or len(line.body) != 1 or not isinstance(loop.target, ast.Name):
        return None
    width = _width(loop.iter)
    step = line.body[0].node
    if width is None or not isinstance(step, ast.Assign) or not isinstance(step.targets[0], ast.Name):
        return None
    name, value = step.targets[0].id, step.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        function, pair = "warp_sum", [value.left, value.right]
    elif isinstance(value, ast.Call) and text_of(value.func) in {"lib.fmax", *joins}:
        function, pair = joins.get(text_of(value.func), "warp_max"), value.args
    else:
        return None
    if len(pair) != 2 or text_of(pair[0]) != name:
        return None
    shuffled = called(pair[1], "lib.shfl_xor")
    if shuffled is None or [text_of(a) for a in shuffled.args[:3]] != [name, loop.target.id, _FULL]:
        return None
    if text_of(shuffled.args[3]) not in ("32", width):
        return None
    return f"{name} = lib.{function}({name})" if width == "32" else f"{name} = lib.{function}({name}, {width})"


def _width(values: ast.expr) -> str | None:
    """Lanes that take part: twice the first offset of a loop that halves it down to one."""
    if isinstance(values, ast.Tuple) and all(isinstance(e, ast.Constant) for e in values.elts):
        numbers = [e.value for e in values.elts if isinstance(e, ast.Constant) and isinstance(e.value, int)]
        halved = [1 << i for i in reversed(range(len(numbers)))]
        return str(2 * numbers[0]) if numbers and numbers == halved else None
    halves = called(values, "lib.halving")
    if halves is None or not isinstance(halves.args[0], ast.BinOp) or not isinstance(halves.args[0].op, ast.FloorDiv):
        return None
    lanes, by_two = halves.args[0].left, halves.args[0].right
    return text_of(lanes) if text_of(by_two) == "2" and isinstance(lanes, ast.Name) else None
