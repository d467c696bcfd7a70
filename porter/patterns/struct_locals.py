"""Local structs whose members are used one by one: one local per member, in registers. Exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.aggregates import is_aggregate
from porter.patterns.names import Names


def scalars_for_structs(body: tuple[ir.Stmt, ...], names: Names) -> tuple[ir.Stmt, ...]:
    """Local structs whose members are used one by one become one local per member (`md.m` -> `md_m`), nested ones too.

    Structs that are copied from or to memory, whose address is taken, or that are unions stay memory.
    """
    while True:
        new = _split_structs(body, names)
        if new is body:
            return body
        body = new


MAX_MEMBERS = 24  # larger structs are tables of their own: they stay memory


def _split_structs(body: tuple[ir.Stmt, ...], names: Names) -> tuple[ir.Stmt, ...]:
    types: dict[str, ir.Struct] = {}
    for n in ir.walk(body):
        if (
            isinstance(n, ir.Decl)
            and isinstance(n.type, ir.Struct)
            and not n.type.is_union
            and n.init is None
            and 0 < len(n.type.fields) <= MAX_MEMBERS
            and not _is_packet(n.type)
        ):
            types[n.name] = n.type
    changed = True
    while changed:
        bad = _punned(body, types)
        changed = bool(bad)
        for b in bad:
            del types[b]
    if not types:
        return body
    parts = {v: {f.name: names.fresh(f"{v}_{f.name}") for f in t.fields} for v, t in types.items()}

    def var(v: str, f: ir.StructField, span: Any) -> ir.Expr:
        return ir.Var(parts[v][f.name], type=f.type, span=span)

    def expr(n: Any) -> Any:
        if isinstance(n, ir.Field) and isinstance(n.base, ir.Var) and n.base.name in types:
            return ir.Var(parts[n.base.name][n.name], type=n.type, span=n.span)
        return n

    def stmts(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        for s in body:
            if isinstance(s, ir.Decl) and s.name in types:
                out.extend(
                    replace(s, name=parts[s.name][f.name], type=f.type, comment=s.comment if i == 0 else "")
                    for i, f in enumerate(types[s.name].fields)
                )
            elif isinstance(s, ir.Copy) and (_is(s.target, types) or _is(s.source, types)):
                t = s.target.type
                assert isinstance(t, ir.Struct)
                pairs: list[ir.Stmt] = []
                for f in t.fields:
                    a, b = (
                        var(place.name, f, s.span)  # type: ignore[attr-defined]
                        if _is(place, types)
                        else ir.Field(place, f.name, type=f.type, span=s.span)
                        for place in (s.target, s.source)
                    )
                    pairs.append(ir.Copy(a, b, span=s.span) if is_aggregate(f.type) else ir.Assign(a, b, span=s.span))
                out.extend(pairs)
            else:
                out.append(_map_bodies(s, stmts))
        return tuple(out)

    return stmts(ir.rewrite(body, expr))


def _member_wise(t: ir.Type) -> bool:
    """A struct of scalars whose alignment is only that of its members: a copy of it promises no wider access."""
    if not isinstance(t, ir.Struct) or not all(isinstance(f.type, ir.Scalar) for f in t.fields):
        return False
    return t.align == max(ir.alignof(f.type) for f in t.fields)


def _is(e: ir.Expr, types: dict[str, ir.Struct]) -> bool:
    return isinstance(e, ir.Var) and e.name in types


def _punned(body: Any, types: dict[str, ir.Struct]) -> set[str]:
    """Candidates that are used as a whole in a way that needs memory."""
    bad: set[str] = set()

    def visit(n: Any) -> None:
        if isinstance(n, ir.Field) and isinstance(n.base, ir.Var) and n.base.name in types:
            return
        if isinstance(n, ir.AddressOf) and isinstance(n.place, ir.Field):
            bad.update(v for v in [_whole(n.place)] if v in types)  # `(&v.x)[i]` goes on to the next member
        if isinstance(n, ir.Deref | ir.Intrinsic):  # these reach the one member only
            for c in ir.children(n):
                visit(c.place if isinstance(c, ir.AddressOf) else c)
            return
        if isinstance(n, ir.Copy):
            a, b = n.target, n.source
            for x, y in ((a, b), (b, a)):
                if _is(x, types) and not _is(y, types) and not _member_wise(x.type):
                    bad.add(x.name)  # type: ignore[attr-defined]
            for x in (a, b):
                if not _is(x, types):
                    visit(x)
            return
        if isinstance(n, ir.Var) and n.name in types:
            bad.add(n.name)
            return
        for c in ir.children(n):
            visit(c)

    for s in body if isinstance(body, tuple) else (body,):
        visit(s)
    return bad


def _whole(e: ir.Expr) -> str | None:
    """The variable that a member of a member belongs to."""
    while isinstance(e, ir.Field):
        e = e.base
    return e.name if isinstance(e, ir.Var) else None


def _is_packet(t: ir.Struct) -> bool:
    """`struct { T data[N]; }`: one array in a struct reads better as that array under the struct's own name."""
    return len(t.fields) == 1 and isinstance(t.fields[0].type, ir.Array)


def _map_bodies(s: ir.Stmt, fn: Any) -> ir.Stmt:
    """The statement with fn applied to each statement list inside it."""
    if isinstance(s, ir.If):
        return replace(s, then=fn(s.then), orelse=fn(s.orelse))
    if isinstance(s, ir.For):
        return replace(s, init=fn(s.init), step=fn(s.step), body=fn(s.body))
    if isinstance(s, ir.While):
        return replace(s, body=fn(s.body), pre=fn(s.pre))
    if isinstance(s, ir.DoWhile):
        return replace(s, body=fn(s.body), post=fn(s.post))
    if isinstance(s, ir.Switch):
        return replace(s, cases=tuple((v, fn(b)) for v, b in s.cases))
    if isinstance(s, ir.Scope):
        return replace(s, body=fn(s.body))
    return s
