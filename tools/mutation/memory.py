"""Mistakes in addresses: parameters, strides, indices, stores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.mutation.bounds import writes_out
from tools.mutation.port_text import Edit, PortText, binary, is_call, parameters, pointers, show
from tools.mutation.registry import NUMERICS, SANITIZER, mutation


@mutation("swapped-parameters", "two parameters of one type swapped (gamma and beta)", NUMERICS, most=2)
def swapped_parameters(port: PortText) -> Iterator[Edit]:
    for function in port.device:
        known = pointers(function)
        plain = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and (p := binary(n.value, ast.Add))
                 and show(p[0]) in known and isinstance(p[1], ast.Name)]  # fmt: skip
        for a in plain:
            for b in plain:
                if a.lineno < b.lineno and show(a.value.right) == show(b.value.right):
                    one, two = show(a.value.left), show(b.value.left)
                    if one != two:
                        yield _exchanged(function, one, two)
    for _, node in port.nodes(ast.IfExp):
        named = isinstance(node.body, ast.Name) and isinstance(node.orelse, ast.Name)
        if named and show(node.body).split("_")[-1] == show(node.orelse).split("_")[-1]:
            yield Edit(node, f"{show(node.orelse)} if {show(node.test)} else {show(node.body)}")
    own = {f.name for f in port.device}
    for _, node in port.nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in own:
            args = node.args
            for i in range(len(args) - 1):
                a, b = show(args[i]), show(args[i + 1])
                if isinstance(args[i], ast.Name) and isinstance(args[i + 1], ast.Name) and a.endswith("_row"):
                    swapped = [*map(show, args[:i]), b, a, *map(show, args[i + 2 :])]
                    yield Edit(node, f"{show(node.func)}({', '.join(swapped)})")


def _exchanged(function: ast.FunctionDef, one: str, two: str) -> Edit:
    """The names of two parameters exchanged in the function's head: its callers pass them by position."""
    swapped = {one: two, two: one}
    given = function.args.args
    head = ast.Expr(ast.Constant(""))  # the text from the first parameter to the last
    head.lineno, head.col_offset = given[0].lineno, given[0].col_offset
    head.end_lineno, head.end_col_offset = given[-1].end_lineno, given[-1].end_col_offset
    texts = [f"{swapped.get(a.arg, a.arg)}: {show(a.annotation)}" for a in given if a.annotation is not None]
    return Edit(head, ", ".join(texts))


@mutation("off-by-one-stride", "a row stride one too large", NUMERICS, SANITIZER)
def off_by_one_stride(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                if show(side).endswith("_stride") or show(side) in ("Int64(hidden_size)", "Int64(d)", "Uint64(cols)"):
                    yield Edit(side, f"({show(side)} + 1)")


@mutation("contiguous-rows", "rows taken to lie side by side, their stride ignored", NUMERICS, SANITIZER)
def contiguous_rows(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.BinOp):
        length = next((n for n in ("hidden_size", "cols") if n in parameters(function)), "")
        if isinstance(node.op, ast.Mult) and length:
            for side in (node.left, node.right):
                if show(side).endswith("_stride"):
                    yield Edit(side, f"Int64({length})")


@mutation("narrow-index", "a row's offset computed in 32 bits", NUMERICS, SANITIZER)
def narrow_index(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if (parts := binary(node, ast.Mult)) and show(parts[1]).endswith("_stride"):
            yield Edit(node, f"Int64(Int32({show(parts[0])}) * Int32({show(parts[1])}))")


@mutation("vector-stride", "a vector's index used as an element's", NUMERICS, SANITIZER)
def vector_stride(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if (parts := binary(node, ast.Mult)) and show(parts[1]) == "VEC" and is_call(parts[0], "Int64"):
            yield Edit(node, show(parts[0]))


@mutation("transposed-scales", "rows and columns of a small output exchanged", NUMERICS, SANITIZER)
def transposed_scales(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Assign):
        target, value = node.targets[0], node.value
        given = parameters(function)
        by_group = isinstance(target, ast.Subscript) and {"groups_per_token", "num_groups"} <= given
        if by_group and show(target.value) == "output_s":
            at, groups = show(target.slice), "Int64(groups_per_token)"
            yield Edit(target.slice, f"({at} % {groups}) * (num_groups // {groups}) + {at} // {groups}")
        rows = "num_tokens" if "num_tokens" in given else "gdimx"
        if show(target) == "slot" and (parts := binary(value, ast.Add)) and (product := binary(parts[0], ast.Mult)):
            yield Edit(value, f"{show(parts[1])} * Int64({rows}) + {show(product[0])}")


@mutation("dropped-store", "a store left out", NUMERICS, SANITIZER, most=2)
def dropped_store(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Expr, ast.Assign):
        if isinstance(node, ast.Expr) and not is_call(node.value, "lib.copy", "lib.store"):
            continue
        if writes_out(node, function):
            yield Edit(node, "pass")


@mutation("unset-local", "a local that one branch leaves without a value", NUMERICS)
def unset_local(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.If):
        for other in node.orelse:
            body = other.body[0] if isinstance(other, ast.For) and len(other.body) == 1 else other
            if isinstance(body, ast.Assign) and isinstance(body.targets[0], ast.Subscript):
                yield Edit(other, "pass")
