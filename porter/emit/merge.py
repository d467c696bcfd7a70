"""The bodies of all instances laid over one another: one generic body, and each instance out of it again."""

from __future__ import annotations

from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants, InstanceIf, Variants
from porter.patterns.marks import renamed


def _with_identity_casts(nodes: list[Any]) -> list[Any]:
    """Where some instances convert a value and others need no conversion, all convert.

    Either all end in one type (`float(x)` of a float is x), or all start from one (`T(f)` with T = float is f).
    """
    if not all(isinstance(n, ir.Expr) for n in nodes):
        raise Mismatch
    casts = [n for n in nodes if isinstance(n, ir.Cast)]
    others = [n for n in nodes if not isinstance(n, ir.Cast)]
    if not casts or not all(isinstance(n.type, ir.Scalar) for n in nodes):
        raise Mismatch
    one_end = {n.type for n in nodes}
    one_start = {n.x.type for n in casts} | {n.type for n in others}
    if len(one_end) != 1 and len(one_start) != 1:
        raise Mismatch
    return [n if isinstance(n, ir.Cast) else ir.Cast(n, type=n.type, span=n.span) for n in nodes]


class Mismatch(Exception):
    """The nodes differ in more than a type or a constant."""


_ARITH = {"f16", "bf16", "f32"}


def _class(t: ir.Type | None) -> str:
    if isinstance(t, ir.Scalar):
        if t.name in _ARITH:
            return "float"
        if t.name in ("bool", "void", "f64"):
            return t.name
        return "fp8" if t.is_float else "int"
    return type(t).__name__


def merge_types(types: list[ir.Type], *, loose: bool = False) -> ir.Type:
    """One type for a node; raises Mismatch when code for one would be wrong for another."""
    if all(t == types[0] for t in types):
        return types[0]
    if not loose and len({_class(t) for t in types}) > 1:
        raise Mismatch
    if any(isinstance(t, Variants) for t in types):
        raise Mismatch
    return Variants(tuple(types))


class Merger:
    """Merges parallel statement lists; `where` are the indices of the instances present."""

    def __init__(self, count: int):
        self.count = count

    def spread(self, where: tuple[int, ...], items: list[Any]) -> tuple[Any, ...]:
        out: list[Any] = [None] * self.count
        for i, v in zip(where, items, strict=True):
            out[i] = v
        return tuple(out)

    def stmts(self, lists: list[tuple[ir.Stmt, ...]], where: tuple[int, ...]) -> tuple[ir.Stmt, ...]:
        if len(where) == 1:
            return lists[0]
        out: list[ir.Stmt] = []
        at = [0] * len(lists)
        while any(a < len(x) for a, x in zip(at, lists, strict=True)):
            heads = [x[a] if a < len(x) else None for a, x in zip(at, lists, strict=True)]
            if all(h is not None for h in heads):
                try:
                    out.append(self.stmt(heads, where))
                    at = [a + 1 for a in at]
                    continue
                except Mismatch:
                    pass
            stop = self._resync(lists, at, where)
            arms = []
            groups: list[tuple[list[int], tuple[ir.Stmt, ...]]] = []
            for k, (a, b) in enumerate(zip(at, stop, strict=True)):
                body = lists[k][a:b]
                for members, other in groups:
                    if other == body:
                        members.append(k)
                        break
                else:
                    groups.append(([k], body))
            for members, body in groups:
                if len(members) > 1:
                    body = self.stmts([lists[k][at[k] : stop[k]] for k in members], tuple(where[k] for k in members))
                if body:
                    arms.append((tuple(where[k] for k in members), body))
            out.append(InstanceIf(tuple(arms), span=arms[0][1][0].span if arms else ir.NO_SPAN))
            at = stop
        return tuple(out)

    def _resync(self, lists: list[tuple[ir.Stmt, ...]], at: list[int], where: tuple[int, ...]) -> list[int]:
        """The nearest positions at which all lists go on alike (their ends when there are none)."""
        limit = 12
        best: list[int] | None = None
        best_cost = 1 << 30
        first = lists[0]
        for d0 in range(min(limit, len(first) - at[0])):
            stop = [at[0] + d0]
            cost = d0
            for k in range(1, len(lists)):
                found = None
                for d in range(min(limit, len(lists[k]) - at[k])):
                    try:
                        self.stmt([first[at[0] + d0], lists[k][at[k] + d]], (where[0], where[k]))
                        found = d
                        break
                    except Mismatch:
                        continue
                if found is None:
                    break
                stop.append(at[k] + found)
                cost += found
            else:
                if 0 < cost < best_cost:
                    best, best_cost = stop, cost
        return best or [len(x) for x in lists]

    def stmt(self, nodes: list[Any], where: tuple[int, ...]) -> ir.Stmt:
        first = nodes[0]
        if isinstance(first, ir.If) and all(isinstance(n, ir.If) for n in nodes) and first.is_constexpr:
            return self._constexpr_if(nodes, where)
        new = self.node(nodes, where)
        assert isinstance(new, ir.Stmt)
        return new

    def _constexpr_if(self, nodes: list[ir.If], where: tuple[int, ...]) -> ir.Stmt:
        yes = [k for k, n in enumerate(nodes) if n.taken]
        no = [k for k, n in enumerate(nodes) if not n.taken]
        arms = []
        for group, pick in ((yes, "then"), (no, "orelse")):
            bodies = [getattr(nodes[k], pick) for k in group]
            if group and any(bodies):
                ids = tuple(where[k] for k in group)
                arms.append((ids, self.stmts(bodies, ids)))
        try:
            cond = self.node([n.cond for n in nodes], where)
        except Mismatch:
            cond = None
        return InstanceIf(tuple(arms), cond, tuple(where[k] for k in yes), span=nodes[0].span, comment=nodes[0].comment)

    def node(self, nodes: list[Any], where: tuple[int, ...], *, loose: bool = False) -> Any:
        first = nodes[0]
        if isinstance(first, tuple):
            if not all(isinstance(n, tuple) for n in nodes):
                raise Mismatch
            if (first and isinstance(first[0], ir.Stmt)) or any(n and isinstance(n[0], ir.Stmt) for n in nodes):
                return self.stmts(list(nodes), where)
            if any(len(n) != len(first) for n in nodes):
                raise Mismatch
            return tuple(self.node([n[i] for n in nodes], where) for i in range(len(first)))
        if isinstance(first, ir.Type):
            return self._type(list(nodes), where, loose)
        if isinstance(first, ir.Const) and all(isinstance(n, ir.Const) for n in nodes):
            if all(n.value == first.value and type(n.value) is type(first.value) for n in nodes):
                t = self._type([n.type for n in nodes], where, True)
                return ir.Const(first.value, first.origin, type=t, span=first.span)
            origins = {n.origin for n in nodes}
            t = self._type([n.type for n in nodes], where, False)
            return ConstVariants(
                self.spread(where, [n.value for n in nodes]),
                origins.pop() if len(origins) == 1 else None,
                type=t,
                span=first.span,
            )
        if isinstance(first, ir.Node):
            if any(type(n) is not type(first) for n in nodes):
                nodes = _with_identity_casts(nodes)
                first = nodes[0]
            return self._dataclass(nodes, where)
        if any(n != first for n in nodes):
            raise Mismatch
        return first

    def _type(self, types: list[Any], where: tuple[int, ...], loose: bool) -> Any:
        if not all(isinstance(t, ir.Type) for t in types):
            raise Mismatch
        merged = merge_types(types, loose=loose)
        return Variants(self.spread(where, list(merged.types))) if isinstance(merged, Variants) else merged

    def _dataclass(self, nodes: list[Any], where: tuple[int, ...]) -> Any:
        from dataclasses import fields

        first = nodes[0]
        # moving a value needs no agreement on its kind; arithmetic does
        loose = isinstance(
            first,
            ir.Decl
            | ir.Var
            | ir.Deref
            | ir.Index
            | ir.Field
            | ir.Copy
            | ir.SharedDecl
            | ir.PtrAdd
            | ir.Decay
            | ir.AddressOf,
        )
        values: dict[str, Any] = {}
        for f in fields(first):
            vs = [getattr(n, f.name) for n in nodes]
            if f.name == "span":
                values[f.name] = renamed(vs[0], tuple(name for span in vs[1:] for name in span.rewritten))
                continue
            if f.name == "rounded":
                values[f.name] = any(vs)
                continue
            if not f.compare:
                values[f.name] = vs[0]
                continue
            if f.name == "targs":
                values[f.name] = self._targs(vs, where)
            elif isinstance(vs[0], ir.Type):
                values[f.name] = self._type(vs, where, loose)
            else:
                values[f.name] = self.node(vs, where)
        return type(first)(**values)

    def _targs(self, all_targs: list[Any], where: tuple[int, ...]) -> Any:
        first = all_targs[0]
        if any(len(t) != len(first) for t in all_targs):
            raise Mismatch
        out: list[Any] = []
        for i, item in enumerate(first):
            column = [t[i] for t in all_targs]
            if isinstance(item, tuple):  # (name, value)
                vs = [c[1] for c in column]
                out.append((item[0], self._targ(vs, where)))
            else:
                out.append(self._targ(column, where))
        return tuple(out)

    def _targ(self, vs: list[Any], where: tuple[int, ...]) -> Any:
        if all(v == vs[0] for v in vs):
            return vs[0]
        if all(isinstance(v, ir.Type) for v in vs):
            return Variants(self.spread(where, vs))
        if all(isinstance(v, ir.Const) for v in vs):
            return ConstVariants(self.spread(where, [v.value for v in vs]), type=vs[0].type)
        if all(isinstance(v, int) for v in vs):
            return ConstVariants(self.spread(where, vs))
        raise Mismatch


def merge(bodies: list[tuple[ir.Stmt, ...]]) -> tuple[ir.Stmt, ...]:
    """One generic body from the bodies of all instances, in order."""
    if len(bodies) == 1:
        return bodies[0]
    return Merger(len(bodies)).stmts(bodies, tuple(range(len(bodies))))


def specialise(node: Any, index: int) -> Any:
    """The body of instance `index` out of a merged one: the inverse of `merge`."""
    if isinstance(node, tuple):
        out: list[Any] = []
        for n in node:
            if isinstance(n, InstanceIf):
                for ids, body in n.arms:
                    if index in ids:
                        out.extend(specialise(body, index))
            else:
                out.append(specialise(n, index))
        return tuple(out)
    if isinstance(node, Variants):
        return node.types[index]
    if isinstance(node, ConstVariants):
        value = node.values[index]
        return ir.Const(value, node.origin, type=specialise(node.type, index), span=node.span)
    if isinstance(node, ir.Node):
        from dataclasses import fields, replace

        changes = {f.name: specialise(getattr(node, f.name), index) for f in fields(node) if f.name != "span"}
        return replace(node, **changes)
    return node
