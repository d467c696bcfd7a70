"""Which reduction an operator computes, given as a functor, a function or a lambda: sum, max or min."""

from __future__ import annotations

from typing import Any

from porter import ir

_SUM = {"plus", "Sum", "std::plus"}
_MAX = {"greater", "maximum", "Max"}
_MIN = {"less", "minimum", "Min"}


def operation(e: Any, functions: dict[str, ir.Function]) -> str | None:
    """ "sum", "max" or "min" for a reduction operator given as a functor, a function or a lambda; None for others."""
    if isinstance(e, ir.Intrinsic) and e.name.startswith("function"):
        e = next((t for t in e.targs if isinstance(t, str)), "")
    if isinstance(e, ir.Expr):
        t = e.type
        if isinstance(t, ir.Struct):
            base = t.name.split("<")[0].split("::")[-1]
            if t.name.split("::")[0] in ("cub", "cuda", "cooperative_groups", "std", "thrust", "hipcub"):
                return (
                    "sum"
                    if base in _SUM or base == "plus"
                    else "max"
                    if base in _MAX
                    else "min"
                    if base in _MIN
                    else None
                )
            for fn in functions.values():
                if fn.params and fn.name.endswith("operator()") and fn.params[0].type == t:
                    return _body_operation(fn)
        if isinstance(e, ir.Call) and e.function in functions:
            return _body_operation(functions[e.function])
        name = getattr(e, "name", "")
        if name in functions:
            return _body_operation(functions[name])
        return _named(name)
    if isinstance(e, str):
        if e in functions:
            return _body_operation(functions[e])
        for fn in functions.values():
            if fn.name == e:
                return _body_operation(fn)
        return _named(e)
    return None


def _named(name: str) -> str | None:
    base = str(name).split("<")[0].split("::")[-1]
    return {"max": "max", "fmaxf": "max", "min": "min", "fminf": "min"}.get(base)


def _body_operation(fn: ir.Function) -> str | None:
    """Recognises `a + b`, `max(a, b)` and `a > b ? a : b`."""
    if len(fn.body) != 1 or not isinstance(fn.body[0], ir.Return):
        return None
    names = [p.name for p in fn.params if p.name != "this"]
    e = fn.body[0].value
    if len(names) != 2 or e is None:
        return None

    def var(x: Any) -> str:
        return x.name if isinstance(x, ir.Var) else ""

    if isinstance(e, ir.Binary) and e.op == "+" and {var(e.a), var(e.b)} == set(names):
        return "sum"
    if isinstance(e, ir.Intrinsic) and {var(a) for a in e.args} == set(names):
        return {"max": "max", "fmaxf": "max", "min": "min", "fminf": "min", "fmax": "max", "fmin": "min"}.get(e.name)
    if isinstance(e, ir.Select) and isinstance(e.cond, ir.Binary) and {var(e.a), var(e.b)} == set(names):
        keeps_first = var(e.cond.a) == var(e.a)
        if e.cond.op in (">", ">=", "<", "<=") and {var(e.cond.a), var(e.cond.b)} == set(names):
            bigger = (e.cond.op[0] == ">") == keeps_first
            return "max" if bigger else "min"
    return None
