"""Lambdas: closures are not values in the IR. Their bodies are functions whose free variables are the holder's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, expression
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.clang_compat import Type as ClangType


@dataclass
class Closure:
    """A lambda expression seen in `holder`; `copies` maps variables captured by value to the holder's copy."""

    holder: FunctionLowering
    cursor: Cursor
    copies: dict[Cursor, ir.Expr] = field(default_factory=dict)


def closure_record(t: ClangType) -> Cursor:
    t = t.get_canonical()
    if t.kind in ast.REFERENCES:
        t = t.get_pointee().get_canonical()
    return t.get_declaration()


@expression(CursorKind.LAMBDA_EXPR)
def lambda_expression(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    """Remember the closure. Its value is an empty struct that nothing reads."""
    record = closure_record(c.type)
    if not fx.guest and not fx.names_reserved:
        fx.pool.reserve(_declared_names(fx.cursor))
        fx.names_reserved = True
    closure = Closure(fx, c)
    fx.kernel.lambdas[record] = closure
    for variable, init, by_copy in captures(fx, c):
        if init is not None and fx.lookup(variable) is None:
            # [x = expr]
            value = fx.expr(init)
            name = fx.fresh(variable.spelling)
            fx.emit(ir.Decl(name, value.type, value, is_const=False), c)
            closure.copies[variable] = ir.Var(name, type=value.type)
        elif by_copy and _may_change(fx, variable):
            place = fx.lookup(variable)
            if place is not None:
                name = fx.fresh(f"{variable.spelling}_copy")
                fx.emit(ir.Decl(name, place.type, place), c)
                closure.copies[variable] = ir.Var(name, type=place.type)
    return ir.StructInit((), type=fx.type(c.type))


def _declared_names(c: Cursor) -> list[str]:
    """Names of the variables that a body declares itself, lambdas left out."""
    out: list[str] = []
    for k in c.get_children():
        if k.kind is CursorKind.LAMBDA_EXPR:
            continue
        if k.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL) and k.spelling:
            out.append(k.spelling)
        out += _declared_names(k)
    return out


def captures(fx: FunctionLowering, c: Cursor) -> list[tuple[Cursor, Cursor | None, bool]]:
    """(variable, initialiser of an init-capture, by copy) for each capture that libclang shows.

    `[&]` shows none; `[=]` shows a DECL_REF_EXPR at the `=`; written names are VARIABLE_REFs, by reference when `&`
    stands before them.
    """
    out: list[tuple[Cursor, Cursor | None, bool]] = []
    start = c.extent.start
    data = fx.kernel.texts.data(start.file.name) if start.file is not None else b""
    for k in c.get_children():
        if k.kind in (CursorKind.PARM_DECL, CursorKind.COMPOUND_STMT):
            break
        if k.kind is CursorKind.VARIABLE_REF and k.referenced is not None:
            at = k.extent.start.offset
            by_ref = data[max(0, at - 16) : at].rstrip().endswith(b"&")
            init = ast.initializer(k.referenced) if fx.lookup(k.referenced) is None else None
            out.append((k.referenced, init, not by_ref))
        elif k.kind is CursorKind.DECL_REF_EXPR and k.referenced is not None:
            at = k.extent.start.offset
            if data[at : at + 1] == b"=":
                out.append((k.referenced, None, True))
        elif k.kind is CursorKind.CXX_THIS_EXPR and b"*this" in data[start.offset : k.extent.end.offset]:
            raise Untranslatable(codes.UNSUPPORTED, "capture of *this by value")
    return out


def _may_change(fx: FunctionLowering, variable: Cursor) -> bool:
    """Whether a captured variable is written anywhere in the body that declares it."""
    if variable.type.is_const_qualified():
        return False
    owner: FunctionLowering | None = fx
    while owner is not None and variable not in owner.decls:
        owner = owner.parent
    return owner is None or variable in written_variables(owner)


def written_variables(fx: FunctionLowering) -> set[Cursor]:
    """Variables of a body that are assigned, incremented, passed by reference, or have their address taken."""
    if fx.written_variables is not None:
        return fx.written_variables
    written: set[Cursor] = set()

    def root(c: Cursor) -> None:
        c = ast.strip(c)
        while c.kind in (CursorKind.ARRAY_SUBSCRIPT_EXPR, CursorKind.MEMBER_REF_EXPR, CursorKind.UNEXPOSED_EXPR):
            inner = ast.values(c)
            if not inner:
                return
            c = ast.strip(inner[0])
        if c.kind is CursorKind.DECL_REF_EXPR and c.referenced is not None:
            written.add(c.referenced)

    def visit(c: Cursor) -> None:
        kind = c.kind
        if (
            kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
            or (kind is CursorKind.BINARY_OPERATOR and cc.binary_op(c) == "=")
            or (kind is CursorKind.UNARY_OPERATOR and cc.unary_op(c) in ("x++", "x--", "++x", "--x", "&"))
        ):
            root(ast.values(c)[0])
        elif kind is CursorKind.CALL_EXPR and c.referenced is not None:
            _written_by_call(c, root)
        elif kind is CursorKind.VAR_DECL and c.type.get_canonical().kind in ast.REFERENCES:
            init = ast.initializer(c)
            if init is not None and not c.type.get_canonical().get_pointee().is_const_qualified():
                root(init)
        elif kind is CursorKind.ASM_STMT:
            for k in ast.values(c):
                root(k)
        for k in c.get_children():
            visit(k)

    visit(fx.cursor)
    fx.written_variables = written
    return written


def _written_by_call(c: Cursor, root: Callable[[Cursor], None]) -> None:
    callee = c.referenced
    args = ast.arguments(c)
    params = list(callee.type.get_canonical().argument_types()) if callee.type.kind.name != "INVALID" else []
    if callee.kind is CursorKind.CXX_METHOD and not callee.is_const_method() and not callee.is_static_method():
        inner = ast.values(c)
        if len(args) == len(params) + 1:  # operator call: the object is the first argument
            root(args[0])
            args = args[1:]
        elif inner and inner[0].kind is CursorKind.MEMBER_REF_EXPR and ast.values(inner[0]):
            root(ast.values(inner[0])[0])
    elif len(args) == len(params) + 1:
        args = args[1:]
    for a, p in zip(args, params, strict=False):
        if p.kind in ast.REFERENCES and not p.get_pointee().is_const_qualified():
            root(a)
