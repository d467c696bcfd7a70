"""Arithmetic on floating-point constants, done here with C++'s roundings: the DSL's own folding keeps Python's doubles.

Measured: `Float32(Float16(0.1)) * Float32(0.2)` is 0.02 at trace time; neither constant nor product is ever rounded.
Exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from porter import ir

_ROUNDS_TO = {
    "__float2half": "f16", "__float2half_rn": "f16", "__double2half": "f16", "__half2float": "f32",
    "__float2bfloat16": "bf16", "__float2bfloat16_rn": "bf16", "__bfloat162float": "f32",
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_HALF_ARITHMETIC = {f"__h{name}{end}": op for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))
                    for end in ("", "_rn")}  # fmt: skip


def rounded(value: float, name: str) -> float:
    """The value rounded to a floating type (nearest, ties to even)."""
    if name == "f64" or not math.isfinite(value):
        return value
    with np.errstate(all="ignore"):
        if name == "f16":
            return float(np.float16(value))
        single = np.float32(value)
        if name == "f32" or not np.isfinite(single):
            return float(single)
        bits = int(single.view(np.uint32))  # bf16; constants that are no float32 are not double-rounded in practice
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return float(np.uint32(bits).view(np.float32))


_FLOATS = ("f16", "bf16", "f32", "f64")


def _float_type(t: ir.Type) -> str | None:
    return t.name if isinstance(t, ir.Scalar) and t.name in _FLOATS else None


def _number(e: ir.Expr, known: Mapping[str, float]) -> float | None:
    """The value of a constant or of a local that never has another."""
    if isinstance(e, ir.Const) and isinstance(e.value, (int, float)) and not isinstance(e.value, bool):
        return float(e.value)
    if isinstance(e, ir.Var) and _float_type(e.type):
        return known.get(e.name)
    return None


def _constant(value: float, name: str, at: ir.Expr) -> ir.Const:
    return ir.Const(rounded(value, name), type=at.type, span=at.span)


def _folded(e: Any, known: Mapping[str, float]) -> Any:
    """The expression as one constant where its operands are."""
    if not isinstance(e, ir.Expr):
        return e
    name = _float_type(e.type)
    if name is None:
        return e
    if isinstance(e, ir.Const) and isinstance(e.value, float) and rounded(e.value, name) != e.value:
        return e if math.isnan(e.value) else replace(e, value=rounded(e.value, name))
    if isinstance(e, ir.Cast) and isinstance(e.x, ir.Const) and e.x.origin is None and isinstance(e.x.type, ir.Scalar):
        value = _number(e.x, known)
        return e if value is None else _constant(value, name, e)
    if isinstance(e, ir.Unary) and e.op == "-" and isinstance(e.x, ir.Const):
        value = _number(e.x, known)
        return e if value is None else _constant(-value, name, e)
    if isinstance(e, ir.Intrinsic):
        return _folded_intrinsic(e, name, known)
    if isinstance(e, ir.Binary) and e.op in _ARITHMETIC:
        return _folded_pair(e, e.op, (e.a, e.b), name, known)
    return e


def _folded_intrinsic(e: ir.Intrinsic, name: str, known: Mapping[str, float]) -> ir.Expr:
    if _ROUNDS_TO.get(e.name) == name and len(e.args) == 1 and isinstance(e.args[0], ir.Const):
        value = _number(e.args[0], known)
        return e if value is None else _constant(value, name, e)
    if e.name in _HALF_ARITHMETIC and len(e.args) == 2:
        return _folded_pair(e, _HALF_ARITHMETIC[e.name], (e.args[0], e.args[1]), name, known)
    return e


def _folded_pair(e: ir.Expr, op: str, pair: tuple[ir.Expr, ir.Expr], name: str, known: Mapping[str, float]) -> ir.Expr:
    a, b = _number(pair[0], known), _number(pair[1], known)
    if a is None or b is None or (op == "/" and b == 0.0):
        return e
    value = _ARITHMETIC[op](a, b)
    return e if math.isnan(value) else _constant(value, name, e)


def varying(body: tuple[ir.Stmt, ...], functions: Mapping[str, ir.Function] | None = None) -> set[str]:
    """Locals that may have more than one value: declared twice, assigned, or reached by reference.

    Arguments of `functions` count where the parameter is a reference, those of other calls always.
    """
    declared: set[str] = set()
    found: set[str] = set()

    def roots(*places: Any) -> None:
        for e in places:
            while isinstance(e, ir.Field | ir.Index):
                e = e.base
            if isinstance(e, ir.Var):
                found.add(e.name)

    for node in ir.walk(body):
        if isinstance(node, ir.Decl | ir.SharedDecl):
            (found if node.name in declared else declared).add(node.name)
        elif isinstance(node, ir.Assign | ir.Copy):
            roots(node.target)
        elif isinstance(node, ir.AddressOf | ir.Decay):
            roots(node.place)
        elif isinstance(node, ir.Call) and functions and node.function in functions:
            params = functions[node.function].params
            roots(*(a for p, a in zip(params, node.args, strict=False) if p.by_ref))
        elif isinstance(node, ir.Call) or (isinstance(node, ir.Intrinsic) and not _is_pure(node.name)):
            roots(*node.args)
        elif isinstance(node, ir.Asm):
            roots(*(place for _, place in node.outputs))
    return found


def _is_pure(name: str) -> bool:
    return name in _ROUNDS_TO or name in _HALF_ARITHMETIC or name.startswith("__nv_cvt_")


def fold_floats(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Statements with every floating-point operation on constants replaced by its result."""
    changing = varying(body)
    known: dict[str, float] = {}

    def fold(node: Any) -> Any:
        if not isinstance(node, ir.Decl):
            return _folded(node, known)
        if isinstance(node.init, ir.Const) and node.name not in changing and not node.ref and _float_type(node.type):
            value = _number(node.init, known)
            if value is not None:
                known[node.name] = value
        return node

    found: tuple[ir.Stmt, ...] = ir.rewrite(body, fold)
    return found
