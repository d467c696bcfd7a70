"""Early exits become structured code that does the same: random programs before and after the rewrite."""

from __future__ import annotations

import random

import pytest

from porter import ir
from porter.patterns.exits import function_exits, single_exit
from porter.patterns.names import Names, declared
from tests.patterns.interpreter import Machine

I32, BOOL = ir.I32, ir.BOOL


def const(v):
    return ir.Const(v, type=I32)


def var(n):
    return ir.Var(n, type=I32)


def cmp(a, op, b):
    return ir.Binary(op, a, b, type=BOOL)


class Generator:
    """Random structured programs over x and y with every kind of exit."""

    def __init__(self, rng, returns_value):
        self.rng = rng
        self.n = 0
        self.value = returns_value

    def emit(self):
        self.n += 1
        return ir.ExprStmt(ir.Intrinsic("emit", (ir.Binary("+", var("x"), const(self.n * 100), type=I32),), type=I32))

    def cond(self):
        r = self.rng
        return cmp(var(r.choice("xy")), r.choice(["<", ">", "==", "!="]), const(r.randrange(-2, 6)))

    def exit(self, in_loop, in_switch):
        kinds = ["return"] + (["break", "continue"] if in_loop else []) + (["break"] if in_switch else [])
        k = self.rng.choice(kinds)
        if k == "return":
            return ir.Return(ir.Binary("+", var("x"), const(self.rng.randrange(9)), type=I32) if self.value else None)
        return ir.Break() if k == "break" else ir.Continue()

    def body(self, depth, in_loop=False, in_switch=False):
        out = []
        for _ in range(self.rng.randrange(1, 4)):
            out.append(self.stmt(depth, in_loop, in_switch))
        if self.rng.random() < 0.25:
            out.append(self.exit(in_loop, in_switch))
        return tuple(out)

    def stmt(self, depth, in_loop, in_switch):
        r = self.rng
        kind = r.choice(
            ["emit", "step", "if", "ifelse", "for", "while", "do", "once", "switch", "scope"]
            if depth
            else ["emit", "step", "if0"]
        )
        if kind == "emit":
            return self.emit()
        if kind == "step":
            return ir.Assign(var("x"), ir.Binary("+", var("x"), const(r.randrange(1, 3)), type=I32))
        if kind == "if0":
            return ir.If(self.cond(), (self.exit(in_loop, in_switch),))
        if kind == "if":
            return ir.If(self.cond(), self.body(depth - 1, in_loop, in_switch))
        if kind == "ifelse":
            return ir.If(
                self.cond(), self.body(depth - 1, in_loop, in_switch), self.body(depth - 1, in_loop, in_switch)
            )
        if kind == "scope":
            return ir.Scope(self.body(depth - 1, in_loop, in_switch))
        self.n += 1
        i = f"i{self.n}"
        step = (ir.Assign(var(i), ir.Binary("+", var(i), const(1), type=I32)),)
        test = cmp(var(i), "<", const(r.randrange(1, 4)))
        inner = self.body(depth - 1, True, False)
        if kind == "for":
            return ir.For((ir.Decl(i, I32, const(0)),), test, step, (ir.Assign(var("y"), var(i)), *inner))
        if kind == "while":
            pre = (self.emit(),) if r.random() < 0.4 else ()
            return ir.Scope((ir.Decl(i, I32, const(0)), ir.While(test, (*step, *inner), pre)))
        if kind == "do":
            return ir.Scope((ir.Decl(i, I32, const(0)), ir.DoWhile((*step, *inner), test)))
        if kind == "once":
            return ir.DoWhile(inner, ir.Const(False, type=BOOL))
        cases = [((v,), self.body(depth - 1, in_loop, True)) for v in r.sample(range(5), 2)]
        if r.random() < 0.6:
            cases.append((None, self.body(depth - 1, in_loop, True)))
        # continue inside a switch belongs to the loop around it; keep programs that have one only inside loops
        return ir.Switch(var("x"), tuple(cases))


def exits_left(body):
    return [n for n in ir.walk(body) if isinstance(n, ir.Return | ir.Break | ir.Continue)]


@pytest.mark.parametrize("seed", range(150))
def test_kernel_bodies_keep_their_behaviour(seed):
    rng = random.Random(seed)
    body = Generator(rng, returns_value=False).body(3)
    names = Names(["x", "y", *declared(body)])
    new = single_exit(body, None, names)
    assert not exits_left(new)
    for x in range(-1, 5):
        for y in (0, 3):
            before, after = Machine({"x": x, "y": y}), Machine({"x": x, "y": y}, fuel=20000)
            try:
                before.run(body)
            except AssertionError as e:
                if "end" in str(e):
                    continue
                raise
            after.run(new)
            assert after.trace == before.trace, (seed, x, y)
            assert after.env["x"] == before.env["x"]


@pytest.mark.parametrize("seed", range(150))
def test_functions_return_the_same_value(seed):
    rng = random.Random(1000 + seed)
    body = (*Generator(rng, returns_value=True).body(3), ir.Return(var("y")))
    new = function_exits(body, I32, Names(["x", "y", *declared(body)]))
    left = exits_left(new)
    assert len(left) == 1 and new[-1] is left[0]
    for x in range(-1, 5):
        before, after = Machine({"x": x, "y": 1}), Machine({"x": x, "y": 1}, fuel=20000)
        try:
            want = before.run(body)
        except AssertionError as e:
            if "end" in str(e):
                continue
            raise
        assert after.run(new) == want, (seed, x)
        assert after.trace == before.trace


def test_a_guard_at_the_top_becomes_an_if_around_the_rest():
    body = (
        ir.If(cmp(var("x"), ">=", var("n")), (ir.Return(),)),
        ir.ExprStmt(ir.Intrinsic("emit", (const(1),), type=I32)),
    )
    new = single_exit(body, None, Names(["x", "n"]))
    assert len(new) == 1
    assert isinstance(new[0], ir.If)
    assert new[0].cond == cmp(var("x"), "<", var("n"))
    assert not new[0].orelse
