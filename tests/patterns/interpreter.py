"""A tiny interpreter of integer IR, the yardstick for rewrites of control flow."""

from __future__ import annotations

import operator

from porter import ir

_OPS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


class _Exit(Exception):
    pass


class _Break(_Exit):
    pass


class _Continue(_Exit):
    pass


class _Return(_Exit):
    def __init__(self, value):
        super().__init__()
        self.value = value


class Machine:
    """Runs a body; `trace` records calls of the intrinsic `emit`, in order."""

    def __init__(self, env, fuel=2000):
        self.env = dict(env)
        self.trace = []
        self.fuel = fuel

    def run(self, body):
        try:
            self.body(body)
        except _Return as r:
            return r.value
        return None

    def body(self, stmts):
        for s in stmts:
            self.stmt(s)

    def expr(self, e):
        if isinstance(e, ir.Const):
            return e.value
        if isinstance(e, ir.Var):
            return self.env[e.name]
        if isinstance(e, ir.Unary):
            x = self.expr(e.x)
            return (not x) if e.op == "!" else -x
        if isinstance(e, ir.Binary):
            if e.op == "&&":
                return bool(self.expr(e.a)) and bool(self.expr(e.b))
            if e.op == "||":
                return bool(self.expr(e.a)) or bool(self.expr(e.b))
            return _OPS[e.op](self.expr(e.a), self.expr(e.b))
        if isinstance(e, ir.Intrinsic) and e.name == "emit":
            self.trace.append(self.expr(e.args[0]))
            return 0
        if isinstance(e, ir.Cast):
            return self.expr(e.x)
        raise AssertionError(type(e))

    def stmt(self, s):
        self.fuel -= 1
        assert self.fuel > 0, "does not end"
        match s:
            case ir.Decl():
                self.env[s.name] = self.expr(s.init) if s.init is not None else 0
            case ir.Assign():
                self.env[s.target.name] = self.expr(s.value)
            case ir.ExprStmt():
                self.expr(s.value)
            case ir.If():
                self.body(s.then if self.expr(s.cond) else s.orelse)
            case ir.For():
                self.body(s.init)
                self._loop(lambda: s.cond is None or self.expr(s.cond), s.body, lambda: self.body(s.step))
            case ir.While():

                def test():
                    self.body(s.pre)
                    return self.expr(s.cond)

                self._loop(test, s.body, lambda: None)
            case ir.DoWhile():
                first = [True]

                def again():
                    if first[0]:
                        first[0] = False
                        return True
                    self.body(s.post)
                    return self.expr(s.cond)

                self._loop(again, s.body, lambda: None)
            case ir.Switch():
                self._switch(s)
            case ir.Scope():
                self.body(s.body)
            case ir.Break():
                raise _Break
            case ir.Continue():
                raise _Continue
            case ir.Return():
                raise _Return(self.expr(s.value) if s.value is not None else None)
            case _:
                raise AssertionError(type(s))

    def _loop(self, test, body, step):
        while test():
            try:
                self.body(body)
            except _Break:
                return
            except _Continue:
                pass
            step()

    def _switch(self, s):
        v = self.expr(s.value)
        chosen = None
        for values, body in s.cases:
            if values is None:
                chosen = chosen if chosen is not None else body
            elif v in values:
                chosen = body
                break
        if chosen is None:
            return
        try:
            self.body(chosen)
        except _Break:
            return
