"""Inlining of device functions that cannot stay functions in CuTeDSL: reference parameters, aggregates, lambdas.

Scalars are passed by value in CuTeDSL, so a C++ reference has no counterpart. Everything else stays a function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from porter import codes, ir
from porter.patterns.exits import count_returns, single_exit
from porter.patterns.names import (
    Names,
    assigned_names,
    declared,
    is_simple,
    is_stable_place,
    substitute,
    variables,
)

MAX_DEPTH = 100  # calls inside one another


def must_inline(fn: ir.Function) -> bool:
    """True when the function has reference parameters, aggregates, or captures, or holds a static array of its own."""
    if fn.captures_enclosing or fn.ret_ref or any(p.by_ref for p in fn.params):
        return True
    if isinstance(fn.ret, ir.Array | ir.Struct) or any(isinstance(p.type, ir.Array | ir.Struct) for p in fn.params):
        return True
    return any(isinstance(n, ir.HoleExpr | ir.HoleStmt) for n in ir.walk(fn.body))


class Inliner:
    """Expands the calls of one kernel; `body(key)` memoises functions whose own calls are expanded already."""

    def __init__(self, kernel: ir.Kernel, names: Names):
        self.functions = _unique_locals(kernel, names)
        captures = _addressed(f.body for f in self.functions.values() if f.captures_enclosing)
        self._addressed = {k: captures | _addressed([f.body]) for k, f in self.functions.items()}
        self._addressed[""] = captures | _addressed([kernel.body])
        self.names = names
        self._done: dict[str, tuple[ir.Stmt, ...]] = {}
        self._active: list[str] = []
        self._must = {key: must_inline(fn) for key, fn in self.functions.items()}
        self.kept: dict[str, ir.Function] = {}

    def body(self, key: str) -> tuple[ir.Stmt, ...]:
        if key not in self._done:
            if key in self._active or len(self._active) > MAX_DEPTH:
                raise RecursionError(self.functions[key].name)
            self._active.append(key)
            self._done[key] = self.statements(self.functions[key].body)
            self._active.pop()
        return self._done[key]

    # ---- statements

    def statements(self, stmts: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        for s in stmts:
            out.extend(self.statement(s))
        return tuple(out)

    def statement(self, s: ir.Stmt) -> list[ir.Stmt]:
        pre: list[ir.Stmt] = []
        if isinstance(s, ir.ExprStmt):
            if isinstance(s.value, ir.Call) and self._inlinable(s.value):
                self._expand(s.value, pre, want_value=False)
                return _with_comment(pre, s)
            value = self.hoist(s.value, pre)
            return [*pre, replace(s, value=value)]
        if isinstance(s, ir.If):
            cond = self.hoist(s.cond, pre)
            return [*pre, replace(s, cond=cond, then=self.statements(s.then), orelse=self.statements(s.orelse))]
        if isinstance(s, ir.For):
            if (s.cond is not None and self._any(s.cond)) or self._any(s.step):
                return self._for_as_while(s)
            return [replace(s, init=self.statements(s.init), body=self.statements(s.body))]
        if isinstance(s, ir.While):
            cond = self.hoist(s.cond, pre)
            return [replace(s, cond=cond, pre=(*self.statements(s.pre), *pre), body=self.statements(s.body))]
        if isinstance(s, ir.DoWhile):
            cond = self.hoist(s.cond, pre)
            return [replace(s, cond=cond, body=self.statements(s.body), post=(*self.statements(s.post), *pre))]
        if isinstance(s, ir.Switch):
            value = self.hoist(s.value, pre)
            return [*pre, replace(s, value=value, cases=tuple((v, self.statements(b)) for v, b in s.cases))]
        if isinstance(s, ir.Scope):
            return [replace(s, body=self.statements(s.body))]
        if isinstance(s, ir.Asm):
            outs = tuple((c, self.hoist(p, pre)) for c, p in s.outputs)
            ins = tuple((c, self.hoist(e, pre)) for c, e in s.inputs)
            return [*pre, replace(s, outputs=outs, inputs=ins)]
        new = ir.map_children(s, lambda e: self.hoist(e, pre) if isinstance(e, ir.Expr) else e)
        return _with_comment([*pre, new], s) if pre else [new]

    def _for_as_while(self, s: ir.For) -> list[ir.Stmt]:
        pre: list[ir.Stmt] = []
        cond = self.hoist(s.cond, pre) if s.cond is not None else ir.Const(True, type=ir.BOOL)
        if any(isinstance(n, ir.Continue) for n in ir.walk(s.body)):
            return [
                *self.statements(s.init),
                ir.HoleStmt(
                    codes.CONTINUE_IN_CALLING_LOOP,
                    "for",
                    "a loop whose condition calls an inlined function cannot hold continue",
                    span=s.span,
                ),
            ]
        body = (*self.statements(s.body), *self.statements(s.step))
        return [*self.statements(s.init), ir.While(cond, body, tuple(pre), span=s.span)]

    # ---- expressions

    def _inlinable(self, c: ir.Call) -> bool:
        return self._must.get(c.function, False)

    def _any(self, node: Any) -> bool:
        return any(isinstance(n, ir.Call) and self._inlinable(n) for n in ir.walk(node))

    def hoist(self, e: Any, pre: list[ir.Stmt]) -> Any:
        if not isinstance(e, ir.Expr):
            return e
        if not self._any(e):
            for n in ir.walk(e):
                if isinstance(n, ir.Call):
                    self.keep_function(n.function)
            return e
        if isinstance(e, ir.Call) and self._inlinable(e):
            return self._expand(e, pre, want_value=True)
        if isinstance(e, ir.Select) and (self._any(e.a) or self._any(e.b)):
            return self._lazy(self.hoist(e.cond, pre), e.a, e.b, e, pre)
        if isinstance(e, ir.Binary) and e.op in ("&&", "||") and self._any(e.b):
            left = self.hoist(e.a, pre)
            const = ir.Const(e.op == "||", type=ir.BOOL, span=e.span)
            return self._lazy(left, e.b, const, e, pre) if e.op == "&&" else self._lazy(left, const, e.b, e, pre)
        return ir.map_children(e, lambda c: self.hoist(c, pre))

    def _lazy(self, cond: ir.Expr, a: ir.Expr, b: ir.Expr, e: ir.Expr, pre: list[ir.Stmt]) -> ir.Expr:
        name = self.names.fresh("choice")
        var = ir.Var(name, type=e.type, span=e.span)
        arms = []
        for arm in (a, b):
            inner: list[ir.Stmt] = []
            value = self.hoist(arm, inner)
            arms.append((*inner, ir.Assign(var, value, span=e.span)))
        pre.append(ir.Decl(name, e.type, span=e.span))
        pre.append(ir.If(cond, arms[0], arms[1], span=e.span))
        return var

    def keep_function(self, key: str) -> None:
        """Note a function that stays a function, with its own body expanded."""
        if key in self.kept or key not in self.functions:
            return
        fn = self.functions[key]
        self.kept[key] = fn  # before the body: recursion is caught by body()
        self.kept[key] = replace(fn, body=self.body(key))

    def _expand(self, call: ir.Call, pre: list[ir.Stmt], *, want_value: bool) -> ir.Expr:
        fn = self.functions[call.function]
        try:
            body = self.body(call.function)
        except RecursionError:
            hole = ir.HoleExpr(
                codes.RECURSIVE_CALL, fn.name, "recursive device function", type=call.type, span=call.span
            )
            return hole
        changed = assigned_names(body)
        args = [(p, self.hoist(arg, pre)) for p, arg in zip(fn.params, call.args, strict=False)]
        moving = self._moving(fn, body, args, changed)
        values: dict[str, ir.Expr] = {}
        for p, arg in args:
            if p.by_ref:
                values[p.name] = self._place(arg, p, moving, pre)
            elif (
                p.name not in changed
                and (
                    is_simple(arg) or (isinstance(arg, ir.Var | ir.Field) and isinstance(p.type, ir.Struct | ir.Array))
                )
                and not variables(arg) & moving
            ):
                values[p.name] = arg
            else:
                fresh = self.names.fresh(p.name)
                pre.append(ir.Decl(fresh, p.type, arg, span=call.span))
                values[p.name] = ir.Var(fresh, type=p.type, span=call.span)
        for n, t in _declared_types(body).items():
            values[n] = ir.Var(self.names.fresh(n), type=t)
        renamed = substitute(body, values)
        returns = count_returns(renamed)
        is_void = fn.ret == ir.VOID
        if renamed and isinstance(renamed[-1], ir.Return) and returns == 1:
            pre.extend(renamed[:-1])
            value = renamed[-1].value
            if value is None:
                return ir.Const(0, type=ir.VOID)
            if fn.ret_ref or not want_value or _fits_once(value):
                if not want_value and not _fits_once(value):
                    pre.append(ir.ExprStmt(value, span=call.span))
                return value
            name = self.names.fresh(f"{fn.name}_result" if fn.name.isidentifier() else "result")
            pre.append(ir.Decl(name, fn.ret, value, span=call.span))
            return ir.Var(name, type=fn.ret, span=call.span)
        if returns == 0:
            pre.extend(renamed)
            if is_void or not want_value:
                return ir.Const(0, type=ir.VOID)
            # a body of holes only, or one that ends in a trap: the value is never seen
            name = self.names.fresh("result")
            pre.append(ir.Decl(name, fn.ret, span=call.span))
            return ir.Var(name, type=fn.ret, span=call.span)
        if fn.ret_ref:
            return ir.HoleExpr(
                codes.SEVERAL_REFERENCE_RETURNS,
                fn.name,
                "several returns of a reference",
                type=call.type,
                span=call.span,
            )
        name = self.names.fresh(f"{fn.name}_result" if fn.name.isidentifier() else "result")
        if not is_void:
            pre.append(ir.Decl(name, fn.ret, span=call.span))
        pre.extend(single_exit(renamed, None if is_void else ir.Var(name, type=fn.ret), self.names))
        return ir.Const(0, type=ir.VOID) if is_void else ir.Var(name, type=fn.ret, span=call.span)

    def _moving(
        self,
        fn: ir.Function,
        body: tuple[ir.Stmt, ...],
        args: list[tuple[ir.FunctionParam, ir.Expr]],
        changed: set[str],
    ) -> set[str]:
        """The caller's variables that may change while the body runs: a value or an index that reads one is kept.

        They change through a reference parameter, a captured name, or, where the body stores through pointers, because
        their address is known somewhere.
        """
        own = {p.name for p in fn.params} | set(declared(body))
        moving = changed - own
        for p, arg in args:
            if p.by_ref and p.name in changed:
                moving |= ir.root_variables(arg)
        if any(_stores_by_pointer(n) for n in ir.walk(body)):
            moving |= self._addressed[self._active[-1] if self._active else ""]
        return moving

    def _place(self, arg: ir.Expr, p: ir.FunctionParam, moving: set[str], pre: list[ir.Stmt]) -> ir.Expr:
        if isinstance(arg, ir.Var | ir.Field | ir.Index | ir.Deref):
            if is_stable_place(arg, moving):
                return arg
            return self._pin(arg, pre)
        # a temporary bound to a const reference
        fresh = self.names.fresh(p.name if p.name != "this" else "self")
        pre.append(ir.Decl(fresh, p.type, arg, span=arg.span))
        return ir.Var(fresh, type=p.type, span=arg.span)

    def _pin(self, e: ir.Expr, pre: list[ir.Stmt]) -> ir.Expr:
        """The same place with its index or pointer evaluated now."""
        if isinstance(e, ir.Field):
            return replace(e, base=self._pin(e.base, pre))
        if isinstance(e, ir.Index):
            index = e.index
            if not isinstance(index, ir.Const | ir.Param):
                n = self.names.fresh("at")
                pre.append(ir.Decl(n, index.type, index, is_const=True, span=e.span))
                index = ir.Var(n, type=index.type, span=e.span)
            return replace(e, base=self._pin(e.base, pre), index=index)
        if isinstance(e, ir.Deref) and not isinstance(e.ptr, ir.Var):
            n = self.names.fresh("ptr")
            pre.append(ir.Decl(n, e.ptr.type, e.ptr, is_const=True, span=e.span))
            return replace(e, ptr=ir.Var(n, type=e.ptr.type, span=e.span))
        return e


def _addressed(bodies: Iterable[Any]) -> set[str]:
    """Variables whose address is taken."""
    nodes = (n for body in bodies for n in ir.walk(body) if isinstance(n, ir.AddressOf | ir.Decay))
    return {name for n in nodes for name in ir.root_variables(n.place)}


def _stores_by_pointer(n: Any) -> bool:
    """A statement or call that may write memory by its address."""
    if isinstance(n, ir.Assign | ir.Copy):
        return any(isinstance(x, ir.Deref) for x in ir.walk(n.target))
    return isinstance(n, ir.Call | ir.Asm) or (
        isinstance(n, ir.Intrinsic) and any(isinstance(a.type, ir.Pointer) for a in n.args)
    )


def _fits_once(value: ir.Expr) -> bool:
    """An expression that may be used where the call stood without a temporary: it reads no memory that later code
    writes."""
    return not any(isinstance(n, ir.Deref | ir.Index | ir.Field | ir.Intrinsic | ir.Call) for n in ir.walk(value))


def _with_comment(stmts: list[ir.Stmt], s: ir.Stmt) -> list[ir.Stmt]:
    if stmts and s.comment and not stmts[0].comment:
        stmts[0] = replace(stmts[0], comment=s.comment)
    return stmts


def _declared_types(body: Any) -> dict[str, ir.Type]:
    """The locals and shared arrays of a body, in order, with the type of the first declaration of each name."""
    types: dict[str, ir.Type] = {}
    for n in ir.walk(body):
        if isinstance(n, ir.Decl | ir.SharedDecl):
            types.setdefault(n.name, n.type)
    return types


def _unique_locals(kernel: ir.Kernel, names: Names) -> dict[str, ir.Function]:
    """Functions with locals renamed so that no two of the kernel's functions share a local's name.

    Lambdas refer to locals of the function that holds them; such names are left alone.
    """
    captured: set[str] = set()
    for fn in kernel.functions.values():
        if fn.captures_enclosing:
            own = set(declared(fn.body)) | {p.name for p in fn.params}
            captured |= {n.name for n in ir.walk(fn.body) if isinstance(n, ir.Var)} - own
    names.taken |= {p.name for p in kernel.params} | set(declared(kernel.body)) | {g.name for g in kernel.globals}
    out: dict[str, ir.Function] = {}
    for key, fn in kernel.functions.items():
        out[key] = fn
        if must_inline(fn) and captured:
            values: dict[str, ir.Expr] = {}
            params = []
            for p in fn.params:
                new = p.name if p.name in captured else names.fresh(p.name)
                values[p.name] = ir.Var(new, type=p.type)
                params.append(replace(p, name=new))
            for n, t in _declared_types(fn.body).items():
                if n not in captured:
                    values[n] = ir.Var(names.fresh(n), type=t)
            out[key] = replace(fn, params=tuple(params), body=substitute(fn.body, values))
    return out


def inline(kernel: ir.Kernel, names: Names) -> ir.Kernel:
    """The kernel with every call that must be inlined expanded; the functions that stay are in `functions`."""
    worker = Inliner(kernel, names)
    body = worker.statements(kernel.body)
    for n in ir.walk(body):
        if isinstance(n, ir.Call):
            worker.keep_function(n.function)
    pending = list(worker.kept)
    while pending:
        key = pending.pop()
        for n in ir.walk(worker.kept[key].body):
            if isinstance(n, ir.Call) and n.function not in worker.kept and n.function in worker.functions:
                worker.keep_function(n.function)
                pending.append(n.function)
    return replace(kernel, body=body, functions=dict(worker.kept))
