"""Constructor calls: values of scalar classes and vectors, copies, the user's constructors as functions on `this`."""

from __future__ import annotations

from dataclasses import replace

from porter import codes, ir
from porter.frontend.lower.bits import with_bits
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.convert import convert, to_type, upcast, zero
from porter.frontend.lower.init import (
    converted_item,
    default_initialise,
    default_member_value,
    has_defaults,
    init_list,
    value_initialised,
)
from porter.frontend.lower.types import field_name
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.clang_compat import Type as ClangType
from porter.wording import plural

RAW_STORAGE = {"f16": "__ushort_as_half", "bf16": "__ushort_as_bfloat16"}


def construct(fx: FunctionLowering, c: Cursor, target: ir.Expr | None = None) -> ir.Expr | None:
    """A constructor call cursor. With `target` the object is built there and None is returned, else its value.

    A returned None with a target means: nothing more to assign.
    """
    ctor = c.referenced
    t = c.type.get_canonical()
    args = ast.arguments(c)
    if ast.is_record(t) and fx.kernel.types.scalar_class(t) is not None:
        return _scalar_class(fx, c, t, args)
    if target is not None and isinstance(target.type, ir.Array):
        default_initialise(fx, target, t, c)
        return None
    if not ast.is_record(t):
        raise Untranslatable(codes.UNSUPPORTED, f"constructor for {t.spelling}")
    if ctor is None:
        raise Untranslatable(codes.UNRESOLVED, "constructor that clang could not resolve")
    if fx.kernel.types.is_opaque(t):
        from porter.frontend.lower.library.calls import opaque_value  # cycle: constructors are called

        return opaque_value(fx, c, t, args)
    definition = ast.definition(ctor)
    has_body = ast.body_of(definition) is not None and not ctor.is_default_method()
    if not has_body:
        if len(args) == 1 and (ctor.is_copy_constructor() or ctor.is_move_constructor()):
            return convert(fx, fx.expr(args[0]), args[0].type, t, c)
        if not args:
            return _implicit_default(fx, c, t, target)
        if fx.kernel.is_prelude(definition):
            return _declared_only(fx, c, t, args)
        raise Untranslatable(codes.NO_BODY, f"constructor of {t.spelling} has no body in the sources")
    if fx.kernel.is_prelude(definition):
        plain = _vector_value(fx, t, definition, args)
        if plain is not None:
            return plain
    if target is not None:
        constructor_call(fx, definition, target, args, c)
        return None
    return construct_with(fx, definition, t, args, c)


def _implicit_default(fx: FunctionLowering, c: Cursor, t: ClangType, target: ir.Expr | None) -> ir.Expr | None:
    if fx.text(c).rstrip().endswith((")", "}")) or target is None:
        return value_initialised(fx, t)
    default_initialise(fx, target, t, c)
    return None


def construct_with(fx: FunctionLowering, ctor: Cursor, t: ClangType, args: list[Cursor], at: Cursor) -> ir.Expr:
    """The value that a user constructor builds, in a temporary object."""
    name = fx.fresh("obj")
    it = fx.type(t)
    place = ir.Var(name, type=it)
    fx.emit(ir.Decl(name, it), at)
    constructor_call(fx, ctor, place, args, at)
    return place


def constructor_call(fx: FunctionLowering, ctor: Cursor, place: ir.Expr, args: list[Cursor], at: Cursor) -> None:
    """Emit `ctor(place, args...)`."""
    from porter.frontend.lower.calls import user_call  # cycle: constructors are called

    call = user_call(fx, ctor, place, args, at, root=True)
    if isinstance(call, ir.HoleExpr):
        fx.emit(ir.HoleStmt(call.code, call.cuda, call.reason), at)
    else:
        fx.emit(ir.ExprStmt(call), at)


def _scalar_class(fx: FunctionLowering, c: Cursor, t: ClangType, args: list[Cursor]) -> ir.Expr | None:
    """half(x), bf16{}, fp8(y): a conversion."""
    to = fx.type(t)
    assert isinstance(to, ir.Scalar)
    if not args:
        return zero(to) if fx.text(c).rstrip().endswith((")", "}")) else None
    x = fx.expr(args[0])
    if isinstance(x.type, ir.Struct):
        return from_raw(x, to)
    if len(args) == 2 and to.name in ("f16", "bf16", "e4m3", "e5m2", "e8m0"):
        # c10's (bits, from_bits_t()) constructors.
        bits = to_type(x, ir.U16 if to.name in ("f16", "bf16") else ir.U8)
        return bit_cast(bits, to)
    if len(args) != 1:
        raise Untranslatable(
            codes.UNSUPPORTED_NARROW_FLOAT, f"constructor of {to.name} from {plural(len(args), 'value')}"
        )
    return to_type(x, to)


def from_raw(x: ir.Expr, to: ir.Scalar) -> ir.Expr:
    """__half_raw and its kin hold the bits in a field `x`."""
    assert isinstance(x.type, ir.Struct)
    fields = x.type.fields
    if len(fields) != 1 or to.name not in RAW_STORAGE:
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"conversion from {x.type.name} to {to.name}")
    bits = ir.Field(x, fields[0].name, type=fields[0].type)
    return bit_cast(bits, to)


def bit_cast(x: ir.Expr, to: ir.Scalar) -> ir.Expr:
    """The bits of an integer as a small float."""
    if to.name in RAW_STORAGE:
        return ir.Intrinsic(RAW_STORAGE[to.name], (to_type(x, ir.U16),), type=to)
    return ir.Intrinsic("bit_cast", (x,), (to,), type=to)


def _vector_value(fx: FunctionLowering, t: ClangType, ctor: Cursor, args: list[Cursor]) -> ir.Expr | None:
    """dim3(a, b), half2(a, b), pair(a, b): a prelude class with one argument for each field is its fields."""
    it = fx.type(t)
    if not isinstance(it, ir.Struct) or it.is_union:
        return None
    if it.name == "dim3" and len(args) <= 3:
        if any(ast.is_record(a.type) for a in args):
            x = fx.expr(args[0])
            parts = x.values if isinstance(x, ir.StructInit) else None
            if parts is None:
                x = fx.as_place(x, args[0])
                parts = tuple(ir.Field(x, axis, type=ir.U32) for axis in "xyz")
            return ir.StructInit(parts, type=it)
        given = [to_type(fx.expr(a), ir.U32) for a in args if a.extent.start.offset or ast.values(a)]
        given += [ir.Const(1, type=ir.U32)] * (3 - len(given))
        return ir.StructInit(tuple(given), type=it)
    if len(args) != len(it.fields) or not args:
        return None
    fields = list(t.get_fields())
    if len(fields) != len(args):
        return None
    if not all(ast.same_type(a.type, f.type) or ast.is_arithmetic(a.type) for a, f in zip(args, fields, strict=True)):
        return None
    return ir.StructInit(tuple(to_type(fx.expr(a), s.type) for a, s in zip(args, it.fields, strict=True)), type=it)


def _declared_only(fx: FunctionLowering, c: Cursor, t: ClangType, args: list[Cursor]) -> ir.Expr:
    """A prelude constructor without a body (`__nv_fp8x2_e4m3(float2)`): an intrinsic named like the class."""
    it = fx.type(t)
    name = ast.qualified_name(t.get_declaration())
    return ir.Intrinsic(name, tuple(fx.expr(a) for a in args), type=it)


# ---------------------------------------------------------------- bodies of constructors


def member_initialisers(fx: FunctionLowering, ctor: Cursor) -> None:
    """Emit what happens before a constructor's body: bases, then members in declaration order."""
    record = ctor.semantic_parent.type.get_canonical()
    this = ir.Var("this", type=fx.type(record))
    written = written_initialisers(ctor)
    delegated = [v for k, v in written if k == "self"]
    if delegated:
        _initialise(fx, this, record, delegated[0])
        return
    by_base = {ast.unqualified(v.type): v for k, v in written if k == "base"}
    by_field = {k.spelling: v for k, v in written if isinstance(k, Cursor)}
    for base in record.get_bases():
        place = upcast(fx, replace(this), record, base.type.get_canonical())
        init = by_base.get(ast.unqualified(base.type))
        if init is not None:
            if isinstance(place, ir.Field):
                _initialise(fx, place, base.type, init)
        else:
            default_initialise(fx, place, base.type, ctor)
    union = ctor.semantic_parent.kind is CursorKind.UNION_DECL
    for i, f in enumerate(record.get_fields()):
        place = ir.Field(replace(this), field_name(f, i), type=fx.type(f.type))
        init = by_field.get(f.spelling)
        if f.is_bitfield():
            if init is not None:
                target, new = with_bits(replace(this), f, converted_item(fx, init, f.type))
                fx.emit(ir.Assign(target, new), init)
            continue
        if init is not None:
            if f.type.get_canonical().kind in ast.REFERENCES:
                target = fx.place(init)
                pointer = ir.Pointer(target.type)
                fx.emit(ir.Assign(replace(place, type=pointer), ir.AddressOf(target, type=pointer)), init)
            else:
                _initialise(fx, place, f.type, init)
            continue
        if union:
            continue
        default = default_member_value(fx, f)
        if default is not None:
            fx.emit(ir.Assign(place, default), f)
        elif has_defaults(fx, f.type):
            default_initialise(fx, place, f.type, f)


def written_initialisers(ctor: Cursor) -> list[tuple[object, Cursor]]:
    """(field cursor, "base" or "self", initialiser) of a constructor's written list, in source order."""
    out: list[tuple[object, Cursor]] = []
    pending: object | None = None
    own = ast.unqualified(ctor.semantic_parent.type)
    for k in ctor.get_children():
        if k.kind is CursorKind.MEMBER_REF:
            pending = k.referenced
        elif k.kind in (CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF):
            if pending is None:
                pending = "base"
        elif k.kind.is_expression() and k.kind is not CursorKind.COMPOUND_STMT:
            if pending is None:
                continue  # template arguments and the like
            if pending == "base":
                if not ast.is_record(k.type):
                    continue
                pending = "self" if ast.unqualified(k.type) == own else "base"
            out.append((pending, k))
            pending = None
        elif k.kind is CursorKind.PARM_DECL:
            pending = None
    return out


def _initialise(fx: FunctionLowering, place: ir.Expr, t: ClangType, init: Cursor) -> None:
    """Emit the initialisation of a member or base from one initialiser."""
    inner = ast.strip(init)
    if (
        inner.kind is CursorKind.CALL_EXPR
        and inner.referenced is not None
        and (inner.referenced.kind is CursorKind.CONSTRUCTOR)
    ):
        value = construct(fx, inner, target=place)
        if value is not None:
            fx.emit(ir.Assign(place, value), init)
        return
    if inner.kind is CursorKind.INIT_LIST_EXPR:
        fx.emit(ir.Assign(place, init_list(fx, inner, t)), init)
        return
    if isinstance(place.type, (ir.Array, ir.Struct)) and not ast.is_record(init.type) and not ast.values(init):
        fx.emit(ir.Assign(place, value_initialised(fx, t)), init)
        return
    fx.emit(ir.Assign(place, converted_item(fx, init, t)), init)
