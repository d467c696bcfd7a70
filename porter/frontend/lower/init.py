"""Initialisation: brace lists (with brace elision), member defaults, default and value initialisation."""

from __future__ import annotations

import re

from porter import codes, ir
from porter.frontend.lower.bits import combined, in_storage
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.convert import const, convert, to_type, upcast, zero
from porter.frontend.lower.types import bits_of, field_name
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType


def init_list(fx: FunctionLowering, c: Cursor, t: ClangType) -> ir.Expr:
    """`{a, b, ...}` as a value of type t. libclang shows the list as written: conversions are added here."""
    return _from_list(fx, c, t.get_canonical())


def _from_list(fx: FunctionLowering, c: Cursor, t: ClangType) -> ir.Expr:
    items = ast.values(c)
    it = fx.type(t)
    if isinstance(it, (ir.Scalar, ir.Pointer)):
        if not items:
            return zero(it)
        return converted_item(fx, items[0], t)
    if t.kind is TypeKind.RECORD and len(items) == 1 and ast.same_type(items[0].type, t):
        return fx.expr(items[0])
    if t.kind is TypeKind.RECORD and any(_designated(k) is not None for k in items):
        return _designated_list(fx, c, t, items)
    rest = list(items)
    value = _take_aggregate(fx, rest, t, c)
    if rest:
        raise Untranslatable(codes.UNSUPPORTED, "initialiser list with more values than members")
    return value


def _take(fx: FunctionLowering, items: list[Cursor], t: ClangType, at: Cursor, member: Cursor | None = None) -> ir.Expr:
    """The value of one member, consuming as many items as it needs (C++ brace elision)."""
    t = t.get_canonical()
    if not items:
        if member is not None:
            default = default_member_value(fx, member)
            if default is not None:
                return default
        return value_initialised(fx, t)
    head = items[0]
    if head.kind is CursorKind.INIT_LIST_EXPR:
        items.pop(0)
        return _from_list(fx, head, t)
    it = fx.type(t)
    if isinstance(it, (ir.Scalar, ir.Pointer)) or ast.same_type(head.type, t):
        items.pop(0)
        return converted_item(fx, head, t)
    if head.kind is CursorKind.STRING_LITERAL:
        raise Untranslatable(codes.UNSUPPORTED_TYPE, "character array from a string")
    return _take_aggregate(fx, items, t, at)


def _take_aggregate(fx: FunctionLowering, items: list[Cursor], t: ClangType, at: Cursor) -> ir.Expr:
    it = fx.type(t)
    if isinstance(it, ir.Array):
        elem = t.get_array_element_type()
        values: list[ir.Expr] = []
        while len(values) < int(it.length):
            if not items:
                values += [value_initialised(fx, elem)] * (int(it.length) - len(values))
                break
            values.append(_take(fx, items, elem, at))
        return ir.StructInit(tuple(values), type=it)
    if isinstance(it, ir.Struct):
        if it.is_union:
            return _union_value(fx, items, t, it, at)
        out: list[ir.Expr] = []
        for base in t.get_bases():
            base_type = fx.type(base.type)
            value = _take(fx, items, base.type, at)
            if isinstance(base_type, ir.Struct) and (base_type.fields or base_type.size > 1):
                out.append(value)
        fields = [f for f in t.get_fields() if f.spelling or not f.is_bitfield()]
        out += with_storage([(f, _take(fx, items, f.type, at, f)) for f in fields])
        return ir.StructInit(tuple(out), type=it)
    raise Untranslatable(codes.UNSUPPORTED, f"initialiser list for {it}")


def _union_value(fx: FunctionLowering, items: list[Cursor], t: ClangType, it: ir.Struct, at: Cursor) -> ir.Expr:
    name = fx.fresh("u")
    result = ir.Var(name, type=it)
    fx.emit(ir.Decl(name, it), at)
    first = next(iter(t.get_fields()), None)
    if first is not None:
        value = _take(fx, items, first.type, at, first)
        fx.emit(ir.Assign(ir.Field(result, field_name(first, 0), type=value.type), value), at)
    return result


def _designated(item: Cursor) -> Cursor | None:
    """The field that `.name = value` names."""
    if item.kind is not CursorKind.UNEXPOSED_EXPR:
        return None
    for k in item.get_children():
        if k.kind is CursorKind.MEMBER_REF:
            return k.referenced
    return None


def _designated_list(fx: FunctionLowering, c: Cursor, t: ClangType, items: list[Cursor]) -> ir.Expr:
    it = fx.type(t)
    given: dict[str, Cursor] = {}
    for k in items:
        f = _designated(k)
        if f is None:
            raise Untranslatable(codes.UNSUPPORTED, "initialiser list that mixes named and plain values")
        given[f.spelling] = k
    values: list[tuple[Cursor, ir.Expr]] = []
    for f in t.get_fields():
        item = given.get(f.spelling)
        source = [ast.values(item)[-1]] if item is not None else []
        values.append((f, _take(fx, source, f.type, c, f)))
    return ir.StructInit(tuple(with_storage(values)), type=it)


def with_storage(values: list[tuple[Cursor, ir.Expr]]) -> list[ir.Expr]:
    """One value an IR member from one a field: bit-fields that share storage are put together."""
    out: list[ir.Expr] = []
    at: dict[str, int] = {}
    for f, value in values:
        if not f.is_bitfield():
            out.append(value)
            continue
        name, bits = bits_of(f).member, in_storage(value, f)
        if name in at:
            out[at[name]] = combined(out[at[name]], bits)
        else:
            at[name] = len(out)
            out.append(bits)
    return out


def converted_item(fx: FunctionLowering, item: Cursor, t: ClangType) -> ir.Expr:
    """An initialiser converted to the type of what it initialises."""
    x = fx.root(item) if ast.same_type(item.type, t) else fx.expr(item)
    if ast.is_record(item.type) and not ast.is_record(t):
        # A class with a conversion operator inside a list: libclang shows no call. half/bf16/fp8 convert by value.
        if fx.kernel.types.scalar_class(item.type) is None:
            raise Untranslatable(codes.UNSUPPORTED, "user conversion inside an initialiser list")
        return to_type(x, fx.type(t))
    if ast.is_record(t) and not ast.is_record(item.type):
        if fx.kernel.types.scalar_class(t) is None:
            raise Untranslatable(codes.UNSUPPORTED, "user conversion inside an initialiser list")
        return to_type(x, fx.type(t))
    return convert(fx, x, item.type, t, item)


# ---------------------------------------------------------------- defaults


def default_member_value(fx: FunctionLowering, f: Cursor) -> ir.Expr | None:
    """The value of `T member = v;` or `T member{v};`, None when the member has no default."""
    parts = ast.values(f)
    if not parts:
        return None
    last = parts[-1]
    text = fx.text(f)
    # The children also hold array bounds and template arguments: a default follows `=` or stands in braces.
    if "=" not in re.sub(r"[<>=!]=", "", text) and not text.rstrip().endswith("}"):
        return None
    t = f.type.get_canonical()
    if last.kind is CursorKind.INIT_LIST_EXPR:
        return init_list(fx, last, t)
    return converted_item(fx, last, t)


def has_defaults(fx: FunctionLowering, t: ClangType) -> bool:
    """Whether default initialisation of a class without constructors of its own does anything."""
    t = t.get_canonical()
    if t.kind is TypeKind.CONSTANTARRAY:
        return has_defaults(fx, t.get_array_element_type())
    if t.kind is not TypeKind.RECORD or fx.kernel.types.scalar_class(t) is not None or fx.kernel.types.is_opaque(t):
        return False
    if default_constructor(t) is not None:
        return True
    if any(has_defaults(fx, b.type) for b in t.get_bases()):
        return True
    return any(default_member_value_exists(fx, f) or has_defaults(fx, f.type) for f in t.get_fields())


def default_member_value_exists(fx: FunctionLowering, f: Cursor) -> bool:
    text = fx.text(f)
    return bool(ast.values(f)) and ("=" in re.sub(r"[<>=!]=", "", text) or text.rstrip().endswith("}"))


def default_constructor(t: ClangType) -> Cursor | None:
    """The user's default constructor with a body, None when it is implicit or defaulted."""
    decl = ast.definition(t.get_canonical().get_declaration())
    for k in decl.get_children():
        if k.kind is CursorKind.CONSTRUCTOR and k.is_default_constructor():
            d = ast.definition(k)
            if not k.is_default_method() and ast.body_of(d) is not None:
                return d
    return None


def value_initialised(fx: FunctionLowering, t: ClangType) -> ir.Expr:
    """`T{}` / `T()`."""
    t = t.get_canonical()
    it = fx.type(t)
    if t.kind is TypeKind.RECORD and isinstance(it, ir.Struct) and not fx.kernel.types.is_opaque(t):
        ctor = default_constructor(t)
        if ctor is not None:
            from porter.frontend.lower.construct import construct_with  # cycle: constructors initialise

            return construct_with(fx, ctor, t, [], ctor)
        if it.is_union:
            return _union_value(fx, [], t, it, t.get_declaration())
        values: list[ir.Expr] = []
        for base in t.get_bases():
            base_type = fx.type(base.type)
            if isinstance(base_type, ir.Struct) and (base_type.fields or base_type.size > 1):
                values.append(value_initialised(fx, base.type))
        members: list[tuple[Cursor, ir.Expr]] = []
        for f in t.get_fields():
            default = default_member_value(fx, f)
            members.append((f, default if default is not None else value_initialised(fx, f.type)))
        values += with_storage([(f, v) for f, v in members if f.spelling or not f.is_bitfield()])
        return ir.StructInit(tuple(values), type=it)
    if t.kind is TypeKind.CONSTANTARRAY and ast.is_record(t.get_array_element_type()) and isinstance(it, ir.Array):
        return ir.StructInit(
            tuple(value_initialised(fx, t.get_array_element_type()) for _ in range(int(it.length))), type=it
        )
    return zero(it)


def default_initialise(fx: FunctionLowering, place: ir.Expr, t: ClangType, at: Cursor) -> None:
    """Emit what `T x;` does to a fresh place: constructors and member defaults, nothing for plain members."""
    t = t.get_canonical()
    if not has_defaults(fx, t):
        return
    if isinstance(place.type, ir.Array):
        name = fx.fresh("i")
        index = ir.Var(name, type=ir.I32)
        with fx.collect() as body:
            element = ir.Index(place, index, type=place.type.elem)
            default_initialise(fx, element, t.get_array_element_type(), at)
        loop = ir.For(
            (ir.Decl(name, ir.I32, const(0, ir.I32)),),
            ir.Binary("<", index, const(int(place.type.length), ir.I32), type=ir.BOOL),
            (ir.Assign(index, ir.Binary("+", index, const(1, ir.I32), type=ir.I32), op="+="),),
            tuple(body),
            unroll=0,
        )
        fx.emit(loop, at)
        return
    ctor = default_constructor(t)
    if ctor is not None:
        from porter.frontend.lower.construct import constructor_call  # cycle: constructors initialise

        constructor_call(fx, ctor, place, [], at)
        return
    for base in t.get_bases():
        default_initialise(fx, upcast(fx, place, t, base.type.get_canonical()), base.type, at)
    for i, f in enumerate(t.get_fields()):
        if f.is_bitfield():
            continue  # C++17 has no defaults for bit-fields
        member = ir.Field(place, field_name(f, i), type=fx.type(f.type))
        default = default_member_value(fx, f)
        if default is not None:
            fx.emit(ir.Assign(member, default), at)
        else:
            default_initialise(fx, member, f.type, at)
