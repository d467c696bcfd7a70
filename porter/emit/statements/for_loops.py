"""`for` loops whose values are known at trace time, or that count: Python loops over values and over ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from porter import ir
from porter.emit.expressions.ranges import INT_MAX, upper
from porter.emit.generic import ConstVariants
from porter.emit.statements.loops import Range, as_range, counted, step_of, trips
from porter.emit.text import ATOM, Text

if TYPE_CHECKING:
    from porter.emit.statements.writer import BodyWriter

UNROLL_TRIPS = 16  # loops with at most so many known trips are unrolled at trace time without a pragma
MAX_UNROLL = 256  # beyond this a trace-time unroll takes seconds; the compiler unrolls instead


def write_for(w: BodyWriter, s: ir.For) -> bool:
    """Write a loop as one over known values or over a range; False, with nothing written, where it is neither."""
    known = [trips(s, i, w.env.get(i, {})) for i in w.instances()]
    if all(k is not None for k in known) and _unrolled(w, s, [k for k in known if k is not None]):
        return True
    r = as_range(s, w.scope.memory)
    return r is not None and _range(w, s, r)


def _unrolled(w: BodyWriter, s: ir.For, known: list[list[int]]) -> bool:
    head = counted(s)
    assert head is not None
    name = head[0]
    longest = max(len(k) for k in known)
    wanted = s.unroll == 0 or (s.unroll or 0) > 1 or longest <= UNROLL_TRIPS or _indexes_local(w, s)
    geometric = as_range(s, w.scope.memory) is None
    if s.unroll == 1 or longest > MAX_UNROLL or not (wanted or geometric):
        return False
    weight = sum(1 for _ in ir.walk(s.body))
    if longest * weight > 60000:
        return False
    iterable = _iterable(w, s, known)
    if iterable is None:
        return False
    py = w.own_name(name, head[1])
    if " if " in iterable and not iterable.startswith(("cutlass.", "lib.")):
        # CuTeDSL cannot take a conditional expression as what a loop runs over
        table = w.fresh(f"{py}_values")
        w.put(f"{table} = {iterable}", s.span, "constant_loop")
        iterable = table
    w.scope.static.add(name)
    values = [v for k in known for v in k] or [0]
    w.scope.ranges[name] = min(values), max(values)
    if min(values) >= 0:
        w.scope.bounds[name] = max(values)
    with w.nested():
        w.see(name)
        w.block(f"for {py} in {iterable}:", s.body, s.span, "constant_loop")
    return True


def _iterable(w: BodyWriter, s: ir.For, known: list[list[int]]) -> str | None:
    r = as_range(s, w.scope.memory)
    if (r is not None and not r.unsigned_compare) or (r is not None and all(v >= 0 for k in known for v in k)):
        start, stop, step = w.e.expr(r.start), w.e.expr(r.stop), w.e.expr(r.step)
        if start.static and stop.static and step.static:
            return _range_text(w, "cutlass.range_constexpr", r, start, stop, step)
    if all(k == known[0] for k in known):
        if len(known[0]) == 1:
            return f"({known[0][0]},)"
        return f"({', '.join(map(str, known[0]))})"
    head = counted(s)
    assert head is not None
    step_op = step_of(s, head[0])
    start = w.e.expr(head[2])
    if step_op is not None and start.static and isinstance(step_op[1], ir.Const):
        halves = (step_op[0] == ">>" and step_op[1].value == 1) or (step_op[0] == "/" and step_op[1].value == 2)
        if halves and all(k == [v for v in _halving(k[0] if k else 0)] for k in known):
            return f"lib.halving({start.text})"
    table = [tuple(k) for k in known]
    full: list[Any] = [None] * w.scope.params.count
    for i, k in zip(w.instances(), table, strict=True):
        full[i] = k
    return w.scope.params.const_text(tuple(full))


def _indexes_local(w: BodyWriter, s: ir.For) -> bool:
    """True when the loop variable picks elements of a thread-private array, which registers cannot do at run
    time."""
    head = counted(s)
    if head is None:
        return False
    for n in ir.walk(s.body):
        if isinstance(n, ir.Index) and any(isinstance(v, ir.Var) and v.name == head[0] for v in ir.walk(n.index)):
            root: ir.Expr = n.base
            while isinstance(root, ir.Field | ir.Index):
                root = root.base
            if isinstance(root, ir.Var) and root.name in w.scope.memory:
                return True
    return False


def _range_text(w: BodyWriter, fn: str, r: Range, start: Text, stop: Text, step: Text, extra: str = "") -> str:
    stop_text = stop.text
    if r.inclusive:
        stop_text = f"{stop.at(4)} {'-' if r.descending else '+'} 1"
    step_text = step.text
    if r.descending:
        step_text = step_text[1:] if step_text.startswith("-") else f"-{step.at(ATOM)}"
    if step_text == "1" and start.text in ("0", "Int32(0)"):
        return f"{fn}({stop_text}{extra})"
    if step_text == "1":
        return f"{fn}({start.text}, {stop_text}{extra})"
    return f"{fn}({start.text}, {stop_text}, {step_text}{extra})"


def _range(w: BodyWriter, s: ir.For, r: Range) -> bool:
    kinds = w.e.kinds(r.type)
    bounds = w.scope.bounds
    if kinds != {"i32"} and not (
        kinds == {"u32"} and upper(r.start, bounds) is not None and upper(r.stop, bounds) is not None
    ):
        return False
    nonneg = upper(r.start, bounds) is not None and not r.descending
    if r.unsigned_compare and not (nonneg and upper(r.stop, bounds) is not None):
        return False
    step_known = upper(r.step, bounds)
    if step_known is None and (kinds == {"u32"} or not isinstance(r.step, ir.Const | ConstVariants)):
        return False  # the sign of the step is unknown
    if kinds == {"u32"} and r.inclusive and (r.descending or upper(r.stop, bounds) == INT_MAX):
        return False  # one past the end is no number of the type, or no Int32
    start, stop, step = _int32(w, r.start), _int32(w, r.stop), _int32(w, r.step)
    if start is None or stop is None or step is None:
        return False
    if r.descending and not step.static:
        return False
    fn = "range"
    extra = ""
    if s.unroll is not None:
        fn = "cutlass.range"
        extra = (
            ", unroll_full=True" if s.unroll == 0 and start.static and stop.static else f", unroll={max(s.unroll, 1)}"
        )
        if s.unroll == 0 and not (start.static and stop.static):
            fn, extra = "range", ""
    if nonneg:
        bounds[r.var] = INT_MAX
    py = w.e.name(r.var)
    by = "counted_loop" if step.text == "1" else "strided_loop"
    if kinds == {"u32"} and by == "strided_loop":
        most = (upper(r.stop, bounds) or 0) + (step_known if step_known is not None else INT_MAX)
        by = "counted_loop" if most <= INT_MAX else "unsigned_stride"
    if kinds == {"u32"}:
        inner = w.fresh(f"{py}_i32")
        w.put(f"for {inner} in {_range_text(w, fn, r, start, stop, step, extra)}:", s.span, by)
        w.depth += 1
        w.put(f"{py} = Uint32({inner})", s.span)
        w.body(s.body)
        w.depth -= 1
        return True
    w.block(f"for {py} in {_range_text(w, fn, r, start, stop, step, extra)}:", s.body, s.span, by)
    return True


def _int32(w: BodyWriter, e: ir.Expr) -> Text | None:
    if w.e.kinds(e.type) <= {"i32"}:
        return w.e.expr(e)
    if w.e.kinds(e.type) <= {"u32"}:
        return w.e.low32(e)
    return None


def _halving(v: int) -> list[int]:
    out = []
    while v > 0:
        out.append(v)
        v >>= 1
    return out
