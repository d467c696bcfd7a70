"""Block and tile reductions with an operator or a value type of the user's own: the shuffle tree written out.

cub's own order: shuffles down by 1, 2, 4, 8, 16 inside each warp, then the partials of the warps one after the other;
every thread has the result. Cooperative groups: with the lane whose number differs in one bit, the highest bit first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.names import Names

BOOL, I32, U32 = ir.BOOL, ir.I32, ir.U32


def _c(v: int, t: ir.Type = I32) -> ir.Expr:
    return ir.Const(v, type=t)


def _b(op: str, a: ir.Expr, b: ir.Expr, t: ir.Type = I32) -> ir.Expr:
    return ir.Binary(op, a, b, type=t)


def combiner(op: Any, t: ir.Type, functions: dict[str, ir.Function]) -> Any:
    """A function (a, b) -> Expr that applies the operator, or None when it is not known."""
    ot = op.type if isinstance(op, ir.Expr) else None
    if isinstance(ot, ir.Struct) and ot.name.split("<")[0] in ("cub::ArgMax", "cub::ArgMin"):
        return _arg(">" if ot.name.startswith("cub::ArgMax") else "<", t)
    if isinstance(op, ir.Intrinsic) and op.name.startswith("function"):
        keys = [x for x in op.targs if isinstance(x, str)] + [op.name]
        for key, fn in functions.items():
            if (key in keys or fn.name in keys) and len(fn.params) == 2:
                return lambda a, b: ir.Call(key, (a, b), type=t)
        return None
    if isinstance(ot, ir.Struct) and isinstance(op, ir.Var | ir.StructInit | ir.Field):
        for key, fn in functions.items():
            if len(fn.params) == 3 and fn.params[0].name == "this" and fn.params[0].type == ot:
                return lambda a, b: ir.Call(key, (op, a, b), type=t)
    return None


def _arg(op: str, t: ir.Type) -> Any:
    """Pick of the pair with the better value, the smaller key on ties."""
    if not isinstance(t, ir.Struct) or [f.name for f in t.fields] != ["key", "value"]:
        return None
    key, value = t.fields

    def apply(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        va, vb = (ir.Field(x, "value", type=value.type) for x in (a, b))
        ka, kb = (ir.Field(x, "key", type=key.type) for x in (a, b))
        tie = _b("&&", _b("==", va, vb, BOOL), _b("<", kb, ka, BOOL), BOOL)
        return ir.Select(_b("||", _b(op, vb, va, BOOL), tie, BOOL), b, a, type=t)

    return apply


def expand(
    value: ir.Expr, t: ir.Type, apply: Any, valid: ir.Expr | None, names: Names, scratch: ir.Expr, span: Any
) -> tuple[list[ir.Stmt], ir.Expr]:
    """Statements that reduce `value` over the block, and the variable that then holds the result.

    `scratch` is a place: a shared array of t with 33 elements.
    """
    thread = ir.Intrinsic("lib.linear_thread", (), type=I32, span=span)
    threads = ir.Intrinsic("lib.block_threads", (), type=I32, span=span)
    acc, tid, lane, warp = (names.fresh(n) for n in ("reduced", "thread", "lane", "warp"))
    vacc, vtid, vlane, vwarp = (
        ir.Var(n, type=x, span=span) for n, x in ((acc, t), (tid, I32), (lane, I32), (warp, I32))
    )
    count = names.fresh("valid")
    vcount = ir.Var(count, type=I32, span=span)
    out: list[ir.Stmt] = [
        ir.Decl(acc, t, value, span=span),
        ir.Decl(tid, I32, thread, span=span),
        ir.Decl(lane, I32, _b("%", vtid, _c(32)), span=span),
        ir.Decl(warp, I32, _b("/", vtid, _c(32)), span=span),
        ir.Decl(count, I32, valid if valid is not None else threads, span=span),
    ]
    if valid is not None:  # more than the block has threads is all of them
        out.append(ir.If(_b(">", vcount, threads, BOOL), (ir.Assign(vcount, threads, span=span),), span=span))

    def combined(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return replace(apply(a, b), span=span)

    def slot(i: ir.Expr) -> ir.Expr:
        return ir.Index(scratch, i, type=t, span=span)

    off, other, w = names.fresh("offset"), names.fresh("other"), names.fresh("w")
    voff, vother, vw = (
        ir.Var(off, type=I32, span=span),
        ir.Var(other, type=t, span=span),
        ir.Var(w, type=I32, span=span),
    )
    shuffled = ir.Intrinsic("__shfl_down_sync", (_c(0xFFFFFFFF, U32), vacc, voff, _c(32)), type=t, span=span)
    inside = _b("&&", _b("<", _b("+", vlane, voff), _c(32), BOOL), _b("<", _b("+", vtid, voff), vcount, BOOL), BOOL)
    body = (
        ir.Decl(other, t, shuffled, span=span),
        ir.If(inside, (ir.Assign(vacc, combined(vacc, vother), span=span),), span=span),
    )
    step = ir.Assign(voff, _b("<<", voff, _c(1)), span=span)
    out.append(ir.For((ir.Decl(off, I32, _c(1), span=span),), _b("<", voff, _c(32), BOOL), (step,), body, 0, span=span))
    sync = ir.ExprStmt(ir.Intrinsic("__syncthreads", (), type=ir.VOID), span=span)
    out.append(ir.If(_b("==", vlane, _c(0), BOOL), (ir.Assign(slot(vwarp), vacc, span=span),), span=span))
    out += [sync, ir.Assign(vacc, slot(_c(0)), span=span)]
    warps = _b("/", _b("+", vcount, _c(31)), _c(32))
    gather = ir.For(
        (ir.Decl(w, I32, _c(1), span=span),),
        _b("<", vw, warps, BOOL),
        (ir.Assign(vw, _b("+", vw, _c(1)), span=span),),
        (ir.Assign(vacc, combined(vacc, slot(vw)), span=span),),
        span=span,
    )
    out += [gather, sync]
    return out, vacc


def expand_tile(
    value: ir.Expr, t: ir.Type, apply: Any, mask: ir.Expr, width: int, names: Names, span: Any
) -> tuple[list[ir.Stmt], ir.Expr]:
    """Statements that reduce `value` over a tile of `width` lanes, and the variable that then holds the result in each.

    `mask`: the lanes that take part in the shuffles.
    """
    acc, off, other = names.fresh("reduced"), names.fresh("offset"), names.fresh("other")
    vacc, voff, vother = (ir.Var(n, type=x, span=span) for n, x in ((acc, t), (off, I32), (other, t)))
    shuffled = ir.Intrinsic("__shfl_xor_sync", (mask, vacc, voff, _c(width)), type=t, span=span)
    body = (
        ir.Decl(other, t, shuffled, span=span),
        ir.Assign(vacc, replace(apply(vacc, vother), span=span), span=span),
    )
    init, step = ir.Decl(off, I32, _c(width // 2), span=span), ir.Assign(voff, _b(">>", voff, _c(1)), span=span)
    loop = ir.For((init,), _b(">", voff, _c(0), BOOL), (step,), body, 0, span=span)
    return [ir.Decl(acc, t, value, span=span), loop], vacc
