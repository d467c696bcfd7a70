"""`goto` as structured control flow: a flag that says that the jump was taken, and guards around what it passes over.

A label that stands in the block of the jump, or in one around it, is reached so: forward, what is between jump and
label runs only where the flag is not set, and loops that are left end; backward, what is between label and jump is a
loop that runs again where it is. Jumps into a block stay holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, statement
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.source import Span

_LOOPS = (ir.For, ir.While, ir.DoWhile)


@dataclass(frozen=True)
class Label(ir.Stmt):
    """A label of the block being lowered; gone when the block is finished."""

    name: str


@dataclass(frozen=True)
class Goto(ir.Stmt):
    """A jump whose label has not been met yet; `cuda` is its text."""

    name: str
    cuda: str


@statement(CursorKind.LABEL_STMT)
def label(fx: FunctionLowering, c: Cursor) -> None:
    fx.emit(Label(c.spelling), c)
    for k in ast.values(c):
        fx.stmt(k)


@statement(CursorKind.GOTO_STMT)
def goto(fx: FunctionLowering, c: Cursor) -> None:
    names = [k.spelling for k in c.get_children() if k.kind is CursorKind.LABEL_REF]
    if not names:
        raise Untranslatable(codes.UNSTRUCTURED_CONTROL_FLOW, "goto whose label is not shown")
    fx.emit(Goto(names[0], fx.text(c)), c)


@statement(CursorKind.INDIRECT_GOTO_STMT)
def indirect(fx: FunctionLowering, c: Cursor) -> None:
    raise Untranslatable(codes.UNSTRUCTURED_CONTROL_FLOW, "goto to a computed label")


def resolve(fx: FunctionLowering, stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    """A block's statements without its labels and the jumps to them."""
    while (k := next((i for i, s in enumerate(stmts) if isinstance(s, Label)), None)) is not None:
        at = stmts[k]
        assert isinstance(at, Label)
        before, after = stmts[:k], stmts[k + 1 :]
        first = next((i for i, s in enumerate(before) if _jumps(s, at.name)), None)
        if first is not None:
            before = [*before[:first], *_forward(fx, before[first:], at)]
        last = max((i for i, s in enumerate(after) if _jumps(s, at.name)), default=None)
        if last is not None and _leaves(after[: last + 1]):
            what = f"goto {at.name} makes a loop that break or continue of another one leaves"
            raise Untranslatable(codes.UNSTRUCTURED_CONTROL_FLOW, what)
        if last is not None:
            after = [*_backward(fx, after[: last + 1], after[last + 1 :], at), *after[last + 1 :]]
        stmts = [*before, *after]
    return stmts


def unresolved(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """A function's body with holes for the jumps that are left."""

    def hole(n: ir.Node) -> ir.Node:
        if isinstance(n, Goto):
            return ir.HoleStmt(
                codes.UNSTRUCTURED_CONTROL_FLOW, n.cuda, f"goto {n.name} jumps into a block", span=n.span
            )
        return n

    return ir.rewrite(body, hole) if any(isinstance(n, Goto) for n in ir.walk(body)) else body


def _jumps(node: ir.Node | Sequence[ir.Stmt], name: str) -> bool:
    roots = (node,) if isinstance(node, ir.Node) else tuple(node)
    return any(isinstance(n, Goto) and n.name == name for n in ir.walk(roots))


def _forward(fx: FunctionLowering, region: list[ir.Stmt], at: Label) -> list[ir.Stmt]:
    # nothing that has an initialiser is jumped over, C++ says: what is declared here may be used behind the label
    names = {s.name for s in region if isinstance(s, ir.Decl) and s.init is None}
    hoisted = [s for s in region if isinstance(s, ir.SharedDecl) or (isinstance(s, ir.Decl) and s.name in names)]
    flag, declared = _flag(fx, at)
    rest = [s for s in region if s not in hoisted]
    return [*hoisted, declared, *_guarded(rest, at.name, flag, False)]


def _backward(fx: FunctionLowering, region: list[ir.Stmt], behind: Sequence[ir.Stmt], at: Label) -> list[ir.Stmt]:
    used = {n.name for n in ir.walk(tuple(behind)) if isinstance(n, ir.Var)}
    hoisted: list[ir.Stmt] = []
    body: list[ir.Stmt] = []
    for s in region:
        if isinstance(s, ir.SharedDecl):
            hoisted.append(s)
        elif isinstance(s, ir.Decl) and s.name in used:
            if s.ref or not isinstance(s.type, ir.Scalar | ir.Pointer):
                raise Untranslatable(
                    codes.UNSTRUCTURED_CONTROL_FLOW, f"goto {at.name} goes back before the declaration of {s.name}"
                )
            hoisted.append(replace(s, init=None, is_const=False, is_constexpr=False))
            if s.init is not None:
                body.append(ir.Assign(ir.Var(s.name, type=s.type, span=s.span), s.init, span=s.span))
        else:
            body.append(s)
    flag, declared = _flag(fx, at)
    again = [ir.Assign(flag, _truth(False, at.span), span=at.span), *_guarded(body, at.name, flag, False)]
    return [*hoisted, declared, ir.DoWhile(tuple(again), flag, span=at.span)]


def _flag(fx: FunctionLowering, at: Label) -> tuple[ir.Var, ir.Decl]:
    name = fx.fresh(f"to_{at.name}")
    declared = ir.Decl(name, ir.BOOL, _truth(False, at.span), comment=at.comment, span=at.span)
    return ir.Var(name, type=ir.BOOL, span=at.span), declared


def _truth(value: bool, span: Span) -> ir.Const:
    return ir.Const(value, type=ir.BOOL, span=span)


def _leaves(stmts: Iterable[ir.Stmt]) -> bool:
    """Whether a break or continue among the statements belongs to a loop around them."""
    for s in stmts:
        if isinstance(s, ir.Break | ir.Continue):
            return True
        if not isinstance(s, _LOOPS) and _leaves(n for n in ir.children(s) if isinstance(n, ir.Stmt)):
            return True
    return False


def _guarded(stmts: Sequence[ir.Stmt], name: str, flag: ir.Var, in_loop: bool) -> list[ir.Stmt]:
    """The statements with the flag set for each jump to the label, and what follows a jump left out where it is set.

    `in_loop`: they are inside of a loop that the jump leaves, by a break.
    """
    out: list[ir.Stmt] = []
    for i, s in enumerate(stmts):
        if not _jumps(s, name):
            out.append(s)
            continue
        if isinstance(s, Goto):
            out.append(ir.Assign(flag, _truth(True, s.span), comment=s.comment, span=s.span))
            return [*out, ir.Break(span=s.span)] if in_loop else out
        out.append(_inside(s, name, flag, in_loop))
        if in_loop and isinstance(s, (*_LOOPS, ir.Switch)):
            out.append(ir.If(flag, (ir.Break(span=s.span),), span=s.span))
        elif not in_loop and (rest := _guarded(stmts[i + 1 :], name, flag, False)):
            return [*out, ir.If(ir.Unary("!", flag, type=ir.BOOL, span=rest[0].span), tuple(rest), span=rest[0].span)]
        elif not in_loop:
            return out
    return out


def _inside(s: ir.Stmt, name: str, flag: ir.Var, in_loop: bool) -> ir.Stmt:
    """A statement around jumps with them guarded; inside a switch no break is a loop's."""

    def arm(stmts: tuple[ir.Stmt, ...], loop: bool) -> tuple[ir.Stmt, ...]:
        return tuple(_guarded(stmts, name, flag, loop)) if _jumps(stmts, name) else stmts

    if isinstance(s, ir.If):
        return replace(s, then=arm(s.then, in_loop), orelse=arm(s.orelse, in_loop))
    if isinstance(s, ir.Scope):
        return replace(s, body=arm(s.body, in_loop))
    if isinstance(s, _LOOPS):
        return replace(s, body=arm(s.body, True))
    if isinstance(s, ir.Switch):
        return replace(s, cases=tuple((values, arm(body, False)) for values, body in s.cases))
    raise Untranslatable(codes.UNSTRUCTURED_CONTROL_FLOW, f"goto {name} out of a statement of another kind")
