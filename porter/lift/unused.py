"""What nothing reads once a port is lifted: locals, device functions, imported names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from porter.lift.lines import Function, Line, every
from porter.lift.terms import text_of

#: calls without an effect
_PURE = re.compile(
    r"(lib\.(local|c_div|c_mod|constant)|cute\.(make_rmem_tensor|local_tile)|U?[iI]nt\d+|B?[fF]loat\d+|Boolean)$"
)


def drop_unused_locals(fn: Function) -> None:
    """Leave out, in place, assignments without an effect to names that nothing reads."""
    while True:
        read = {n.id for x in every(fn.body) if x.node for n in ast.walk(x.node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}  # fmt: skip
        before = sum(1 for _ in every(fn.body))
        fn.body = _without(fn.body, read)
        if sum(1 for _ in every(fn.body)) == before:
            return


def _without(block: list[Line], read: set[str]) -> list[Line]:
    out = []
    for x in block:
        x.body = _without(x.body, read) or ([Line("pass")] if x.body else [])
        if not _is_unused(x, read):
            out.append(x)
    return out


def _is_unused(x: Line, read: set[str]) -> bool:
    node = x.node
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name) or node.targets[0].id in read:
        return False
    parts = list(ast.walk(node.value))
    return not any(isinstance(n, ast.Subscript) for n in parts) and all(
        _PURE.match(text_of(n.func)) for n in parts if isinstance(n, ast.Call)
    )


def used_functions(functions: list[Function]) -> list[Function]:
    """The functions that the kernel, the last of them, reaches."""
    while True:
        kept = [f for i, f in enumerate(functions) if i + 1 == len(functions) or _is_called(f, functions)]
        if len(kept) == len(functions):
            return kept
        functions = kept


def _is_called(fn: Function, functions: Iterable[Function]) -> bool:
    return any(re.search(rf"\b{fn.name}\b", x.text) for f in functions if f is not fn for x in every(f.body))


def used_imports(before: list[Line], rest: str) -> None:
    """Leave out, in place, what `from cutlass import` names and the rest of the port does not."""
    for x in before:
        if x.text.startswith("from cutlass import "):
            names = x.text.removeprefix("from cutlass import ").split(", ")
            x.text = "from cutlass import " + ", ".join(n for n in names if re.search(rf"\b{n}\b", rest))
