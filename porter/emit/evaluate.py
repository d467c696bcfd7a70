"""Integer expressions over constants, evaluated as C does in one instance: each operation wraps to its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants, Variants

_OPERATIONS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: truncated(a, b) if b else None,
    "%": lambda a, b: a - b * truncated(a, b) if b else None,
    "<<": lambda a, b: a << b if 0 <= b < 64 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else None,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}


def truncated(a: int, b: int) -> int:
    """C's quotient; `b` is not 0."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def integer_range(t: Any) -> tuple[int, int] | None:
    """Smallest and largest value of an integer type; None for other types."""
    if not isinstance(t, ir.Scalar) or not t.is_int:
        return None
    if t == ir.BOOL:
        return 0, 1
    bits = 8 * ir.sizeof(t)
    return (0, (1 << bits) - 1) if t.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def wrapped(value: int, t: Any) -> int | None:
    """The value as an integer type holds it (modulo 2^bits; bool: whether it is not 0), None for other types."""
    found = integer_range(t)
    if found is None:
        return None
    if t == ir.BOOL:
        return int(value != 0)
    low, high = found
    return (value - low) % (high - low + 1) + low


def evaluate(e: Any, index: int, known: Mapping[str, int]) -> int | None:
    """Value of an integer expression in instance `index`, None where it is not constant there.

    `known` are values of variables, by key.
    """
    value = _evaluate(e, index, known)
    if value is None:
        return None
    t = e.type.types[index] if isinstance(e.type, Variants) else e.type
    return wrapped(value, t)


def _evaluate(e: Any, index: int, known: Mapping[str, int]) -> int | None:
    if isinstance(e, ir.Const):
        return int(e.value) if isinstance(e.value, int) else None
    if isinstance(e, ConstVariants):
        v = e.values[index]
        return int(v) if isinstance(v, int) else None
    if isinstance(e, ir.Var):
        return known.get(e.name)
    if isinstance(e, ir.Builtin) and e.name == "warpSize":
        return 32
    if isinstance(e, ir.Cast):
        return evaluate(e.x, index, known)
    if isinstance(e, ir.Unary):
        a = evaluate(e.x, index, known)
        if a is None:
            return None
        return -a if e.op == "-" else ~a if e.op == "~" else int(not a)
    if isinstance(e, ir.Binary) and e.op in _OPERATIONS:
        a, b = evaluate(e.a, index, known), evaluate(e.b, index, known)
        return _OPERATIONS[e.op](a, b) if a is not None and b is not None else None
    if isinstance(e, ir.Intrinsic) and e.name in ("min", "max") and len(e.args) == 2:
        a, b = evaluate(e.args[0], index, known), evaluate(e.args[1], index, known)
        if a is None or b is None:
            return None
        return min(a, b) if e.name == "min" else max(a, b)
    return None
