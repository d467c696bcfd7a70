"""Functors, lambdas and functions handed to library algorithms (cub, cooperative groups)."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.function import lower_function
from porter.frontend.lower.library.half import referee
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType


def function_argument(fx: FunctionLowering, a: Cursor, before: list[ir.Expr], callee: Cursor | None) -> ir.Expr | None:
    """An argument that is something to call, as Intrinsic `function` with the function's key in targs; else None.

    `before` are the arguments before it: their types say which instance of a generic functor is meant, unless the
    declaration of `callee`, the library function, calls it.
    """
    f = named_function(a)
    if f is not None and not fx.kernel.is_prelude(f):
        return ir.Intrinsic("function", (), (lower_function(fx, ast.definition(f)).key,), type=ir.VOID)
    return functor(fx, a, before, callee) if is_functor(fx, a.type) else None


def is_functor(fx: FunctionLowering, t: ClangType) -> bool:
    """A user's functor or a lambda, handed to a library algorithm."""
    t = referee(t)
    if ast.is_closure(t):
        return True
    if t.kind is not TypeKind.RECORD or fx.kernel.types.scalar_class(t) is not None:
        return False
    decl = ast.definition(t.get_declaration())
    return not fx.kernel.is_prelude(decl) and call_operator(decl) is not None


def named_function(a: Cursor) -> Cursor | None:
    """The function that an argument names (`reduce(group, x, my_max)`)."""
    while a.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.UNARY_OPERATOR):
        inner = ast.values(a)
        if len(inner) != 1:
            return None
        a = inner[0]
    f = a.referenced if a.kind is CursorKind.DECL_REF_EXPR else None
    return f if f is not None and f.kind is CursorKind.FUNCTION_DECL else None


def call_operator(record: Cursor) -> Cursor | None:
    """The operator() of a class; of an instance of a class template, whose members libclang does not show, the
    template's."""
    for r in (record, cc.specialised_template(record)):
        for k in r.get_children() if r is not None else ():
            if k.kind in (CursorKind.CXX_METHOD, CursorKind.FUNCTION_TEMPLATE) and k.spelling == "operator()":
                return k
    return None


def functor(fx: FunctionLowering, a: Cursor, others: list[ir.Expr], callee: Cursor | None) -> ir.Expr:
    """A functor argument: Intrinsic `function` with the key of its operator() in targs and the object as argument.

    `others` are the arguments before it: they say which instance of a generic operator() is meant.
    """
    value = fx.expr(a)
    record = ast.definition(referee(a.type).get_declaration())
    op = call_operator(record)
    if op is not None and (op.kind is CursorKind.FUNCTION_TEMPLATE or op.semantic_parent != record):
        f = _called_in(fx, op, callee) or _instance_for(fx, op, others)
        if f is None:
            raise Untranslatable(codes.UNSUPPORTED_FUNCTOR, "generic functor handed to a library algorithm")
    elif op is not None:
        f = lower_function(fx, ast.definition(op))
    else:
        raise Untranslatable(codes.UNSUPPORTED_FUNCTOR, "functor without a call operator")
    fx.captured |= fx.kernel.captured.get(f.key, set()) - {fx}
    takes_object = bool(f.params) and f.params[0].name == "this"
    objects = (fx.as_place(value, a),) if takes_object else ()
    return ir.Intrinsic("function", objects, (f.key,), type=value.type)


def _called_in(fx: FunctionLowering, op: Cursor, callee: Cursor | None) -> ir.Function | None:
    """The instance of a generic operator() that the body of a library function in porter's headers calls."""
    for x in cc.walk(ast.definition(callee)) if callee is not None else ():
        target = x.referenced if x.kind is CursorKind.DECL_REF_EXPR and x.spelling == "operator()" else None
        if target is not None and cc.specialised_template(target) == op:
            return lower_function(fx, ast.definition(target))
    return None


def _instance_for(fx: FunctionLowering, op: Cursor, others: list[ir.Expr]) -> ir.Function | None:
    """The instance of a generic operator() that the kernel calls itself with values of the types at hand."""
    types = [x.type for x in others]
    for cursor, key in fx.kernel.keys.items():
        f = fx.kernel.functions.get(key)
        if f is None or cursor.specialized_template is None or cursor.specialized_template != op:
            continue
        if any(p.type in types for p in f.params if p.name != "this"):
            return f
    return None


def sum_of_records(fx: FunctionLowering, name: str, args: list[Cursor]) -> ir.Expr | None:
    """The user's operator+ that cub's sums apply to values of a user class, as a `function` argument."""
    if not name.startswith("cub::") or not name.endswith("Sum") or not args:
        return None
    t = referee(args[0].type)
    if t.kind is not TypeKind.RECORD or fx.kernel.types.scalar_class(t) is not None:
        return None
    record = ast.definition(t.get_declaration())
    if fx.kernel.is_prelude(record):
        return None
    for k in record.get_children():
        if k.kind is CursorKind.CXX_METHOD and k.spelling == "operator+" and ast.body_of(ast.definition(k)) is not None:
            return ir.Intrinsic("function", (), (lower_function(fx, ast.definition(k)).key,), type=ir.VOID)
    raise Untranslatable(codes.UNSUPPORTED_FUNCTOR, "sum of a class whose operator+ has no instantiated body")
