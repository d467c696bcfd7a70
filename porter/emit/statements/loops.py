"""For loops: which are Python ranges, which are unrolled at trace time, and which stay while loops."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from porter import ir
from porter.emit.evaluate import evaluate
from porter.emit.generic import ConstVariants
from porter.patterns.names import assigned_names

MAX_TRIPS = 4096


@dataclass(frozen=True)
class Range:
    """`for (i = start; i < stop; i += step)`; `descending` for `>` and a step that is taken off (`i -= step`).

    `inclusive` for <= and >=. A constant step is positive.
    """

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


def as_range(s: ir.For, memory: Collection[str] = ()) -> Range | None:
    """The loop as a range, when its variable, bound and step do not change inside it.

    `memory`: variables that pointers may reach, so that what changes them is not seen.
    """
    head = counted(s)
    if head is None:
        return None
    name, t, start, cond = head
    step = step_of(s, name)
    if step is None or step[0] not in ("+", "-"):
        return None
    changed = assigned_names(s.body)
    if name in changed or name in memory:
        return None
    for part in (cond.b, step[1]):
        for n in ir.walk(part):
            if isinstance(n, ir.Var) and (n.name in changed or n.name == name or n.name in memory):
                return None
            if (
                isinstance(n, ir.Deref | ir.Index | ir.Field | ir.Intrinsic | ir.Call)
                or type(n).__name__ == "HelperCall"
            ):
                if isinstance(n, ir.Intrinsic) and n.name in ("min", "max"):
                    continue
                return None
    by = _positive(step[1])
    if by is None:
        return None
    down = (step[0] == "-") == (by is step[1])
    if cond.op == "!=":
        if not (isinstance(start, ir.Const) and isinstance(cond.b, ir.Const) and isinstance(by, ir.Const)):
            return None
        if (start.value > cond.b.value) != down or (cond.b.value - start.value) % by.value:
            return None
    elif (cond.op in (">", ">=")) != down:
        return None
    unsigned = cond.a.type == ir.U32
    return Range(name, t, start, cond.b, by, down, cond.op in ("<=", ">="), unsigned)


def _positive(step: ir.Expr) -> ir.Expr | None:
    """The step, a negative constant turned round; None for one that is 0, or negative in some instances only."""
    if isinstance(step, ir.Const) and isinstance(step.value, int):
        return replace(step, value=-step.value, origin=None) if step.value < 0 else step if step.value else None
    if isinstance(step, ConstVariants):
        return step if all(v is None or v > 0 for v in step.values) else None
    return step


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
    i = evaluate(start, index, env)
    out: list[int] = []
    while i is not None:
        here = {**env, name: i}
        go = evaluate(cond, index, here)
        if go is None:
            return None
        if not go:
            return out
        out.append(i)
        if len(out) > MAX_TRIPS:
            return None
        i = evaluate(s.step[0].value, index, here)
    return None
