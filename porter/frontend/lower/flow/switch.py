"""switch: fallthrough expanded, the breaks that end a case removed."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, statement
from porter.frontend.lower.convert import typed_value
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.ir.control_flow import always_leaves


@statement(CursorKind.SWITCH_STMT)
def switch_statement(fx: FunctionLowering, c: Cursor) -> None:
    parts = [k for k in c.get_children() if k.kind.is_expression() or k.kind.is_statement()]
    if parts and parts[0].kind is CursorKind.DECL_STMT:
        fx.stmt(parts.pop(0))
    value = fx.expr(parts[0])
    sections = _sections(fx, parts[-1])
    bodies: list[list[ir.Stmt]] = []
    for _, cursors in sections:
        with fx.collect() as out:
            for k in cursors:
                fx.stmt(k)
        bodies.append(out)
    cases: list[tuple[tuple[int, ...] | None, tuple[ir.Stmt, ...]]] = []
    for i, (labels, _) in enumerate(sections):
        joined: list[ir.Stmt] = []
        for later in bodies[i:]:
            joined += later
            if always_leaves(joined):
                break
        body = tuple(_without_break(joined))
        numbers = tuple(v for v in labels if v is not None)
        if None in labels:
            if numbers:
                cases.append((numbers, body))
            cases.append((None, body))
        else:
            cases.append((numbers, body))
    fx.emit(ir.Switch(value, tuple(cases)), c)


def _sections(fx: FunctionLowering, body: Cursor) -> list[tuple[list[int | None], list[Cursor]]]:
    """(labels, statements) in order; None is default. Declarations before the first label are not allowed."""
    out: list[tuple[list[int | None], list[Cursor]]] = []
    children = list(body.get_children()) if body.kind is CursorKind.COMPOUND_STMT else [body]
    for k in children:
        labels: list[int | None] = []
        while k.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
            inner = [x for x in k.get_children() if x.kind.is_expression() or x.kind.is_statement()]
            if k.kind is CursorKind.CASE_STMT:
                value = ast.evaluate(inner[0])
                if value is None or len(inner) > 2:
                    raise Untranslatable(codes.UNUSUAL_SWITCH, "case label that is not one constant")
                labels.append(int(typed_value(value, fx.type(inner[0].type))))
            else:
                labels.append(None)
            if not inner or (k.kind is CursorKind.CASE_STMT and len(inner) < 2):
                raise Untranslatable(codes.UNUSUAL_SWITCH, "case label without a statement")
            k = inner[-1]
        if labels:
            out.append((labels, []))
        if not out:
            if k.kind is CursorKind.DECL_STMT:
                fx.stmt(k)
                continue
            raise Untranslatable(codes.UNUSUAL_SWITCH, "statement before the first case label")
        out[-1][1].append(k)
    return out


def _has_break(s: ir.Stmt) -> bool:
    """Whether a break of the enclosing switch stands in the statement."""
    if isinstance(s, ir.Break):
        return True
    if isinstance(s, ir.If):
        return any(_has_break(x) for x in (*s.then, *s.orelse))
    if isinstance(s, ir.Scope):
        return any(_has_break(x) for x in s.body)
    return False


def _without_break(body: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    """The same statements with no break: what follows a conditional break moves into the other branch."""
    out: list[ir.Stmt] = []
    for i, s in enumerate(body):
        if isinstance(s, ir.Break):
            return out
        if not _has_break(s):
            out.append(s)
            if always_leaves([s]):
                return out
            continue
        rest = list(body[i + 1 :])
        if isinstance(s, ir.Scope):
            if always_leaves(s.body):
                out.append(ir.Scope(tuple(_without_break(s.body)), span=s.span, comment=s.comment))
                return out
            return [*out, *_without_break([*s.body, *rest])]
        assert isinstance(s, ir.If)
        then = _without_break([*s.then, *rest])
        orelse = _without_break([*s.orelse, *rest])
        out.append(ir.If(s.cond, tuple(then), tuple(orelse), s.is_constexpr, s.taken, span=s.span, comment=s.comment))
        return out
    return out
