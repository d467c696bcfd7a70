"""Expressions without calls: names, members, subscripts, operators, casts."""

from __future__ import annotations

import re
from dataclasses import replace

from porter import codes, ir
from porter.frontend.lower.bits import read_bits
from porter.frontend.lower.body import FunctionLowering, Untranslatable, expression
from porter.frontend.lower.convert import (
    address_of,
    base_path,
    condition,
    const,
    convert,
    deref,
    to_type,
    typed_value,
    upcast,
    zero,
)
from porter.frontend.lower.effects import assign_expression, increment, select, short_circuit
from porter.frontend.lower.flow.function_pointers import number_of
from porter.frontend.lower.flow.function_types import NUMBER, function_type
from porter.frontend.lower.globals import global_variable, initial_value
from porter.frontend.lower.init import init_list
from porter.frontend.lower.literals import evaluated, tidy
from porter.frontend.lower.symbols import template_symbol
from porter.frontend.lower.types import field_name, is_unnamed, promote
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.ir.printer import type_text

BUILTIN_OBJECTS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

# ---------------------------------------------------------------- names


@expression(CursorKind.DECL_REF_EXPR)
def reference(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    target = c.referenced
    if not c.spelling and (target is None or target.kind not in (CursorKind.PARM_DECL, CursorKind.VAR_DECL)):
        return template_value(fx, c)
    if target is None:
        raise Untranslatable(codes.UNRESOLVED, "name that clang could not resolve")
    return named(fx, c, target)


def template_value(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    """A substituted template value parameter: its constant, named as the source names it."""
    inner = ast.values(c)
    if len(inner) != 1:
        raise Untranslatable(codes.UNRESOLVED, "template argument that is not a value")
    if ast.is_arithmetic(c.type):
        text = fx.kernel.texts.identifier_at(c)
        origin = text if text in fx.template_names else None
        return evaluated(fx, c, origin)
    return convert(fx, fx.expr(inner[0]), inner[0].type, c.type, c)


def named(fx: FunctionLowering, c: Cursor, target: Cursor) -> ir.Expr:
    """The value or place that a resolved name stands for."""
    if target.kind is CursorKind.ENUM_CONSTANT_DECL:
        t = fx.type(c.type)
        return const(typed_value(target.enum_value, t), t, tidy(fx.text(c)))
    if target.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return number_of(fx, target)
    if target.kind is CursorKind.FUNCTION_TEMPLATE:
        raise Untranslatable(codes.FUNCTION_POINTER, f"function {target.spelling} used as a value")
    if target.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
        if target.spelling == "warpSize" and fx.kernel.is_prelude(target):
            return ir.Builtin("warpSize", type=ir.I32)
        if c.type.is_const_qualified() and not c.type.is_volatile_qualified():
            value = ast.evaluate(c)
            if value is not None:
                t = fx.type(c.type)
                return const(typed_value(value, t), t, as_named(fx, c, target))
        place = fx.lookup(target)
        if place is not None:
            return place
        if target.spelling in BUILTIN_OBJECTS and fx.kernel.is_prelude(target):
            t = fx.type(c.type)
            return ir.StructInit(tuple(ir.Builtin(f"{target.spelling}.{axis}", type=ir.U32) for axis in "xyz"), type=t)
        return global_variable(fx, c, target)
    place = fx.lookup(target)  # a structured binding
    if place is not None:
        return place
    place = template_symbol(fx, c, target)
    if place is not None:
        return place
    if target.kind is CursorKind.UNEXPOSED_DECL and not ast.is_arithmetic(c.type):  # variable template
        parts = ast.values(target)
        if parts:
            return initial_value(fx, parts[-1], c.type, target.spelling)
    return evaluated(fx, c, fx.text(c))  # variable template, template parameter


def as_named(fx: FunctionLowering, c: Cursor, target: Cursor) -> str:
    """A constant's name as the source writes it (`std::is_same<T, U>::value`), its plain name inside macros."""
    text = tidy(fx.text(c))
    return text if text and text.endswith(target.spelling) and re.fullmatch(r"[\w:<>,*& ]+", text) else target.spelling


@expression(CursorKind.CXX_THIS_EXPR)
def this_expression(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    place = this_place(fx)
    return ir.AddressOf(place, type=ir.Pointer(place.type))


def this_place(fx: FunctionLowering) -> ir.Expr:
    """The object of the method being lowered; in a lambda, that of the method that holds it."""
    owner: FunctionLowering | None = fx
    while owner is not None and owner.this_class is None:
        owner = owner.parent
    if owner is None or owner.this_class is None:
        raise Untranslatable(codes.UNSUPPORTED, "`this` outside a method")
    if owner is not fx:
        fx.captured.add(owner)
    owner.this_used = True
    return ir.Var("this", type=fx.type(owner.this_class))


# ---------------------------------------------------------------- members


@expression(CursorKind.MEMBER_REF_EXPR)
def member(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    target = c.referenced
    if target is None:
        raise Untranslatable(codes.UNRESOLVED, "member that clang could not resolve")
    if target.kind is not CursorKind.FIELD_DECL:
        return named(fx, c, target)
    base_cursor = member_base(c)
    if base_cursor is not None:
        inner = ast.strip(base_cursor)
        if inner.kind is CursorKind.DECL_REF_EXPR and inner.spelling in BUILTIN_OBJECTS:
            decl = inner.referenced
            if decl is not None and fx.kernel.is_prelude(decl):
                return ir.Builtin(f"{inner.spelling}.{target.spelling}", type=ir.U32)
    base, base_type = object_of(fx, c, base_cursor)
    if isinstance(base, ir.HoleExpr):
        return fx.hole(c, base.code, base.reason)
    return field(fx, base, base_type, target, c)


def member_base(c: Cursor) -> Cursor | None:
    """The object (or pointer) before the dot or arrow; None for an implicit `this`."""
    for k in ast.values(c):
        t = k.type.get_canonical()
        if t.kind is TypeKind.POINTER:
            t = t.get_pointee().get_canonical()
        if t.kind is TypeKind.RECORD:
            return k
        break
    return None


def object_of(fx: FunctionLowering, c: Cursor, base: Cursor | None) -> tuple[ir.Expr, cc.Type]:
    """The object that a member expression looks into, and its C++ type."""
    if base is None:
        place = this_place(fx)
        owner = fx
        while owner.this_class is None and owner.parent is not None:
            owner = owner.parent
        assert owner.this_class is not None
        return place, owner.this_class
    t = base.type.get_canonical()
    if t.kind is TypeKind.POINTER:
        x = fx.value(base)
        return deref(x, t.get_pointee().is_volatile_qualified()), t.get_pointee()
    return fx.expr(base), t


def field(fx: FunctionLowering, base: ir.Expr, base_type: cc.Type, target: Cursor, at: Cursor) -> ir.Expr:
    """`base.target`, through base classes where the field belongs to one."""
    base, base_type = holder(fx, base, base_type, target)
    if target.is_bitfield():
        return read_bits(base, target)
    scalar = fx.kernel.types.scalar_class(base_type)
    if scalar is not None:
        # The storage of half/bf16/fp8 seen as an integer.
        place = fx.as_place(base, at)
        bits = fx.type(target.type)
        pointer = address_of(place, ir.Pointer(scalar))
        return ir.Deref(ir.Cast(pointer, type=ir.Pointer(bits)), type=bits)
    name = field_name(target)
    t = target.type.get_canonical()
    if t.kind in ast.REFERENCES:
        elem = fx.type(t.get_pointee())
        return ir.Deref(ir.Field(base, name, type=ir.Pointer(elem)), type=elem)
    if isinstance(base, ir.StructInit) and isinstance(base.type, ir.Struct):
        for f, v in zip(base.type.fields, base.values, strict=False):
            if f.name == name and isinstance(v, (ir.Const, ir.Builtin)):
                return v
    return ir.Field(base, name, type=fx.type(target.type))


def holder(fx: FunctionLowering, base: ir.Expr, base_type: cc.Type, target: Cursor) -> tuple[ir.Expr, cc.Type]:
    """The base class or unnamed member of an object that holds a field, and its type."""
    owner = target.semantic_parent.type
    if ast.same_type(base_type, owner):
        return base, base_type
    if base_path(base_type, owner) is not None:
        return upcast(fx, base, base_type, owner), owner
    for f in anonymous_path(base_type, target) or ():
        base = ir.Field(base, field_name(f), type=fx.type(f.type))
    return base, base_type


def bit_field(fx: FunctionLowering, c: Cursor) -> tuple[ir.Expr, Cursor] | None:
    """(object, field) of an expression that names a bit-field, else None."""
    c = ast.strip(c)
    target = c.referenced if c.kind is CursorKind.MEMBER_REF_EXPR else None
    if target is None or target.kind is not CursorKind.FIELD_DECL or not target.is_bitfield():
        return None
    base, base_type = object_of(fx, c, member_base(c))
    return fx.as_place(holder(fx, base, base_type, target)[0], c, write=True), target


def anonymous_path(t: cc.Type, target: Cursor) -> list[Cursor] | None:
    """The unnamed members to go through from a class to a member of its anonymous unions and structs."""
    for f in t.get_canonical().get_fields():
        if f == target:
            return []
        if is_unnamed(f) and ast.is_record(f.type):
            rest = anonymous_path(f.type, target)
            if rest is not None:
                return [f, *rest]
    return None


@expression(CursorKind.ARRAY_SUBSCRIPT_EXPR)
def subscript(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    a, b = ast.values(c)
    if b.type.get_canonical().kind is TypeKind.POINTER:  # `3[p]`
        a, b = b, a
    base = fx.value(a) if a.type.get_canonical().kind is TypeKind.POINTER else fx.expr(a)
    if isinstance(base, ir.HoleExpr):
        return replace(base, type=fx.type(c.type))
    index = promoted(fx.value(b))
    pointer_type = a.type.get_canonical()
    volatile = pointer_type.kind is TypeKind.POINTER and pointer_type.get_pointee().is_volatile_qualified()
    if isinstance(base, ir.Decay) and not volatile and isinstance(base.place.type, ir.Array):
        return ir.Index(base.place, index, type=base.place.type.elem)
    elem = fx.type(c.type)
    pointer = ir.PtrAdd(base, index, type=base.type)
    return ir.Deref(pointer, volatile, type=elem)


def promoted(x: ir.Expr) -> ir.Expr:
    """An index after integer promotion, which C++ leaves out for subscripts and pointer arithmetic."""
    return to_type(x, promote(x.type)) if isinstance(x.type, ir.Scalar) else x


# ---------------------------------------------------------------- operators


@expression(CursorKind.PAREN_EXPR)
def parenthesised(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return fx.expr(ast.values(c)[0])


@expression(CursorKind.UNARY_OPERATOR)
def unary(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    op = cc.unary_op(c)
    operand = ast.values(c)[0]
    t = c.type
    if op in ("x++", "x--", "++x", "--x"):
        return increment(fx, c, operand, op, wanted=True)
    if op == "&":
        inner = ast.strip(operand)
        if (
            inner.kind is CursorKind.DECL_REF_EXPR
            and inner.referenced is not None
            and (inner.referenced.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD))
        ):
            return number_of(fx, inner.referenced)
        return address_of(fx.place(operand), fx.type(t))
    x = fx.value(operand)
    if op == "*" and x.type == NUMBER and function_type(operand.type) is not None:
        return x
    if op == "*":
        pointee = operand.type.get_canonical().get_pointee()
        return deref(x, pointee.is_volatile_qualified())
    if op == "+":
        return x
    if op == "!":
        return ir.Unary("!", condition(x), type=ir.BOOL)
    if op in ("-", "~"):
        if op == "-" and isinstance(x, ir.Const) and x.origin is None and not isinstance(x.value, (bool, str)):
            return const(typed_value(-x.value, x.type), x.type)
        return ir.Unary(op, x, type=x.type)
    if op == "__extension__":
        return x
    raise Untranslatable(codes.UNSUPPORTED, f"operator {op}")


@expression(CursorKind.BINARY_OPERATOR)
def binary(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    op = cc.binary_op(c)
    a, b = ast.values(c)
    if op == ",":
        fx.discard(a)
        return fx.expr(b)
    if op == "=":
        return assign_expression(fx, c)
    if op in ("&&", "||"):
        return short_circuit(fx, c, op, a, b)
    x, y = fx.expr(a), fx.expr(b)
    return operation(fx, op, x, y, fx.type(c.type))


def operation(fx: FunctionLowering, op: str, x: ir.Expr, y: ir.Expr, t: ir.Type) -> ir.Expr:
    """`x op y` for operands that C++ has already converted; pointers become PtrAdd, PtrDiff or comparisons."""
    for part in (x, y):
        if isinstance(part, ir.HoleExpr):
            return replace(part, type=t)
    px, py = isinstance(x.type, ir.Pointer), isinstance(y.type, ir.Pointer)
    if px and py:
        if op == "-":
            return ir.PtrDiff(x, y, type=ir.I64)
        if op in COMPARISONS:
            return ir.Binary(op, x, to_type(y, x.type), type=ir.BOOL)
    elif px and op in "+-":
        y = promoted(y)
        if op == "-":
            if isinstance(y, ir.Const) and y.origin is None:
                y = const(-int(y.value), y.type if y.type in (ir.I32, ir.I64) else ir.I64)
            else:
                y = to_type(y, ir.I64) if y.type == ir.U32 else y
                y = ir.Unary("-", y, type=y.type)
        return ir.PtrAdd(x, y, type=x.type)
    elif py and op == "+":
        return ir.PtrAdd(y, promoted(x), type=y.type)
    if not isinstance(x.type, ir.Scalar) or not isinstance(y.type, ir.Scalar):
        raise Untranslatable(codes.UNSUPPORTED, f"operator {op} on {type_text(x.type)} and {type_text(y.type)}")
    return ir.Binary(op, x, y, type=t)


@expression(CursorKind.COMPOUND_ASSIGNMENT_OPERATOR)
def compound_assignment(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return assign_expression(fx, c)


@expression(CursorKind.CONDITIONAL_OPERATOR)
def conditional(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    test, yes, no = ast.values(c)
    return select(fx, c, test, yes, no)


# ---------------------------------------------------------------- casts


@expression(CursorKind.UNEXPOSED_EXPR)
def unexposed(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    inner = ast.values(c)
    if not inner:
        return without_children(fx, c)
    if len(inner) == 1:
        return converted(fx, c, inner[0])
    if len(inner) == 4 and re.search(r"\?\s*:", fx.text(c)):  # GNU a ?: b
        x = fx.expr(inner[0])
        if not isinstance(x, (ir.Var, ir.Const)):
            x = fx.temp(x, "tmp", c)
        y = to_type(fx.expr(inner[3]), x.type)
        return ir.Select(condition(x), x, y, type=x.type)
    raise Untranslatable(codes.UNSUPPORTED, "expression of a kind that libclang does not show")


def without_children(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    """Value initialisation `T()`, type traits, sizeof...(pack): constants. Default arguments are handled at calls."""
    if ast.is_arithmetic(c.type):
        value = ast.evaluate(c)
        if value is not None:
            t = fx.type(c.type)
            text = tidy(fx.text(c))
            plain = text is None or re.fullmatch(r"[\w:<>, ]*(\(\s*\)|\{\s*\})|", text)
            return const(typed_value(value, t), t, None if plain else text)
        raise Untranslatable(codes.UNSUPPORTED, "expression of a kind that libclang does not show")
    return zero(fx.type(c.type))


def converted(fx: FunctionLowering, c: Cursor, inner: Cursor) -> ir.Expr:
    """An implicit cast, or a wrapper that changes nothing."""
    x = fx.expr(inner)
    if c.type.get_canonical().kind in (TypeKind.INVALID, TypeKind.DEPENDENT):
        raise Untranslatable(codes.UNRESOLVED, "expression that clang could not type")
    return convert(fx, x, inner.type, c.type, c)


@expression(CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR)
@expression(CursorKind.CXX_CONST_CAST_EXPR, CursorKind.CXX_REINTERPRET_CAST_EXPR, CursorKind.CXX_ADDRSPACE_CAST_EXPR)
def explicit_cast(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    inner = ast.values(c)
    if not inner:
        return zero(fx.type(c.type))
    source = inner[-1]
    if c.type.get_canonical().kind is TypeKind.VOID:
        fx.discard(source)
        return const(0, ir.VOID)
    if source.kind is CursorKind.INIT_LIST_EXPR:
        return init_list(fx, source, c.type)
    if is_reference_cast(fx, c, source):
        place = fx.place(source)
        to = fx.type(c.type)
        if place.type == to:
            return place
        if not sees_other_bits(c, source) and isinstance(place.type, ir.Struct):
            return convert(fx, place, source.type, c.type, c)
        return deref(ir.Cast(address_of(place, ir.Pointer(place.type)), type=ir.Pointer(to)))
    x = fx.expr(source)
    return convert(fx, x, source.type, c.type, c)


def sees_other_bits(c: Cursor, source: Cursor) -> bool:
    """Whether a reference cast reinterprets: `reinterpret_cast`, or `(T&)x` of a class that T is no relative of."""
    if c.kind is not CursorKind.CSTYLE_CAST_EXPR:
        return c.kind is CursorKind.CXX_REINTERPRET_CAST_EXPR
    a, b = source.type.get_canonical(), c.type.get_canonical()
    return ast.is_record(a) and base_path(a, b) is None and base_path(b, a) is None


_REFERENCE_CAST = re.compile(r"^\s*(?:\(|(?:reinterpret|static|const)_cast\s*<)[^()]*?&&?\s*(?:\)|>\s*\()")


def is_reference_cast(fx: FunctionLowering, c: Cursor, source: Cursor) -> bool:
    """Whether a cast names a reference type: `reinterpret_cast<T&>(x)`, `(T&)x`, `static_cast<T&&>(x)`.

    libclang gives the referee as type only, so the text decides; a reinterpret_cast between two non-pointer types
    can be nothing else.
    """
    if _REFERENCE_CAST.match(fx.text(c)):
        return True
    if c.kind is not CursorKind.CXX_REINTERPRET_CAST_EXPR:
        return False
    kinds = (c.type.get_canonical().kind, source.type.get_canonical().kind)
    return TypeKind.POINTER not in kinds and not ast.same_type(c.type, source.type)


@expression(CursorKind.INIT_LIST_EXPR)
def braces(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return init_list(fx, c, c.type)


@expression(CursorKind.CXX_NEW_EXPR, CursorKind.CXX_DELETE_EXPR)
def heap(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    raise Untranslatable(codes.HEAP_MEMORY, "memory from the heap inside a kernel")
