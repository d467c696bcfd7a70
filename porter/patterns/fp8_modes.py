"""Conversions to and from fp8 whose format arrives through parameters.

A format or saturation mode that is a parameter with the same constant at every call becomes that constant. Exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.constants import varying

PREFIX = "__nv_cvt_"


def constant_formats(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every format and mode of these conversions that has one value as that constant."""
    if not any(_is_conversion(n) for n in ir.walk((kernel.body, *(f.body for f in kernel.functions.values())))):
        return kernel
    known = _parameters(kernel)
    functions = {k: replace(f, body=_settle(kernel, f.body, known[k])) for k, f in kernel.functions.items()}
    return replace(kernel, body=_settle(kernel, kernel.body, {}), functions=functions)


def _is_conversion(node: Any) -> bool:
    return isinstance(node, ir.Intrinsic) and node.name.startswith(PREFIX)


def _value(e: ir.Expr, known: dict[str, int]) -> int | None:
    while isinstance(e, ir.Cast) and isinstance(e.type, ir.Scalar) and e.type.is_int:
        e = e.x
    if isinstance(e, ir.Const) and isinstance(e.value, int):
        return int(e.value)
    return known.get(e.name) if isinstance(e, ir.Var) else None


def _parameters(kernel: ir.Kernel) -> dict[str, dict[str, int]]:
    """By function: parameters that have the same constant at every call, and are never changed."""
    known: dict[str, dict[str, int]] = {k: {} for k in kernel.functions}
    fixed = {k: varying(f.body, kernel.functions) for k, f in kernel.functions.items()}
    for _ in range(len(kernel.functions) + 1):
        arguments: dict[tuple[str, str], set[int | None]] = {}
        scopes = [(kernel.body, _locals(kernel, kernel.body, {}))]
        scopes += [(f.body, _locals(kernel, f.body, known[k])) for k, f in kernel.functions.items()]
        for body, names in scopes:
            for call in ir.walk(body):
                if isinstance(call, ir.Call) and call.function in kernel.functions:
                    for p, a in zip(kernel.functions[call.function].params, call.args, strict=False):
                        arguments.setdefault((call.function, p.name), set()).add(_value(a, names))
        found: dict[str, dict[str, int]] = {k: {} for k in kernel.functions}
        for (function, name), values in arguments.items():
            (value, *others) = values
            if value is not None and not others and name not in fixed[function]:
                found[function][name] = value
        if found == known:
            break
        known = found
    return known


def _locals(kernel: ir.Kernel, body: tuple[ir.Stmt, ...], known: dict[str, int]) -> dict[str, int]:
    """`known` with the locals that are one whole number throughout."""
    names, changing = dict(known), varying(body, kernel.functions)
    for node in ir.walk(body):
        if isinstance(node, ir.Decl) and node.init is not None and node.name not in changing:
            value = _value(node.init, names)
            if value is not None:
                names[node.name] = value
    return names


def _settle(kernel: ir.Kernel, body: tuple[ir.Stmt, ...], known: dict[str, int]) -> tuple[ir.Stmt, ...]:
    names = _locals(kernel, body, known)

    def settle(node: Any) -> Any:
        if not _is_conversion(node):
            return node
        args = [node.args[0]]
        for a in node.args[1:]:
            value = _value(a, names)
            args.append(a if value is None else ir.Const(value, type=a.type, span=a.span))
        return replace(node, args=tuple(args))

    found: tuple[ir.Stmt, ...] = ir.rewrite(body, settle)
    return found
