"""Bounds of integers: where C's and Python's `/`, `%` and comparisons agree, where arithmetic at trace time wraps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from porter import ir
from porter.emit.evaluate import integer_range, truncated
from porter.emit.generic import ConstVariants, Variants

Range = tuple[int, int]

INT_MAX = 2**31 - 1

#: largest value of each builtin on every architecture
BUILTINS = {
    "threadIdx.x": 1023,
    "threadIdx.y": 1023,
    "threadIdx.z": 63,
    "blockDim.x": 1024,
    "blockDim.y": 1024,
    "blockDim.z": 64,
    "blockIdx.x": INT_MAX - 1,
    "blockIdx.y": 65534,
    "blockIdx.z": 65534,
    "gridDim.x": INT_MAX,
    "gridDim.y": 65535,
    "gridDim.z": 65535,
    "warpSize": 32,
}


# Answers by node (its id), with the node so that it lives as long.
Answers = dict[int, tuple[ir.Expr, int | None]]
Intervals = dict[int, tuple[ir.Expr, Range | None]]


def upper(e: ir.Expr, known: dict[str, int], answers: Answers | None = None) -> int | None:
    """The largest value the expression can have when it is certainly in [0, 2^31), else None.

    `known` holds bounds of variables, by key; `answers` what was asked before with the same bounds. As every part of
    the expression that counts is in [0, 2^31) too, none of them has wrapped.
    """
    if _widest(e.type) is None:
        return None
    answers = {} if answers is None else answers
    if id(e) not in answers:
        bound = _upper(e, known, answers)
        answers[id(e)] = e, bound if bound is not None and 0 <= bound <= INT_MAX else None
    return answers[id(e)][1]


def _upper(e: Any, known: dict[str, int], answers: Answers) -> int | None:
    if isinstance(e, ir.Const):
        return int(e.value) if isinstance(e.value, int) and e.value >= 0 else None
    if isinstance(e, ConstVariants):
        vs = [v for v in e.values if v is not None]
        return max(vs) if vs and all(isinstance(v, int) and v >= 0 for v in vs) else None
    if isinstance(e, ir.Builtin):
        return BUILTINS.get(e.name)
    if isinstance(e, ir.Var):
        return known.get(e.name)
    if isinstance(e, ir.Cast) and isinstance(e.type, ir.Scalar) and e.type.is_int and ir.sizeof(e.type) >= 4:
        return upper(e.x, known, answers)
    if isinstance(e, ir.Cast) and e.x.type == ir.BOOL:
        return 1
    if isinstance(e, ir.Select):
        a, b = upper(e.a, known, answers), upper(e.b, known, answers)
        return max(a, b) if a is not None and b is not None else None
    if isinstance(e, ir.Intrinsic) and e.name in ("min", "max") and len(e.args) == 2:
        a, b = upper(e.args[0], known, answers), upper(e.args[1], known, answers)
        if a is None or b is None:
            return None
        return min(a, b) if e.name == "min" else max(a, b)
    if not isinstance(e, ir.Binary):
        return None
    a, b = upper(e.a, known, answers), upper(e.b, known, answers)
    if e.op == "&":
        found = [x for x in (a, b) if x is not None]
        return min(found) if found else None
    if a is None:
        return None
    if e.op == "/":
        return a // _lower(e.b) if b is not None else None
    if e.op == "%":
        return min(a, b - 1) if b else None
    if e.op == ">>":
        return a >> _lower(e.b, 0) if b is not None else None
    if b is None:
        return None
    if e.op == "+":
        return a + b
    if e.op == "*":
        return a * b
    if e.op == "<<":
        return a << b if b < 32 else None
    if e.op in ("|", "^"):
        return (1 << max(a.bit_length(), b.bit_length())) - 1
    return None


def _lower(e: ir.Expr, default: int = 1) -> int:
    if isinstance(e, ir.Const) and isinstance(e.value, int) and e.value > 0:
        return e.value
    if isinstance(e, ConstVariants):
        vs = [v for v in e.values if v is not None]
        return min(vs) if vs and all(isinstance(v, int) and v > 0 for v in vs) else default
    return default


# ---------------------------------------------------------------- arithmetic at trace time


def interval(e: ir.Expr, known: Mapping[str, Range], answers: Intervals | None = None) -> Range | None:
    """(smallest, largest) value that an integer expression can have; None for other types.

    `known`: those of variables, by key; `answers`: what was asked before with the same.
    """
    answers = {} if answers is None else answers
    if id(e) not in answers:
        whole = _widest(e.type)
        found = _exact(e, known, answers) if whole is not None else None
        answers[id(e)] = e, whole if found is None or not _within(found, e.type) else found
    return answers[id(e)][1]


def fits(e: ir.Expr, known: Mapping[str, Range], answers: Intervals | None = None) -> bool:
    """Whether the exact result of an operation or conversion certainly is a value of its type: Python's integers, which
    do not wrap, then give what C gives."""
    found = _exact(e, known, {} if answers is None else answers)
    return found is not None and _within(found, e.type)


def _types(t: Any) -> list[Any]:
    return [x for x in t.types if x is not None] if isinstance(t, Variants) else [t]


def _widest(t: Any) -> Range | None:
    found = [integer_range(x) for x in _types(t)]
    known = [x for x in found if x is not None]
    return (min(a for a, _ in known), max(b for _, b in known)) if known and len(known) == len(found) else None


def _within(found: Range, t: Any) -> bool:
    ranges = [integer_range(x) for x in _types(t)]
    return all(x is not None and x[0] <= found[0] and found[1] <= x[1] for x in ranges)


def _exact(e: Any, known: Mapping[str, Range], answers: Intervals) -> Range | None:
    """Range of the result before it is wrapped to the expression's type."""
    if isinstance(e, ir.Const):
        return (int(e.value), int(e.value)) if isinstance(e.value, int) else None
    if isinstance(e, ConstVariants):
        vs = [v for v in e.values if v is not None]
        return (min(vs), max(vs)) if vs and all(isinstance(v, int) for v in vs) else None
    if isinstance(e, ir.Builtin):
        return (0, BUILTINS[e.name]) if e.name in BUILTINS else None
    if isinstance(e, ir.Var):
        return known.get(e.name)
    if isinstance(e, ir.Cast):
        return interval(e.x, known, answers)
    if isinstance(e, ir.Select):
        return _join(interval(e.a, known, answers), interval(e.b, known, answers))
    if isinstance(e, ir.Intrinsic) and e.name in ("min", "max") and len(e.args) == 2:
        a, b = interval(e.args[0], known, answers), interval(e.args[1], known, answers)
        pick = min if e.name == "min" else max
        return (pick(a[0], b[0]), pick(a[1], b[1])) if a and b else None
    if isinstance(e, ir.Unary):
        a = interval(e.x, known, answers)
        if a is None:
            return None
        return (0, 1) if e.op == "!" else (-a[1], -a[0]) if e.op == "-" else (~a[1], ~a[0])
    if isinstance(e, ir.Binary):
        if e.op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||"):
            return 0, 1
        a, b = interval(e.a, known, answers), interval(e.b, known, answers)
        return _operation(e.op, a, b) if a is not None and b is not None else None
    return None


def _join(a: Range | None, b: Range | None) -> Range | None:
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else None


def _operation(op: str, a: Range, b: Range) -> Range | None:
    corners = [(x, y) for x in a for y in b]
    if op in ("<<", ">>"):
        if not 0 <= b[0] <= b[1] < 64:
            return None
        values = [x << y if op == "<<" else x >> y for x, y in corners]
    elif op in ("+", "-", "*"):
        values = [x + y if op == "+" else x - y if op == "-" else x * y for x, y in corners]
    elif op == "/":
        if b[0] <= 0 <= b[1]:
            return None
        values = [truncated(x, y) for x, y in corners]
    elif op == "%":
        if b[0] <= 0 <= b[1]:
            return None
        most = max(abs(b[0]), abs(b[1])) - 1
        return (max(a[0], -most) if a[0] < 0 else 0, min(a[1], most) if a[1] > 0 else 0)
    elif op == "&" and (a[0] >= 0 or b[0] >= 0):
        return 0, min(x[1] for x in (a, b) if x[0] >= 0)
    elif op in ("&", "|", "^"):
        # two's complement numbers of n bits give numbers of n bits
        bits = max(x.bit_length() for x in (*a, *b))
        return (0 if a[0] >= 0 and b[0] >= 0 else -(1 << bits), (1 << bits) - 1)
    else:
        return None
    return min(values), max(values)
