"""For loops: which are Python ranges, which are unrolled at trace time, and which stay while loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants
from porter.patterns.names import assigned_names

MAX_TRIPS = 4096


@dataclass(frozen=True)
class Range:
    """`for (i = start; i < stop; i += step)`; `descending` for `>` and a negative step; `inclusive` for <= and >=."""

    var: str
    type: ir.Type
    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr
    descending: bool = False
    inclusive: bool = False
    unsigned_compare: bool = False


def strip(e: ir.Expr) -> ir.Expr:
    """The expression without casts between 32-bit integers."""
    while isinstance(e, ir.Cast) and e.type in (ir.I32, ir.U32) and e.x.type in (ir.I32, ir.U32):
        e = e.x
    return e


def is_var(e: ir.Expr, name: str) -> bool:
    e = strip(e)
    return isinstance(e, ir.Var) and e.name == name


def step_of(s: ir.For, name: str) -> tuple[str, ir.Expr] | None:
    """(operator, operand) of the single step statement `i = i op c`."""
    if len(s.step) != 1 or not isinstance(s.step[0], ir.Assign):
        return None
    a = s.step[0]
    if not is_var(a.target, name):
        return None
    v = strip(a.value)
    if not isinstance(v, ir.Binary):
        return None
    if is_var(v.a, name):
        return v.op, v.b
    if v.op in ("+", "*") and is_var(v.b, name):
        return v.op, v.a
    return None


def counted(s: ir.For) -> tuple[str, ir.Type, ir.Expr, ir.Binary] | None:
    """(variable, type, start, condition) of a loop over one declared variable compared with something."""
    if len(s.init) != 1 or not isinstance(s.init[0], ir.Decl) or s.init[0].init is None:
        return None
    d = s.init[0]
    c = s.cond
    if d.init is None or not isinstance(c, ir.Binary) or c.op not in ("<", "<=", ">", ">=", "!="):
        return None
    if not is_var(c.a, d.name):
        return None
    return d.name, d.type, d.init, c


def as_range(s: ir.For) -> Range | None:
    """The loop as a range, when its variable, bound and step do not change inside it."""
    head = counted(s)
    if head is None:
        return None
    name, t, start, cond = head
    step = step_of(s, name)
    if step is None or step[0] not in ("+", "-"):
        return None
    changed = assigned_names(s.body)
    if name in changed:
        return None
    for part in (cond.b, step[1]):
        for n in ir.walk(part):
            if isinstance(n, ir.Var) and (n.name in changed or n.name == name):
                return None
            if (
                isinstance(n, ir.Deref | ir.Index | ir.Field | ir.Intrinsic | ir.Call)
                or type(n).__name__ == "HelperCall"
            ):
                if isinstance(n, ir.Intrinsic) and n.name in ("min", "max"):
                    continue
                return None
    down = (step[0] == "-") != (isinstance(step[1], ir.Const) and step[1].value < 0)
    if cond.op == "!=":
        if not (isinstance(start, ir.Const) and isinstance(cond.b, ir.Const)):
            return None
        if (start.value > cond.b.value) != down or (cond.b.value - start.value) % max(
            abs(getattr(step[1], "value", 0) or 0), 1
        ):
            return None
    elif (cond.op in (">", ">=")) != down:
        return None
    unsigned = cond.a.type == ir.U32
    return Range(name, t, start, cond.b, step[1], down, cond.op in ("<=", ">="), unsigned)


def _value(e: Any, index: int, env: dict[str, int]) -> int | None:
    """Value of an integer expression over constants in instance `index`, else None."""
    if isinstance(e, ir.Const):
        return int(e.value) if isinstance(e.value, int) else None
    if isinstance(e, ConstVariants):
        v = e.values[index]
        return int(v) if isinstance(v, int) else None
    if isinstance(e, ir.Var):
        return env.get(e.name)
    if isinstance(e, ir.Builtin) and e.name == "warpSize":
        return 32
    if isinstance(e, ir.Cast) and isinstance(e.type, ir.Scalar) and e.type.is_int:
        return _value(e.x, index, env)
    if isinstance(e, ir.Binary):
        a, b = _value(e.a, index, env), _value(e.b, index, env)
        if a is None or b is None:
            return None
        return _apply(e.op, a, b)
    if isinstance(e, ir.Unary) and e.op == "-":
        a = _value(e.x, index, env)
        return -a if a is not None else None
    if isinstance(e, ir.Intrinsic) and e.name in ("min", "max") and len(e.args) == 2:
        a, b = _value(e.args[0], index, env), _value(e.args[1], index, env)
        if a is None or b is None:
            return None
        return min(a, b) if e.name == "min" else max(a, b)
    return None


def _apply(op: str, a: int, b: int) -> int | None:
    if op in ("/", "%") and b == 0:
        return None
    table: dict[str, Any] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: int(a / b),
        "%": lambda: a - b * int(a / b),
        "<<": lambda: a << b,
        ">>": lambda: a >> b,
        "&": lambda: a & b,
        "|": lambda: a | b,
        "^": lambda: a ^ b,
        "<": lambda: int(a < b),
        "<=": lambda: int(a <= b),
        ">": lambda: int(a > b),
        ">=": lambda: int(a >= b),
        "==": lambda: int(a == b),
        "!=": lambda: int(a != b),
    }
    return table[op]() if op in table else None


def trips(s: ir.For, index: int, env: dict[str, int]) -> list[int] | None:
    """The values a loop's variable takes, when they are known at trace time in instance `index`; at most MAX_TRIPS."""
    head = counted(s)
    if (
        head is None
        or len(s.step) != 1
        or not isinstance(s.step[0], ir.Assign)
        or not is_var(s.step[0].target, head[0])
    ):
        return None
    name, _, start, cond = head
    if name in assigned_names(s.body):
        return None
    i = _value(start, index, env)
    out: list[int] = []
    while i is not None:
        here = {**env, name: i}
        go = _value(cond, index, here)
        if go is None:
            return None
        if not go:
            return out
        out.append(i)
        if len(out) > MAX_TRIPS:
            return None
        i = _value(s.step[0].value, index, here)
    return None
