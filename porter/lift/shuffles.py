"""Reductions of a warp by their names: a loop of shuffles is `lib.warp_sum` or `lib.warp_max`."""

from __future__ import annotations

import ast

from porter.lift.lines import Line, by
from porter.lift.terms import called, text_of

LIFT = "named_reduction"
_FULL = "4294967295"


def name_reductions(block: list[Line]) -> list[Line]:
    """The lines with each loop that is a reduction over a warp, or over aligned parts of one, as one call."""
    out = []
    for x in block:
        x.body = name_reductions(x.body)
        text = _reduction(x)
        out.append(x if text is None else Line(text, by(x.entry, LIFT)))
    return out


def _reduction(line: Line) -> str | None:
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
    elif (largest := called(value, "lib.fmax")) is not None:
        function, pair = "warp_max", largest.args
    else:
        return None
    if text_of(pair[0]) != name:
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
