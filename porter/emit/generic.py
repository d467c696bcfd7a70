"""Generic IR: what differs between the instances of a kernel, and how it is written in terms of template parameters.

Every instance is lowered to concrete IR on its own; `merge` lays the bodies over one another. Where they differ in a
type
or a constant the merged node holds one value an instance (`Variants`, `ConstVariants`); where they differ in shape the
merged body holds an `InstanceIf`. `Params.express` then finds the template parameter, or an expression over parameters,
that yields those values. Specialising the merged IR gives back each instance, by construction.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit import spelling
from porter.patterns.marks import renamed

Value = Any  # a Scalar (type argument), int or bool


@dataclass(frozen=True)
class Variants(ir.Type):
    """One type an instance; None where the node does not occur in the instance."""

    types: tuple[ir.Type | None, ...]


@dataclass(frozen=True)
class ConstVariants(ir.Expr):
    """One constant an instance; None where the node does not occur in the instance."""

    values: tuple[Any, ...]
    origin: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class HelperCall(ir.Expr):
    """A call of a device function that stays a function; `targs` are (parameter, Type or Const) of its template."""

    name: str
    args: tuple[ir.Expr, ...]
    targs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class InstanceIf(ir.Stmt):
    """Arms by instance: (indices of the instances, body).

    `cond` is the source's own `if constexpr` condition where it is one expression for all instances; `yes` are the
    instances in which it holds.
    """

    arms: tuple[tuple[tuple[int, ...], tuple[ir.Stmt, ...]], ...]
    cond: ir.Expr | None = None
    yes: tuple[int, ...] = ()


def variants(t: ir.Type, count: int) -> tuple[ir.Type | None, ...]:
    """The type in each instance."""
    return t.types if isinstance(t, Variants) else (t,) * count


@dataclass(frozen=True)
class Params:
    """Template parameters and their values in each instance.

    `words` are what the source's text leads to at the place that is being written (None: not known). What differs by
    instance is expressed by parameters that are among them only, and by sizes of types only where `sizeof` is.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]  # per instance, in order of names
    words: frozenset[str] | None = None

    def leads_to(self, word: str) -> bool:
        """Whether the source may mean `word` at this place."""
        return self.words is None or word in self.words

    @property
    def _shown(self) -> tuple[str, ...]:
        return tuple(n for n in self.names if self.leads_to(n))

    @property
    def count(self) -> int:
        return max(len(self.values), 1)

    def named_in(self, text: str) -> bool:
        """Whether a line of the port names a template parameter."""
        return any(name in text and re.search(rf"\b{name}\b", text) for name in self.names)

    def column(self, name: str) -> tuple[Value, ...]:
        i = self.names.index(name)
        return tuple(v[i] for v in self.values)

    # ---- constants

    def express_const(self, values: tuple[Any, ...], origin: str | None = None) -> str | None:
        """Python text over the parameters with these values in the instances, or None when no simple one exists.

        A number that all instances share is that number, unless the source has a parameter there (`origin`).
        """
        present = [i for i, v in enumerate(values) if v is not None]
        if not present:
            return None
        if origin in self.names and self._matches(values, self.column(origin)):
            return origin
        if len({_key(values[i]) for i in present}) == 1:
            return _literal(values[present[0]])
        for n in self._shown:
            if self._matches(values, self.column(n)):
                return n
        ints = [n for n in self._shown if all(isinstance(v, int) and not isinstance(v, bool) for v in self.column(n))]
        types = [
            n for n in self._shown if self.leads_to("sizeof") and all(isinstance(v, ir.Scalar) for v in self.column(n))
        ]
        sizes = {n: tuple(ir.SCALAR_BYTES[v.name] for v in self.column(n)) for n in types}
        for n in types:
            if self._matches(values, sizes[n]):
                return f"{n}.width // 8"
        for n in ints:
            col = self.column(n)
            k = _ratio(values, col, present)
            if k is not None:
                return f"{n} * {k}"
            if all(_int(values[i]) and values[i] and col[i] % values[i] == 0 for i in present):
                d = {col[i] // values[i] for i in present}
                if len(d) == 1 and d != {0}:
                    return f"{n} // {d.pop()}"
            if all(
                _int(values[i]) and col[i] and values[i] * col[i] == values[present[0]] * col[present[0]]
                for i in present
            ):
                return f"{values[present[0]] * col[present[0]]} // {n}"
            diff = {values[i] - col[i] for i in present if _int(values[i])}
            if len(diff) == 1:
                d0 = diff.pop()
                return f"{n} {'+' if d0 > 0 else '-'} {abs(d0)}"
        for n in types:
            if all(
                _int(values[i]) and sizes[n][i] and values[i] * sizes[n][i] == values[present[0]] * sizes[n][present[0]]
                for i in present
            ):
                return f"{values[present[0]] * sizes[n][present[0]] * 8} // {n}.width"
            k = _ratio(values, sizes[n], present)
            if k is not None:
                return f"{n}.width * {k} // 8"
        for n in ints:
            for t in types:
                prod = tuple(a * b for a, b in zip(self.column(n), sizes[t], strict=False))
                if self._matches(values, prod):
                    return f"{n} * {t}.width // 8"
                if all(_int(values[i]) and values[i] * sizes[t][i] == self.column(n)[i] for i in present):
                    return f"{n} * 8 // {t}.width"
            for m in ints:
                a, b = self.column(n), self.column(m)
                if n < m and self._matches(values, tuple(x * y for x, y in zip(a, b, strict=False))):
                    return f"{n} * {m}"
                if n != m and all(b) and self._matches(values, tuple(x // y for x, y in zip(a, b, strict=False))):
                    return f"{n} // {m}"
        return None

    def const_text(self, values: tuple[Any, ...], origin: str | None = None) -> str:
        """Python text with these values; a chain of conditional expressions when no arithmetic does it."""
        text = self.express_const(values, origin)
        if text is not None:
            return text
        return self._pick([(v, _literal(v)) for v in values])

    # ---- types

    def type_text(self, types: tuple[ir.Type | None, ...], spell: Any) -> str:
        """Text for scalar types by instance: a parameter, a fixed type, or a chain. `spell` prints one Scalar."""
        present = [t for t in types if t is not None]
        for n in self._shown:
            col = self.column(n)
            if all(isinstance(v, ir.Scalar) for v in col) and self._matches(types, col) and len(set(present)) > 1:
                return n
        if len(set(present)) == 1:
            return str(spell(present[0]))
        return self._chain([(t, spell(t) if t is not None else None) for t in types])

    def _pick(self, per_instance: list[tuple[Any, Any]]) -> str:
        """Like `_chain`, as a choice by index: CuTeDSL takes no conditional expression inside a subscript it stores
        to."""
        groups: dict[str, list[int]] = {}
        for i, (v, text) in enumerate(per_instance):
            if v is not None:
                groups.setdefault(text, []).append(i)
        items = sorted(groups.items(), key=lambda kv: len(kv[1]))
        out = items[-1][0]
        for text, where in reversed(items[:-1]):
            out = f"({out}, {text})[{self.condition(tuple(where))}]"
        return out

    def _chain(self, per_instance: list[tuple[Any, Any]]) -> str:
        groups: dict[str, list[int]] = {}
        for i, (v, text) in enumerate(per_instance):
            if v is not None:
                groups.setdefault(text, []).append(i)
        items = sorted(groups.items(), key=lambda kv: len(kv[1]))
        out = items[-1][0]
        for text, where in reversed(items[:-1]):
            out = f"{text} if {self.condition(tuple(where))} else {out}"
        return f"({out})"

    # ---- which instance

    def condition(self, where: tuple[int, ...]) -> str:
        """A Python condition over the parameters that holds exactly in these instances."""
        others = [i for i in range(len(self.values)) if i not in where]
        if not others:
            return "True"
        for n in self.names:
            col = self.column(n)
            inside, outside = {_key(col[i]) for i in where}, {_key(col[i]) for i in others}
            if not inside & outside:
                if len(outside) == 1 and len(inside) > 1:
                    return f"not ({self._equals(n, col[others[0]])})"
                return " or ".join(dict.fromkeys(self._equals(n, col[i]) for i in where))
        terms = []
        for i in where:
            terms.append(
                "(" + " and ".join(self._equals(n, v) for n, v in zip(self.names, self.values[i], strict=False)) + ")"
            )
        return " or ".join(terms)

    def _equals(self, name: str, value: Value) -> str:
        if isinstance(value, ir.Scalar):
            return f"{name} is {spelling.dtype(value)}"
        if isinstance(value, bool):
            return name if value else f"not {name}"
        return f"{name} == {value!r}"

    def _matches(self, values: tuple[Any, ...], column: tuple[Any, ...]) -> bool:
        return all(v is None or _key(v) == _key(c) for v, c in zip(values, column, strict=False))


def _key(v: Any) -> Any:
    return (type(v).__name__ == "bool", v) if isinstance(v, bool | int) else v


def _literal(v: Any) -> str:
    return spelling.float_text(v) if isinstance(v, float) and not math.isfinite(v) else repr(v)


def _int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _ratio(values: tuple[Any, ...], base: tuple[Any, ...], present: list[int]) -> int | None:
    if not all(_int(values[i]) and base[i] and values[i] % base[i] == 0 for i in present):
        return None
    k = {values[i] // base[i] for i in present}
    return k.pop() if len(k) == 1 else None


# ---------------------------------------------------------------- merging


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
