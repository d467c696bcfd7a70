"""Mistakes in loops, bounds, guards and launches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.mutation.port_text import Edit, PortText, binary, comparison, is_call, names_in, show
from tools.mutation.registry import NUMERICS, SANITIZER, mutation


def _counted(node: ast.AST) -> ast.Call | None:
    """The range of a loop that runs over start, stop, step at run time."""
    if isinstance(node, ast.For) and is_call(node.iter, "range", "cutlass.range"):
        call = node.iter
        assert isinstance(call, ast.Call)
        return call if len(call.args) == 3 else None
    return None


def writes_out(node: ast.AST, function: ast.FunctionDef) -> bool:
    """Does a statement write to memory that is not the thread's own?"""
    local = {show(n.targets[0]) for n in ast.walk(function)
             if isinstance(n, ast.Assign) and is_call(n.value, "lib.local")}  # fmt: skip
    for n in ast.walk(node):
        if is_call(n, "lib.copy") and not names_in(n.args[0]) & local:
            return True
        target = n.targets[0] if isinstance(n, ast.Assign) else None
        if isinstance(target, ast.Subscript) and show(target.value) not in local:
            return True
        if is_call(n, "rotate_pairs"):
            return True
    return False


@mutation("missing-tail", "what does not fill the block's last step, or the last vector, left out", NUMERICS, SANITIZER)
def missing_tail(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and writes_out(node, function):
            stop, step = show(call.args[1]), show(call.args[2])
            yield Edit(call.args[1], f"({stop}) - ({stop}) % ({step})")
    for _, node in port.nodes(ast.While):
        last = node.body[-1]
        test = node.test
        if isinstance(last, ast.Assign) and (parts := binary(last.value, ast.Add)) and comparison(test, ast.Lt):
            yield Edit(test.left, f"{show(test.left)} + {show(parts[1])} - 1")


@mutation("odd-vector", "an odd last vector left out", NUMERICS, SANITIZER)
def odd_vector(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.c_div") and show(node.args[1]) == "VEC":
            yield Edit(node, f"lib.c_div({show(node.args[0])}, VEC * 2) * 2")


@mutation("unwritten-last", "the last element or vector never written", NUMERICS, SANITIZER)
def unwritten_last(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and writes_out(node, function):
            yield Edit(call.args[1], f"({show(call.args[1])}) - 1")
    for function, node in port.nodes(ast.While, ast.If):
        test = node.test
        parts = comparison(test, ast.Lt)
        if parts and all(isinstance(x, ast.Name) for x in parts) and writes_out(node, function):
            yield Edit(parts[1], f"{show(parts[1])} - 1")


@mutation("unwritten-first", "the first element of each thread skipped", NUMERICS, SANITIZER)
def unwritten_first(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and writes_out(node, function):
            yield Edit(call.args[0], f"({show(call.args[0])}) + ({show(call.args[2])})")


@mutation("off-by-one-guard", "a guard that lets one more through", SANITIZER, NUMERICS)
def off_by_one_guard(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.While, ast.If, ast.IfExp):
        test = node.test
        clamps = isinstance(node, ast.IfExp) and show(node.body) in show(test)  # equal values stay what they are
        if (parts := comparison(test, ast.Lt)) and not is_call(parts[0], "Int32") and not clamps:
            yield Edit(test, f"{show(parts[0])} <= {show(parts[1])}")


@mutation("unguarded-id", "one half of a range check of an id dropped", SANITIZER, NUMERICS, most=2)
def unguarded_id(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        for op in (ast.BitAnd, ast.BitOr):
            if parts := binary(node, op):
                ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
                if all(isinstance(p, ast.Compare) and isinstance(p.ops[0], ordered) for p in parts):
                    yield Edit(node, show(parts[0]))
                    yield Edit(node, show(parts[1]))


@mutation("short-grid", "one block too few", NUMERICS)
def short_grid(port: PortText) -> Iterator[Edit]:
    if "grid_dim" in port.text:
        return  # blocks share the work there: any number of them is right
    for node in ast.walk(port.config):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            grid = node.value.elts[0]
            if isinstance(grid, ast.Tuple) and show(grid.elts[0]) != "1":
                yield Edit(grid.elts[0], f"max(({show(grid.elts[0])}) - 1, 1)")
