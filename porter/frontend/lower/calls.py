"""Calls: which function a call means, its arguments, and the user's functions lowered into the kernel's table."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import Endless, FunctionLowering, Untranslatable, expression
from porter.frontend.lower.construct import construct
from porter.frontend.lower.convert import base_path, const, convert, to_type, typed_value, upcast
from porter.frontend.lower.effects import is_plain_copy
from porter.frontend.lower.expressions import member_base, object_of
from porter.frontend.lower.flow.function_pointers import call_through, called_result
from porter.frontend.lower.flow.recursion import constant_arguments, is_recursive
from porter.frontend.lower.function import lower_function
from porter.frontend.lower.init import converted_item, init_list
from porter.frontend.lower.library.calls import library_call
from porter.frontend.lower.library.groups import group_arguments
from porter.frontend.lower.literals import tidy
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind

METHODS = (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION)
FUNCTIONS = (CursorKind.FUNCTION_DECL, *METHODS)


@expression(CursorKind.CALL_EXPR)
def call_expression(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return lower_call(fx, c)


def lower_call(fx: FunctionLowering, c: Cursor, root: bool = False) -> ir.Expr:
    """A call. User calls that change memory are kept in a temporary unless they are the root of a statement."""
    callee = c.referenced
    if callee is not None and callee.kind is CursorKind.CONSTRUCTOR:
        value = construct(fx, c)
        if value is None:  # `T x;` of a scalar class: uninitialised
            name = fx.fresh("obj")
            fx.emit(ir.Decl(name, fx.type(c.type)), c)
            return ir.Var(name, type=fx.type(c.type))
        return value
    if ast.is_arithmetic(c.type):
        value_known = ast.evaluate(c)
        if value_known is not None:
            t = fx.type(c.type)
            return const(typed_value(value_known, t), t, tidy(fx.text(c)))
    if called_result(c):  # libclang names the function that gave the pointer
        return call_through(fx, c)
    if callee is None or callee.kind not in FUNCTIONS:
        callee = function_argument(c)
        if callee is None:
            if c.type.get_canonical().kind in (TypeKind.DEPENDENT, TypeKind.INVALID, TypeKind.OVERLOAD):
                raise Untranslatable(codes.UNRESOLVED, "call that clang could not resolve")
            return call_through(fx, c)
    obj, args = split_object(c, callee)
    if is_library(fx, callee):
        return library_call(fx, c, callee, obj, args, root)
    place = object_place(fx, c, callee, obj) if takes_this(callee) else None
    return user_call(fx, ast.definition(callee), place, args, c, root)


def is_library(fx: FunctionLowering, callee: Cursor) -> bool:
    if callee.spelling.startswith("__builtin_") and ast.body_of(ast.definition(callee)) is None:
        return True  # clang declares its own functions where they are first used
    return fx.kernel.is_prelude(callee)


def function_argument(c: Cursor) -> Cursor | None:
    """The function that a template argument (`template <float (*FN)(float)>`) stands for."""
    heads = ast.values(c)
    if not heads:
        return None
    for k in heads[0].walk_preorder():
        if k.kind is CursorKind.DECL_REF_EXPR and not k.spelling:
            for inner in k.walk_preorder():
                f = inner.referenced if inner.kind is CursorKind.DECL_REF_EXPR and inner.spelling else None
                if f is not None and f.kind in FUNCTIONS:
                    return f
    return None


def takes_this(callee: Cursor) -> bool:
    return callee.kind in METHODS and not callee.is_static_method()


def split_object(c: Cursor, callee: Cursor) -> tuple[Cursor | None, list[Cursor]]:
    """The object of a method call (None when implicit or none) and the arguments."""
    args = ast.arguments(c)
    if callee.kind not in METHODS:
        return None, args
    heads = ast.values(c)
    head = heads[0] if heads else None
    while head is not None and head.kind is CursorKind.UNEXPOSED_EXPR and len(ast.values(head)) == 1:
        head = ast.values(head)[0]  # a static method called on an object decays to a pointer first
    if head is not None and head.kind is CursorKind.MEMBER_REF_EXPR and same_function(head.referenced, callee):
        return head, args
    if callee.is_static_method():
        # `f(x)` of a static method; an operator call passes the object first all the same.
        return None, args[1:] if len(args) > len(list(callee.get_arguments())) else args
    return (args[0], args[1:]) if args else (None, args)


def same_function(a: Cursor | None, b: Cursor) -> bool:
    return a is not None and (a == b or a.canonical == b.canonical)


def object_place(fx: FunctionLowering, c: Cursor, callee: Cursor, obj: Cursor | None) -> ir.Expr | None:
    """The place of the object of a method call; None for a closure, which is no value."""
    record = callee.semantic_parent.type
    if ast.is_closure(record):
        if obj is not None:
            target = member_base(obj) if obj.kind is CursorKind.MEMBER_REF_EXPR else obj
            if target is not None:
                fx.expr(target)  # registers a lambda that is called where it is written
        return None
    write = callee.kind is CursorKind.CXX_METHOD and not callee.is_const_method()
    if obj is not None and obj.kind is CursorKind.MEMBER_REF_EXPR and same_function(obj.referenced, callee):
        place, place_type = object_of(fx, obj, member_base(obj))
        at = obj
    elif obj is not None:
        place, place_type, at = fx.expr(obj), obj.type.get_canonical(), obj
    else:
        raise Untranslatable(codes.UNSUPPORTED, "method call without an object")
    if not ast.same_type(place_type, record) and base_path(place_type, record) is not None:
        place = upcast(fx, place, place_type, record.get_canonical())
    return fx.as_place(place, at, write)


# ---------------------------------------------------------------- user functions


def user_call(
    fx: FunctionLowering,
    callee: Cursor,
    this: ir.Expr | None,
    args: list[Cursor],
    at: Cursor,
    root: bool = False,
) -> ir.Expr:
    """A call of a function with a body: the function is lowered first, then the arguments are bound."""
    if is_plain_copy(callee) and this is not None and args:
        return defaulted_assignment(fx, callee, this, args[0], at)
    if ast.body_of(callee) is None:
        raise Untranslatable(codes.NO_BODY, f"function {callee.spelling} has no body in the sources")
    if callee.kind is CursorKind.CXX_METHOD and callee.is_virtual_method():
        raise Untranslatable(codes.VIRTUAL_CALL, f"virtual method {callee.spelling}")
    params = [p for p in callee.get_arguments() if p is not None]
    for p, a in zip(params, args, strict=False):
        if ast.is_closure(p.type):
            fx.expr(a)  # registers the lambda before the function that calls it is lowered
    constants = constant_arguments(fx, callee, args) if is_recursive(fx.kernel, callee) else ()
    groups = group_arguments(fx, callee, args)
    try:
        function = lower_function(fx, callee, (*constants, *groups))
    except Endless:
        if fx.folds or not constants:
            raise
        constants = ()  # its own body then has the hole, where it calls itself
        function = lower_function(fx, callee, groups)
    bound: list[ir.Expr] = []
    formal = list(function.params)
    if formal and formal[0].name == "this":
        if this is None:
            raise Untranslatable(codes.UNSUPPORTED, f"{callee.spelling} needs an object")
        bound.append(this)
        formal = formal[1:]
    fixed = dict(constants)
    wanted = [p for p in params if not ast.is_closure(p.type) and p not in fixed]
    given = {p: a for p, a in zip(params, args, strict=False)}
    kinds = dict(groups)
    for f, p in zip(formal, wanted, strict=True):
        if p in kinds:  # a group carries nothing
            group = ir.StructInit((), type=f.type)
            bound.append(fx.as_place(group, at) if f.by_ref else group)
        else:
            bound.append(argument(fx, f, p, given.get(p), at))
    fx.captured |= fx.kernel.captured.get(function.key, set()) - {fx}
    call = ir.Call(function.key, tuple(bound), type=function.ret)
    if root or not fx.kernel.impure[function.key]:
        return call
    if function.ret == ir.VOID:
        fx.emit(ir.ExprStmt(call), at)
        return const(0, ir.VOID)
    return fx.temp(call, f"{function.name.split('::')[-1].lstrip('_')}_result", at, ref=function.ret_ref)


def argument(fx: FunctionLowering, formal: ir.FunctionParam, p: Cursor, a: Cursor | None, at: Cursor) -> ir.Expr:
    """One argument: a place for a reference, else a value of the parameter's type."""
    if a is None or ast.is_default_argument(a):
        x = default_argument(fx, p, a)
        return fx.as_place(x, at) if formal.by_ref else to_type(x, formal.type)
    if formal.by_ref:
        return fx.place(a, write=not formal.const and p.type.get_canonical().kind is TypeKind.LVALUEREFERENCE)
    kind = p.type.get_canonical().kind
    if kind in ast.REFERENCES:
        return fx.expr(a)
    if kind in (TypeKind.INCOMPLETEARRAY, TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY):
        return to_type(fx.expr(a), formal.type)  # `T a[]` as a parameter is a pointer
    return convert(fx, fx.expr(a), a.type, p.type, a)


def default_argument(fx: FunctionLowering, p: Cursor, a: Cursor | None) -> ir.Expr:
    t = fx.type(p.type)
    if a is not None:
        value = ast.evaluate(a)
        if value is not None:
            return const(typed_value(value, t), t)
    parts = ast.values(p)
    if parts:
        if parts[-1].kind is CursorKind.INIT_LIST_EXPR:
            return init_list(fx, parts[-1], p.type)
        return converted_item(fx, parts[-1], p.type)
    raise Untranslatable(codes.UNSUPPORTED, f"default argument of {p.spelling}")


def defaulted_assignment(fx: FunctionLowering, callee: Cursor, this: ir.Expr, value: Cursor, at: Cursor) -> ir.Expr:
    """`a = b` of a class without an operator= of its own."""
    x = convert(fx, fx.root(value), value.type, callee.semantic_parent.type, value)
    fx.emit(ir.Assign(this, x), at)
    return this
