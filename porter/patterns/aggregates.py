"""Structs, vector types and arrays as values: split into their parts, so that only `Copy` moves whole aggregates.

Exact. After this pass an aggregate appears as a declared local, as a place, or in a Copy; two-element half
arithmetic has
become scalar arithmetic on each element (the compiler packs it again).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import codes, ir
from porter.patterns.names import Names
from porter.patterns.tables.intrinsics import COMPONENTWISE, LOADS, STORES

_FIRST = {"__low2float", "__low2half", "__low2bfloat16"}
_SECOND = {"__high2float", "__high2half", "__high2bfloat16"}
_EACH_CAST = {"__half22float2", "__bfloat1622float2", "__float22half2_rn", "__float22bfloat162_rn"}
_PAIR = {
    "__floats2half2_rn",
    "__floats2bfloat162_rn",
    "__halves2half2",
    "__halves2bfloat162",
    "make_half2",
    "make_bfloat162",
}
_BOTH = {"__float2half2_rn", "__float2bfloat162_rn", "__half2half2", "__bfloat162bfloat162"}
_SWIZZLE = {
    "__lowhigh2highlow": (1, 0),
    "__low2half2": (0, 0),
    "__high2half2": (1, 1),
    "__lows2half2": None,
    "__highs2half2": None,
}


def is_aggregate(t: ir.Type) -> bool:
    return isinstance(t, ir.Struct | ir.Array)


def is_place(e: ir.Expr) -> bool:
    if isinstance(e, ir.Field | ir.Index):
        return is_place(e.base)
    return isinstance(e, ir.Var | ir.Deref)


def _field_types(t: ir.Type) -> list[tuple[Any, ir.Type]]:
    if isinstance(t, ir.Struct):
        return [(f.name, f.type) for f in t.fields]
    assert isinstance(t, ir.Array)
    return [(i, t.elem) for i in range(t.length)]


def part(place: ir.Expr, t: ir.Type, key: Any, ft: ir.Type) -> ir.Expr:
    if isinstance(t, ir.Struct):
        return ir.Field(place, key, type=ft, span=place.span)
    return ir.Index(place, ir.Const(key, type=ir.I32), type=ft, span=place.span)


def scalar_cast(x: ir.Expr, t: ir.Type) -> ir.Expr:
    return x if x.type == t else ir.Cast(x, type=t, span=x.span)


class Splitter:
    """Rewrites one function body."""

    def __init__(self, names: Names):
        self.names = names

    def body(self, stmts: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        for s in stmts:
            pre: list[ir.Stmt] = []
            new = self.stmt(s, pre)
            if pre and s.comment and not pre[0].comment:
                pre[0] = replace(pre[0], comment=s.comment)
            out.extend(pre)
            out.extend(new)
        return tuple(out)

    def stmt(self, s: ir.Stmt, pre: list[ir.Stmt]) -> list[ir.Stmt]:
        if isinstance(s, ir.Decl):
            if s.ref:
                assert s.init is not None
                return [replace(s, init=self.place(s.init, pre))]
            if is_aggregate(s.type):
                decl = replace(s, init=None, is_const=False, is_constexpr=False)
                if s.init is None:
                    return [decl]
                return [decl, *self.assign(ir.Var(s.name, type=s.type, span=s.span), s.init, s, fresh=True)]
            return [replace(s, init=self.scalar(s.init, pre))] if s.init is not None else [s]
        if isinstance(s, ir.Assign):
            if is_aggregate(s.target.type):
                return self.assign(self.place(s.target, pre), s.value, s)
            return [replace(s, target=self.place(s.target, pre), value=self.scalar(s.value, pre))]
        if isinstance(s, ir.ExprStmt):
            if isinstance(s.value, ir.Intrinsic) and s.value.name in STORES and len(s.value.args) == 2:
                ptr, value = s.value.args
                assert isinstance(ptr.type, ir.Pointer)
                target = ir.Deref(self.scalar(ptr, pre), type=ptr.type.elem, span=s.span)
                if is_aggregate(target.type):
                    return self.assign(target, value, s)
                return [ir.Assign(target, self.scalar(value, pre), span=s.span, comment=s.comment)]
            if isinstance(s.value, ir.Intrinsic) and _is_vector_atomic(s.value):
                return self._atomic(s.value, pre)
            return [replace(s, value=self.scalar(s.value, pre))]
        if isinstance(s, ir.If):
            return [replace(s, cond=self.scalar(s.cond, pre), then=self.body(s.then), orelse=self.body(s.orelse))]
        if isinstance(s, ir.For):
            inner: list[ir.Stmt] = []
            cond = self.scalar(s.cond, inner) if s.cond is not None else None
            step_pre: list[ir.Stmt] = []
            step = tuple(x for st in s.step for x in self.stmt(st, step_pre))
            if inner or step_pre:
                hole = ir.HoleStmt(
                    codes.STRUCT_IN_LOOP_HEADER, "for", "an aggregate value in a loop header", span=s.span
                )
                return [hole]
            return [replace(s, init=self.body(s.init), cond=cond, step=step, body=self.body(s.body))]
        if isinstance(s, ir.While):
            inner = []
            cond = self.scalar(s.cond, inner)
            return [replace(s, cond=cond, pre=(*self.body(s.pre), *inner), body=self.body(s.body))]
        if isinstance(s, ir.DoWhile):
            inner = []
            cond = self.scalar(s.cond, inner)
            return [replace(s, cond=cond, post=(*self.body(s.post), *inner), body=self.body(s.body))]
        if isinstance(s, ir.Switch):
            return [replace(s, value=self.scalar(s.value, pre), cases=tuple((v, self.body(b)) for v, b in s.cases))]
        if isinstance(s, ir.Scope):
            return [replace(s, body=self.body(s.body))]
        if isinstance(s, ir.Return):
            return [replace(s, value=self.scalar(s.value, pre))] if s.value is not None else [s]
        if isinstance(s, ir.Asm):
            return [
                replace(
                    s,
                    outputs=tuple((c, self.place(p, pre)) for c, p in s.outputs),
                    inputs=tuple((c, self.scalar(e, pre)) for c, e in s.inputs),
                )
            ]
        return [s]

    # ---- aggregates

    def assign(self, target: ir.Expr, value: ir.Expr, s: ir.Stmt, *, fresh: bool = False) -> list[ir.Stmt]:
        """Statements for `target = value`, both aggregates."""
        out: list[ir.Stmt] = []
        value = self._through_load(value, out)
        if isinstance(value, ir.HoleExpr):
            return [*out, ir.HoleStmt(value.code, value.cuda, value.reason, span=s.span)]
        if is_place(value):
            return [*out, ir.Copy(target, self.place(value, out), span=s.span, comment=s.comment)]
        if isinstance(value, ir.Select):
            cond = self.scalar(value.cond, out)
            then = self.assign(target, value.a, s)
            orelse = self.assign(target, value.b, s)
            return [*out, ir.If(cond, tuple(then), tuple(orelse), span=s.span)]
        in_memory = any(isinstance(n, ir.Deref) for n in ir.walk(target))
        if in_memory or (not fresh and _reads(value, target)):
            # one wide store needs the parts in registers first; `a = {a.y, a.x}` needs its old parts
            name = self.names.fresh("packed" if in_memory else "tmp")
            tmp = ir.Var(name, type=target.type, span=s.span)
            out.append(ir.Decl(name, target.type, span=s.span, comment=s.comment))
            out.extend(self.assign(tmp, value, replace(s, comment=""), fresh=True))
            out.append(ir.Copy(target, tmp, span=s.span))
            return out
        parts = self.parts(value, target.type, out)
        if parts is None:
            return [
                *out,
                ir.HoleStmt(
                    codes.UNSPLIT_STRUCT,
                    _spell(value),
                    "an aggregate value of this form has no translation",
                    span=s.span,
                ),
            ]
        if isinstance(target.type, ir.Array) and parts and _all_equal_constants(parts):
            return [*out, self._fill(target, parts[0], s)]
        for (key, ft), v in zip(_field_types(target.type), parts, strict=False):
            dest = part(target, target.type, key, ft)
            if is_aggregate(ft):
                out.extend(self.assign(dest, v, s, fresh=fresh))
            else:
                out.append(ir.Assign(dest, v, span=s.span))
        return out

    def _fill(self, target: ir.Expr, value: ir.Expr, s: ir.Stmt) -> ir.Stmt:
        """A loop that sets every element of an array to one constant."""
        assert isinstance(target.type, ir.Array)
        name = self.names.fresh("i")
        i = ir.Var(name, type=ir.I32, span=s.span)
        element = ir.Index(target, i, type=target.type.elem, span=s.span)
        step = ir.Assign(i, ir.Binary("+", i, ir.Const(1, type=ir.I32), type=ir.I32), span=s.span)
        test = ir.Binary("<", i, ir.Const(target.type.length, type=ir.I32), type=ir.BOOL)
        start = ir.Decl(name, ir.I32, ir.Const(0, type=ir.I32), span=s.span)
        return ir.For((start,), test, (step,), (ir.Assign(element, value, span=s.span),), 0, span=s.span)

    def _through_load(self, e: ir.Expr, pre: list[ir.Stmt]) -> ir.Expr:
        if isinstance(e, ir.Intrinsic) and e.name in LOADS and e.args:
            return ir.Deref(self.scalar(e.args[0], pre), readonly=e.name == "__ldg", type=e.type, span=e.span)
        if isinstance(e, ir.Cast) and e.x.type == e.type:
            return self._through_load(e.x, pre)
        return e

    def parts(self, e: ir.Expr, t: ir.Type, pre: list[ir.Stmt]) -> list[ir.Expr] | None:
        """The members of an aggregate value, in order, as scalar expressions (or aggregates for nested members)."""
        e = self._through_load(e, pre)
        fts = _field_types(t)
        if isinstance(e, ir.StructInit):
            values = [v if is_aggregate(v.type) else self.scalar(v, pre) for v in e.values]
            zero = [_zero(ft) for _, ft in fts[len(values) :]]
            return [*values, *zero]
        if is_place(e):
            if any(isinstance(n, ir.Deref) for n in ir.walk(e)):
                e = self.temp(e, pre)
            return [part(self.place(e, pre), t, k, ft) for k, ft in fts]
        if isinstance(e, ir.Binary | ir.Unary):
            xs = [self.parts(x, x.type, pre) for x in ((e.a, e.b) if isinstance(e, ir.Binary) else (e.x,))]
            if any(x is None for x in xs):
                return None
            if isinstance(e, ir.Binary):
                return [
                    ir.Binary(e.op, a, b, type=ft, span=e.span)
                    for a, b, (_, ft) in zip(xs[0] or (), xs[1] or (), fts, strict=False)
                ]
            return [ir.Unary(e.op, a, type=ft, span=e.span) for a, (_, ft) in zip(xs[0] or (), fts, strict=False)]
        if isinstance(e, ir.Intrinsic):
            return self._intrinsic_parts(e, fts, pre)
        if isinstance(e, ir.Select):
            tmp = self.temp(e, pre)
            return [part(tmp, t, k, ft) for k, ft in fts]
        return None

    def _intrinsic_parts(
        self, e: ir.Intrinsic, fts: list[tuple[Any, ir.Type]], pre: list[ir.Stmt]
    ) -> list[ir.Expr] | None:
        def of(i: int) -> list[ir.Expr] | None:
            return self.parts(e.args[i], e.args[i].type, pre)

        if e.name in COMPONENTWISE:
            xs = [of(i) for i in range(len(e.args))]
            if any(x is None for x in xs):
                return None
            name = COMPONENTWISE[e.name]
            return [
                ir.Intrinsic(name, tuple(x[i] for x in xs if x), type=ft, span=e.span) for i, (_, ft) in enumerate(fts)
            ]
        if e.name in _EACH_CAST:
            x = of(0)
            return [scalar_cast(v, ft) for v, (_, ft) in zip(x, fts, strict=False)] if x else None
        if e.name in _PAIR:
            return [scalar_cast(self.scalar(a, pre), ft) for a, (_, ft) in zip(e.args, fts, strict=False)]
        if e.name in _BOTH:
            value = scalar_cast(self.scalar(e.args[0], pre), fts[0][1])
            if not isinstance(value, ir.Var | ir.Const):
                name = self.names.fresh("value")
                pre.append(ir.Decl(name, value.type, value, span=e.span))
                value = ir.Var(name, type=value.type, span=e.span)
            return [value, value]
        if e.name in _SWIZZLE:
            order = _SWIZZLE[e.name]
            if order is None:
                i = 0 if "lows" in e.name else 1
                a, b = of(0), of(1)
                return [a[i], b[i]] if a and b else None
            x = of(0)
            return [x[i] for i in order] if x else None
        if _is_vector_atomic(e):
            return self._atomic_values(e, pre)
        if e.name in ("__shfl_sync", "__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync"):
            x = self.parts(e.args[1], e.args[1].type, pre)
            if x is None:
                return None
            return [
                ir.Intrinsic(e.name, (e.args[0], v, *e.args[2:]), type=ft, span=e.span)
                for v, (_, ft) in zip(x, fts, strict=False)
            ]
        return None

    def _atomic(self, e: ir.Intrinsic, pre: list[ir.Stmt]) -> list[ir.Stmt]:
        """`atomicAdd` of a vector as a statement: CUDA promises that each element is added atomically, no more."""
        pointer, value = e.args
        assert isinstance(pointer.type, ir.Pointer)
        elem = pointer.type.elem
        fts = _field_types(elem)
        parts = self.parts(value, elem, pre)
        if parts is None:
            return [
                ir.HoleStmt(
                    codes.UNSPLIT_STRUCT, e.name, "an aggregate value of this form has no translation", span=e.span
                )
            ]
        if len(fts) == 2 and all(t in (ir.F16, ir.BF16) for _, t in fts):
            at = ir.Cast(self.scalar(pointer, pre), type=ir.Pointer(fts[0][1]), span=e.span)
            pair = ir.Intrinsic("lib.atomic_add_pair", (at, *parts), type=ir.VOID, span=e.span)
            return [ir.ExprStmt(pair, span=e.span)]
        return [ir.ExprStmt(one, span=e.span) for one in self._one_by_one(e, parts, pre)]

    def _atomic_values(self, e: ir.Intrinsic, pre: list[ir.Stmt]) -> list[ir.Expr] | None:
        """The elements that a vector `atomicAdd` found."""
        parts = self.parts(e.args[1], e.type, pre)
        if parts is None:
            return None
        found: list[ir.Expr] = []
        for one in self._one_by_one(e, parts, pre):
            name = self.names.fresh("old")
            pre.append(ir.Decl(name, one.type, one, is_const=True, span=e.span))
            found.append(ir.Var(name, type=one.type, span=e.span))
        return found

    def _one_by_one(self, e: ir.Intrinsic, parts: list[ir.Expr], pre: list[ir.Stmt]) -> list[ir.Intrinsic]:
        """The scalar atomics of a vector's elements."""
        pointer = e.args[0]
        assert isinstance(pointer.type, ir.Pointer)
        name = self.names.fresh("at")
        pre.append(ir.Decl(name, pointer.type, self.scalar(pointer, pre), is_const=True, span=e.span))
        place = ir.Deref(ir.Var(name, type=pointer.type, span=e.span), type=pointer.type.elem, span=e.span)
        made = []
        for (key, t), value in zip(_field_types(place.type), parts, strict=True):
            address = ir.AddressOf(part(place, place.type, key, t), type=ir.Pointer(t), span=e.span)
            made.append(ir.Intrinsic(e.name, (address, value), type=t, span=e.span))
        return made

    def temp(self, e: ir.Expr, pre: list[ir.Stmt]) -> ir.Var:
        name = self.names.fresh("tmp")
        pre.append(ir.Decl(name, e.type, span=e.span))
        var = ir.Var(name, type=e.type, span=e.span)
        pre.extend(self.assign(var, e, ir.Stmt(span=e.span), fresh=True))
        return var

    # ---- scalars and places

    def scalar(self, e: Any, pre: list[ir.Stmt]) -> Any:
        """A scalar expression without aggregate values inside."""
        if not isinstance(e, ir.Expr):
            return e
        if isinstance(e, ir.Intrinsic):
            if e.name in LOADS and e.args and isinstance(e.args[0].type, ir.Pointer):
                return ir.Deref(self.scalar(e.args[0], pre), readonly=e.name == "__ldg", type=e.type, span=e.span)
            if e.name in _FIRST | _SECOND:
                x = self.parts(e.args[0], e.args[0].type, pre)
                if x:
                    return scalar_cast(x[0 if e.name in _FIRST else 1], e.type)
            if e.name == "__hadd2" and not is_aggregate(e.type):
                return e
            args = []
            for a in e.args:
                if is_aggregate(a.type) and not is_place(a):
                    a = self.temp(a, pre)
                args.append(self.scalar(a, pre) if not is_place(a) else self.place(a, pre))
            return replace(e, args=tuple(args))
        if isinstance(e, ir.Field | ir.Index) and not is_place(e):
            base = e.base
            if is_aggregate(base.type):
                x = self.parts(base, base.type, pre)
                if x is None:
                    return ir.HoleExpr(
                        codes.UNSPLIT_STRUCT,
                        _spell(base),
                        "an aggregate value of this form has no translation",
                        type=e.type,
                        span=e.span,
                    )
                if isinstance(e, ir.Field):
                    keys = [k for k, _ in _field_types(base.type)]
                    if e.name in keys:
                        return self.scalar(x[keys.index(e.name)], pre)
                if isinstance(e, ir.Index) and isinstance(e.index, ir.Const):
                    return self.scalar(x[int(e.index.value)], pre)
                tmp = self.temp(base, pre)
                return self.scalar(replace(e, base=tmp), pre)
        if isinstance(e, ir.Select | ir.Binary):
            return self._maybe_lazy(e, pre)
        if is_place(e):
            return self.place(e, pre)
        if isinstance(e, ir.AddressOf | ir.Decay):
            place = e.place
            if not is_place(place) and is_aggregate(place.type):
                place = self.temp(place, pre)
            return replace(e, place=self.place(place, pre))
        return ir.map_children(e, lambda c: self.scalar(c, pre))

    def _maybe_lazy(self, e: ir.Select | ir.Binary, pre: list[ir.Stmt]) -> ir.Expr:
        """Arms that would need statements keep their laziness: they become an if around a temporary."""
        if isinstance(e, ir.Binary) and e.op not in ("&&", "||"):
            return ir.map_children(e, lambda c: self.scalar(c, pre))
        first = self.scalar(e.cond if isinstance(e, ir.Select) else e.a, pre)
        pres: list[list[ir.Stmt]] = [[], []]
        arms = (e.a, e.b) if isinstance(e, ir.Select) else (e.b,)
        values = [self.scalar(a, p) for a, p in zip(arms, pres, strict=False)]
        if not any(pres):
            if isinstance(e, ir.Select):
                return replace(e, cond=first, a=values[0], b=values[1])
            return replace(e, a=first, b=values[0])
        name = self.names.fresh("choice")
        var = ir.Var(name, type=e.type, span=e.span)
        pre.append(ir.Decl(name, e.type, span=e.span))
        if isinstance(e, ir.Select):
            then, orelse = (*pres[0], ir.Assign(var, values[0])), (*pres[1], ir.Assign(var, values[1]))
        else:
            eager: tuple[ir.Stmt, ...] = (*pres[0], ir.Assign(var, values[0]))
            short: tuple[ir.Stmt, ...] = (ir.Assign(var, ir.Const(e.op == "||", type=ir.BOOL)),)
            then, orelse = (eager, short) if e.op == "&&" else (short, eager)
        pre.append(ir.If(first, then, orelse, span=e.span))
        return var

    def place(self, e: ir.Expr, pre: list[ir.Stmt]) -> ir.Expr:
        if isinstance(e, ir.Field):
            return replace(e, base=self.place(e.base, pre) if is_place(e.base) else self.temp(e.base, pre))
        if isinstance(e, ir.Index):
            base = self.place(e.base, pre) if is_place(e.base) else self.temp(e.base, pre)
            return replace(e, base=base, index=self.scalar(e.index, pre))
        if isinstance(e, ir.Deref):
            return replace(e, ptr=self.scalar(e.ptr, pre))
        if isinstance(e, ir.Var):
            return e
        return self.scalar(e, pre)


def _is_vector_atomic(e: ir.Intrinsic) -> bool:
    return e.name.startswith("atomicAdd") and len(e.args) == 2 and is_aggregate(e.args[1].type)


def _all_equal_constants(parts: list[ir.Expr]) -> bool:
    return all(isinstance(p, ir.Const) and p == parts[0] for p in parts)


def _zero(t: ir.Type) -> ir.Expr:
    if is_aggregate(t):
        return ir.StructInit((), type=t)
    if isinstance(t, ir.Scalar) and t.is_float:
        return ir.Const(0.0, type=t)
    return ir.Const(False if t == ir.BOOL else 0, type=t)


def _reads(value: Any, target: ir.Expr) -> bool:
    root: ir.Expr = target
    while isinstance(root, ir.Field | ir.Index):
        root = root.base
    return isinstance(root, ir.Var) and any(isinstance(n, ir.Var) and n.name == root.name for n in ir.walk(value))


def _spell(e: ir.Expr) -> str:
    return e.name if isinstance(e, ir.Intrinsic) else type(e).__name__


def split_aggregates(body: tuple[ir.Stmt, ...], names: Names) -> tuple[ir.Stmt, ...]:
    """The body with aggregate values split (see the module's docstring)."""
    return Splitter(names).body(body)
