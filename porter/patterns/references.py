"""Reference locals (`T& r = place`) become the place they name. Exact: indices are pinned when they could change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.names import Names, assigned_names, is_stable_place


def resolve_references(body: tuple[ir.Stmt, ...], names: Names) -> tuple[ir.Stmt, ...]:
    """The body without reference locals."""
    if not any(isinstance(n, ir.Decl) and n.ref for n in ir.walk(body)):
        return body
    changed = assigned_names(body)
    values: dict[str, ir.Expr] = {}

    def pin(e: ir.Expr, pre: list[ir.Stmt]) -> ir.Expr:
        if isinstance(e, ir.Var):
            return e
        if isinstance(e, ir.Field):
            return replace(e, base=pin(e.base, pre))
        if isinstance(e, ir.Index):
            index = e.index
            if not isinstance(index, ir.Const):
                n = names.fresh("at")
                pre.append(ir.Decl(n, index.type, index, is_const=True, span=e.span))
                index = ir.Var(n, type=index.type, span=e.span)
            return replace(e, base=pin(e.base, pre), index=index)
        if isinstance(e, ir.Deref):
            n = names.fresh("ref")
            pre.append(ir.Decl(n, e.ptr.type, e.ptr, is_const=True, span=e.span))
            return replace(e, ptr=ir.Var(n, type=e.ptr.type, span=e.span))
        n = names.fresh("value")
        pre.append(ir.Decl(n, e.type, e, is_const=True, span=e.span))
        return ir.Var(n, type=e.type, span=e.span)

    def fix(e: Any) -> Any:
        return ir.rewrite(e, lambda n: values[n.name] if isinstance(n, ir.Var) and n.name in values else n)

    def lists(stmts: tuple[Any, ...]) -> tuple[Any, ...]:
        out: list[Any] = []
        for s in stmts:
            if isinstance(s, ir.Decl) and s.ref and s.init is not None:
                place = fix(s.init)
                pre: list[ir.Stmt] = []
                if not is_stable_place(place, changed):
                    place = pin(place, pre)
                values[s.name] = place
                out.extend(pre)
            else:
                out.append(one(s))
        return tuple(out)

    def one(s: Any) -> Any:
        if isinstance(s, ir.Expr):
            return fix(s)
        if isinstance(s, ir.Switch):
            return replace(s, value=fix(s.value), cases=tuple((v, lists(b)) for v, b in s.cases))
        if not isinstance(s, ir.Stmt):
            return s
        changes: dict[str, Any] = {}
        for f in s.__dataclass_fields__:
            v = getattr(s, f)
            if isinstance(v, tuple) and v and isinstance(v[0], ir.Stmt):
                changes[f] = lists(v)
            elif isinstance(v, ir.Expr):
                changes[f] = fix(v)
            elif isinstance(v, tuple) and f in ("outputs", "inputs"):
                changes[f] = tuple((c, fix(e)) for c, e in v)
        return replace(s, **changes) if changes else s

    return lists(body)


def simplified_deref(e: ir.Deref) -> ir.Expr:
    """The place itself, where what is dereferenced is the address of a place."""
    if isinstance(e.ptr, ir.AddressOf) and e.ptr.place.type == e.type:
        return e.ptr.place
    if isinstance(e.ptr, ir.Decay) and isinstance(e.ptr.place.type, ir.Array) and e.ptr.place.type.elem == e.type:
        return ir.Index(e.ptr.place, ir.Const(0, type=ir.I32), type=e.type, span=e.span)
    if isinstance(e.ptr, ir.PtrAdd) and isinstance(e.ptr.ptr, ir.Decay):
        inner = e.ptr.ptr.place
        if isinstance(inner.type, ir.Array) and inner.type.elem == e.type:
            return ir.Index(inner, e.ptr.index, type=e.type, span=e.span)
    return e


def without_pointer_casts(e: ir.Expr) -> ir.Expr:
    """The pointer behind casts of pointers."""
    while isinstance(e, ir.Cast) and isinstance(e.x.type, ir.Pointer):
        e = e.x
    return e
