"""Structured control flow: return, break and continue become guards and flags, as CuTeDSL has no early exit.

Exact: the rewritten code runs the same statements in the same order. A `return` guard at the top of a kernel becomes an
`if` around the rest; an exit in the middle of nested control flow sets a flag that guards what follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from porter import ir
from porter.ir.control_flow import always_leaves
from porter.ir.if_chains import Link, chain
from porter.patterns.names import Names, assigned_names

TRUE, FALSE = ir.Const(True, type=ir.BOOL), ir.Const(False, type=ir.BOOL)


def count_returns(stmts: Any) -> int:
    return sum(isinstance(n, ir.Return) for n in ir.walk(stmts))


@dataclass
class _Loop:
    """The loop around a statement: its flag for break (and return), and for continue, made on demand."""

    names: Names
    outer: _Loop | None = None
    stop: str | None = None
    skip: str | None = None
    returned: bool = False

    def stop_flag(self) -> str:
        self.stop = self.stop or self.names.fresh("stop")
        return self.stop

    def skip_flag(self) -> str:
        self.skip = self.skip or self.names.fresh("skip")
        return self.skip

    @property
    def skip_name(self) -> str | None:
        return self.skip


@dataclass
class _Exits:
    names: Names
    result: ir.Expr | None
    done: str | None = None

    def done_flag(self) -> str:
        self.done = self.done or self.names.fresh("done")
        return self.done

    # ---- lists

    def run(self, stmts: tuple[ir.Stmt, ...], loop: _Loop | None) -> list[ir.Stmt]:
        out: list[ir.Stmt] = []
        for i, s in enumerate(stmts):
            rest = stmts[i + 1 :]
            if isinstance(s, ir.Return):
                out.extend(self._return(s, loop))
                return out
            if isinstance(s, ir.Break):
                assert loop is not None
                out.append(_set(loop.stop_flag(), s))
                return out
            if isinstance(s, ir.Continue):
                assert loop is not None
                skip = loop.skip_name
                if skip is not None:
                    out.append(_set(skip, s))
                return out
            if isinstance(s, ir.Scope):
                if not _exits(s):
                    out.append(replace(s, body=tuple(self.run(s.body, loop))))
                    continue
                return [*out, *self.run((*s.body, *rest), loop)]
            if isinstance(s, ir.If):
                if not _exits(s):
                    out.append(replace(s, then=tuple(self.run(s.then, loop)), orelse=tuple(self.run(s.orelse, loop))))
                    continue
                out.extend(self._if(s, rest, loop))
                return out
            if isinstance(s, ir.For | ir.While | ir.DoWhile | ir.Switch):
                new, guard = self._nested(s, loop)
                out.extend(new)
                if guard is not None and rest:
                    inner = self.run(rest, loop)
                    if inner:
                        out.append(ir.If(ir.Unary("!", guard, type=ir.BOOL), tuple(inner), span=s.span))
                    return out
                continue
            out.append(s)
        return out

    def _return(self, s: ir.Return, loop: _Loop | None) -> list[ir.Stmt]:
        out: list[ir.Stmt] = []
        if s.value is not None and self.result is not None:
            out.append(ir.Assign(self.result, s.value, span=s.span, comment=s.comment))
        walk = loop
        while walk is not None:
            walk.returned = True
            out.append(_set(walk.stop_flag(), s))
            walk = walk.outer
        if loop is not None:
            out.append(_set(self.done_flag(), s))
        elif self.done is not None:
            out.append(_set(self.done, s))
        return out

    def _if(self, s: ir.If, rest: tuple[ir.Stmt, ...], loop: _Loop | None) -> list[ir.Stmt]:
        then_always, else_always = always_leaves(s.then), always_leaves(s.orelse)
        if s.is_constexpr:
            taken = s.then if s.taken else s.orelse
            new_taken = tuple(self.run((*taken, *(() if always_leaves(taken) else rest)), loop))
            pair = (new_taken, ()) if s.taken else ((), new_taken)
            return [replace(s, then=pair[0], orelse=pair[1])]
        if then_always and not _exits(s.orelse):
            then = tuple(self.run(s.then, loop))
            orelse = tuple(self.run((*s.orelse, *rest), loop))
            return _flip([replace(s, then=then, orelse=orelse)])
        if else_always and not _exits(s.then):
            return [replace(s, then=tuple(self.run((*s.then, *rest), loop)), orelse=tuple(self.run(s.orelse, loop)))]
        if then_always and else_always:
            return [replace(s, then=tuple(self.run(s.then, loop)), orelse=tuple(self.run(s.orelse, loop)))]
        if then_always:  # the else arm exits sometimes: it goes on with the rest in its own arm
            return _flip(
                [replace(s, then=tuple(self.run(s.then, loop)), orelse=tuple(self.run((*s.orelse, *rest), loop)))]
            )
        if else_always:
            return [replace(s, then=tuple(self.run((*s.then, *rest), loop)), orelse=tuple(self.run(s.orelse, loop)))]
        if not rest:
            return [replace(s, then=tuple(self.run(s.then, loop)), orelse=tuple(self.run(s.orelse, loop)))]
        # exits in the middle of an arm: flags say afterwards whether one happened
        kinds = _exits(s)
        guards: list[str] = []
        if "return" in kinds and loop is None:
            guards.append(self.done_flag())
        if loop is not None:
            if "break" in kinds or "return" in kinds:
                guards.append(loop.stop_flag())
            if "continue" in kinds:
                guards.append(loop.skip_flag())
        new = replace(s, then=tuple(self.run(s.then, loop)), orelse=tuple(self.run(s.orelse, loop)))
        inner = self.run(rest, loop)
        if not inner:
            return [new]
        return [new, ir.If(_none(guards), tuple(inner), span=s.span)]

    # ---- loops

    def _nested(self, s: ir.Stmt, loop: _Loop | None) -> tuple[list[ir.Stmt], ir.Expr | None]:
        """The loop with exits removed; the guard is the flag that says the function has returned (or None)."""
        if isinstance(s, ir.Switch):
            return self._switch(s, loop)
        inner = _Loop(self.names, loop)
        assert isinstance(s, ir.For | ir.While | ir.DoWhile)
        # a first pass finds which flags are needed at all; the flags must exist before code that sets them is made
        if _needs_skip(s.body):
            inner.skip_flag()
        if _has_return(s.body):
            self.done_flag()
        body = self.run(s.body, inner)
        if inner.skip is not None:
            body = [ir.Decl(inner.skip, ir.BOOL, FALSE, span=s.span), *body]
        pre: list[ir.Stmt] = []
        if inner.stop is not None:
            pre.append(ir.Decl(inner.stop, ir.BOOL, FALSE, span=s.span))
        new = self._loop(s, tuple(body), inner)
        guard = ir.Var(self.done, type=ir.BOOL) if inner.returned and self.done else None
        return [*pre, *new], guard

    def _loop(self, s: ir.Stmt, body: tuple[ir.Stmt, ...], inner: _Loop) -> list[ir.Stmt]:
        go = _none([inner.stop]) if inner.stop is not None else None
        if isinstance(s, ir.While):
            if go is None:
                return [replace(s, body=body)]
            if s.pre:
                name = self.names.fresh("again")
                test = (*s.pre, ir.Assign(ir.Var(name, type=ir.BOOL), s.cond, span=s.span))
                again = ir.Var(name, type=ir.BOOL)
                once_more = tuple(_assigned_again(st) for st in test)
                tail = ir.If(go, once_more, (ir.Assign(again, FALSE, span=s.span),), span=s.span)
                return [ir.Decl(name, ir.BOOL, FALSE, span=s.span), *test, ir.While(again, (*body, tail), span=s.span)]
            cond = go if _is_true(s.cond) else ir.Binary("&&", go, s.cond, type=ir.BOOL, span=s.span)
            return [replace(s, cond=cond, body=body)]
        if isinstance(s, ir.DoWhile):
            if _is_false(s.cond):
                return [*body, *s.post]
            name = self.names.fresh("again")
            again = ir.Var(name, type=ir.BOOL)
            retest: tuple[ir.Stmt, ...] = (*s.post, ir.Assign(again, s.cond, span=s.span))
            if go is not None:
                retest = (ir.If(go, retest, (ir.Assign(again, FALSE, span=s.span),), span=s.span),)
            loop = ir.While(again, (*body, *retest), span=s.span, comment=s.comment)
            return [ir.Decl(name, ir.BOOL, TRUE, span=s.span), loop]
        assert isinstance(s, ir.For)
        if go is None:
            return [replace(s, body=body)]
        if _const_trips(s):
            # a loop that is unrolled stays one: each iteration is skipped once the flag is set
            return [replace(s, body=(ir.If(go, body, span=s.span),))]
        cond = go if s.cond is None else ir.Binary("&&", go, s.cond, type=ir.BOOL, span=s.span)
        own = {n.name for n in s.init if isinstance(n, ir.Decl)}
        step = s.step
        if any(
            isinstance(n, ir.Assign) and not (isinstance(n.target, ir.Var) and n.target.name in own) for n in s.step
        ):
            step = (ir.If(go, s.step, span=s.span),)
        return [*s.init, ir.While(cond, (*body, *step), span=s.span, comment=s.comment)]

    def _switch(self, s: ir.Switch, loop: _Loop | None) -> tuple[list[ir.Stmt], ir.Expr | None]:
        """A chain of ifs on a temporary. A conditional break inside a case is a loop of its own that runs once."""
        name = self.names.fresh("selector")
        sel = ir.Var(name, type=s.value.type, span=s.span)
        pre: list[ir.Stmt] = [ir.Decl(name, s.value.type, s.value, is_const=True, span=s.span, comment=s.comment)]
        inner = _Switch(self.names, loop)
        needs_guard = any("return" in _exits_list(b) or "continue" in _exits_list(b) for _, b in s.cases)
        if needs_guard and loop is None:
            self.done_flag()
        if loop is not None and any("continue" in _exits_list(b) for _, b in s.cases):
            loop.skip_flag()
        default: tuple[ir.Stmt, ...] = ()
        arms: list[Link] = []
        for values, body in s.cases:
            if any(isinstance(n, ir.Break) for n in _own_breaks(body)):
                inner.stop_flag()
            new = tuple(self.run(body, inner if _own_breaks(body) else loop))
            if values is None:
                default = new
                continue
            cond: ir.Expr | None = None
            for v in values:
                eq = ir.Binary("==", sel, ir.Const(v, type=s.value.type), type=ir.BOOL, span=s.span)
                cond = eq if cond is None else ir.Binary("||", cond, eq, type=ir.BOOL, span=s.span)
            if cond is not None:
                arms.append(Link(cond, new, span=s.span))
        if inner.stop is not None:
            pre.append(ir.Decl(inner.stop, ir.BOOL, FALSE, span=s.span))
        guard: ir.Expr | None = None
        if needs_guard and loop is None and self.done:
            guard = ir.Var(self.done, type=ir.BOOL)
        elif needs_guard and loop is not None:
            flags = [f for f in (loop.stop, loop.skip_name) if f]
            guard = ir.Unary("!", _none(flags), type=ir.BOOL) if flags else None
        return [*pre, *chain(arms, default, self.names.fresh)], guard


class _Switch(_Loop):
    """A switch seen as the target of break; continue and return go to the loop around it."""

    def skip_flag(self) -> str:
        assert self.outer is not None
        return self.outer.skip_flag()

    @property
    def skip_name(self) -> str | None:
        return self.outer.skip_name if self.outer is not None else None


def _assigned_again(s: ir.Stmt) -> ir.Stmt:
    """A declaration among the statements of a loop's test is an assignment the second time."""
    if isinstance(s, ir.Decl) and s.init is not None and isinstance(s.type, ir.Scalar | ir.Pointer):
        return ir.Assign(ir.Var(s.name, type=s.type, span=s.span), s.init, span=s.span)
    return s


def _set(name: str, s: ir.Stmt) -> ir.Stmt:
    return ir.Assign(ir.Var(name, type=ir.BOOL), TRUE, span=s.span)


def _none(flags: list[Any]) -> ir.Expr:
    cond: ir.Expr | None = None
    for f in flags:
        term: ir.Expr = ir.Unary("!", ir.Var(f, type=ir.BOOL), type=ir.BOOL)
        cond = term if cond is None else ir.Binary("&&", cond, term, type=ir.BOOL)
    return cond if cond is not None else TRUE


def _flip(stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    """`if c: <nothing> else: rest` reads better as `if not c: rest`."""
    s = stmts[0]
    if isinstance(s, ir.If) and not s.then and s.orelse:
        return [replace(s, cond=negate(s.cond), then=s.orelse, orelse=())]
    return stmts


_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def negate(cond: ir.Expr) -> ir.Expr:
    """Logical not; comparisons of integers are turned round (not those of floats: NaN)."""
    if isinstance(cond, ir.Unary) and cond.op == "!":
        return cond.x
    if isinstance(cond, ir.Binary) and cond.op in _NEGATED:
        t = cond.a.type
        if isinstance(t, ir.Pointer) or (isinstance(t, ir.Scalar) and t.is_int):
            return replace(cond, op=_NEGATED[cond.op])
    if isinstance(cond, ir.Binary) and cond.op in ("&&", "||"):
        op = "||" if cond.op == "&&" else "&&"
        return replace(cond, op=op, a=negate(cond.a), b=negate(cond.b))
    return ir.Unary("!", cond, type=ir.BOOL, span=cond.span)


def _exits(node: Any) -> set[str]:
    """Kinds of exits of a statement (or list) that leave it: return, and break/continue not inside a nested loop."""
    out: set[str] = set()
    stack: list[tuple[Any, bool, bool]] = [(node, True, True)]
    while stack:
        n, br, co = stack.pop()
        if isinstance(n, ir.Return):
            out.add("return")
        elif isinstance(n, ir.Break) and br:
            out.add("break")
        elif isinstance(n, ir.Continue) and co:
            out.add("continue")
        elif isinstance(n, ir.Expr):
            continue
        inner_br = br and not isinstance(n, ir.For | ir.While | ir.DoWhile | ir.Switch)
        inner_co = co and not isinstance(n, ir.For | ir.While | ir.DoWhile)
        for c in _stmt_children(n):
            stack.append((c, inner_br, inner_co))
    return out


def _exits_list(stmts: tuple[ir.Stmt, ...]) -> set[str]:
    return _exits(stmts)


def _own_breaks(stmts: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    return [ir.Break()] if "break" in _exits(stmts) else []


def _stmt_children(n: Any) -> list[Any]:
    if isinstance(n, tuple):
        return list(n)
    if isinstance(n, ir.Switch):
        return [s for _, b in n.cases for s in b]
    return [c for c in ir.children(n) if isinstance(c, ir.Stmt)]


def _has_return(stmts: Any) -> bool:
    return any(isinstance(n, ir.Return) for n in ir.walk(stmts))


def _needs_skip(body: tuple[ir.Stmt, ...]) -> bool:
    """True when some continue of this loop sits where the code after it cannot simply move into an else arm."""

    def visit(stmts: tuple[ir.Stmt, ...], tail: bool) -> bool:
        for i, s in enumerate(stmts):
            last = tail and i == len(stmts) - 1
            kinds = _exits(s)
            if "continue" not in kinds:
                continue
            if isinstance(s, ir.Continue):
                return False
            if isinstance(s, ir.Scope):
                return visit((*s.body, *stmts[i + 1 :]), tail)
            if isinstance(s, ir.If):
                arms = [a for a in (s.then, s.orelse) if _exits(a)]
                if all(always_leaves(a) for a in arms):
                    return any(visit(a, True) for a in arms) or visit(stmts[i + 1 :], tail)
                if last:
                    return any(visit(a, True) for a in arms)
                if s.is_constexpr:
                    return visit((s.then if s.taken else s.orelse) + stmts[i + 1 :], tail)
                if len(arms) == 1 or any(always_leaves(a) for a in arms):
                    others = [a for a in arms if not always_leaves(a)]
                    if not others:
                        return visit(stmts[i + 1 :], tail)
                return True
            return True
        return False

    return visit(body, True)


def _is_true(e: ir.Expr) -> bool:
    return isinstance(e, ir.Const) and bool(e.value)


def _is_false(e: ir.Expr) -> bool:
    return (isinstance(e, ir.Const) and not e.value) or (isinstance(e, ir.Cast) and _is_false(e.x))


def _const_trips(s: ir.For) -> bool:
    """A for loop that counts up from a constant to another in at most 64 trips, and does nothing else in its head."""
    if len(s.init) != 1 or not isinstance(s.init[0], ir.Decl) or not isinstance(s.init[0].init, ir.Const):
        return False
    name, c = s.init[0].name, s.cond
    if not isinstance(c, ir.Binary) or not isinstance(c.b, ir.Const) or not _is_var(c.a, name):
        return False
    if len(s.step) != 1 or not isinstance(s.step[0], ir.Assign) or not _is_var(s.step[0].target, name):
        return False
    by = s.step[0].value
    while isinstance(by, ir.Cast):
        by = by.x
    if not isinstance(by, ir.Binary) or by.op != "+" or not isinstance(by.b, ir.Const) or by.b.value < 1:
        return False
    if name in assigned_names(s.body):
        return False
    return c.op in ("<", "<=") and abs(c.b.value - s.init[0].init.value) <= 64


def _is_var(e: ir.Expr, name: str) -> bool:
    return isinstance(e, ir.Var) and e.name == name


def single_exit(body: tuple[ir.Stmt, ...], result: ir.Expr | None, names: Names) -> tuple[ir.Stmt, ...]:
    """The body without return, break or continue; a returned value is assigned to `result` (declared by the caller)."""
    worker = _Exits(names, result)
    # the flag must be declared before its first use, so find out first whether the body needs it
    out = worker.run(body, None)
    if worker.done is not None:
        out = _Exits(names, result, worker.done).run(body, None)
        out = [ir.Decl(worker.done, ir.BOOL, FALSE, span=body[0].span), *out]
    return tuple(out)


def function_exits(fn_body: tuple[ir.Stmt, ...], ret: ir.Type, names: Names) -> tuple[ir.Stmt, ...]:
    """The body of a function that stays a function: at most one return, the last statement."""
    returns = count_returns(fn_body)
    if returns == 0 or (returns == 1 and fn_body and isinstance(fn_body[-1], ir.Return)):
        last = fn_body[-1] if returns else None
        inner = single_exit(fn_body[:-1] if last is not None else fn_body, None, names)
        return (*inner, last) if last is not None else inner
    if ret == ir.VOID:
        return single_exit(fn_body, None, names)
    name = names.fresh("result")
    var = ir.Var(name, type=ret)
    span = fn_body[0].span
    return (ir.Decl(name, ret, span=span), *single_exit(fn_body, var, names), ir.Return(var, span=span))
