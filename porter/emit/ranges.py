"""Upper bounds of non-negative integers, to know where C's and Python's `/`, `%` and comparisons agree."""

from __future__ import annotations

from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants

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


def upper(e: ir.Expr, known: dict[str, int]) -> int | None:
    """The largest value the expression can have when it is certainly in [0, 2^31), else None.

    `known` holds bounds of variables.
    """
    bound = _upper(e, known)
    return bound if bound is not None and 0 <= bound <= INT_MAX else None


def _upper(e: Any, known: dict[str, int]) -> int | None:
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
        return upper(e.x, known)
    if isinstance(e, ir.Cast) and isinstance(e.x.type, ir.Scalar) and e.x.type == ir.BOOL:
        return 1
    if isinstance(e, ir.Select):
        a, b = upper(e.a, known), upper(e.b, known)
        return max(a, b) if a is not None and b is not None else None
    if isinstance(e, ir.Intrinsic) and e.name in ("min", "max") and len(e.args) == 2:
        a, b = upper(e.args[0], known), upper(e.args[1], known)
        if a is None or b is None:
            return None
        return min(a, b) if e.name == "min" else max(a, b)
    if not isinstance(e, ir.Binary):
        return None
    a, b = upper(e.a, known), upper(e.b, known)
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
