"""Conversions between IR types: what C++'s implicit and explicit casts mean for two given types."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.flow.function_types import concerns_functions
from porter.frontend.lower.types import base_name
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType
from porter.ir.printer import type_text

_BITS = {"bool": 1, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}


def const(value: object, t: ir.Type, origin: str | None = None) -> ir.Const:
    return ir.Const(value, type=t, origin=origin)


def wrap_int(value: int, t: ir.Scalar) -> int | bool:
    """An integer as a value of type t (two's complement)."""
    if t.name == "bool":
        return bool(value)
    bits = _BITS[t.name]
    value &= (1 << bits) - 1
    return value - (1 << bits) if not t.is_unsigned and value >> (bits - 1) else value


def typed_value(value: int | float, t: ir.Type) -> int | float | bool:
    """An evaluated constant in the Python type that suits an IR scalar."""
    if isinstance(t, ir.Scalar) and t.is_float:
        return float(value)
    if isinstance(t, ir.Scalar) and t.is_int:
        return wrap_int(int(value), t)
    return value


def zero(t: ir.Type) -> ir.Expr:
    """The value of `T{}` for types without member initialisers."""
    if isinstance(t, ir.Scalar):
        return const(False if t.name == "bool" else 0.0 if t.is_float else 0, t)
    if isinstance(t, ir.Pointer):
        return const(0, t)
    if isinstance(t, ir.Array):
        return ir.StructInit((zero(t.elem),) * int(t.length), type=t)
    if isinstance(t, ir.Struct):
        if t.is_union and t.fields:
            raise Untranslatable(codes.UNSUPPORTED, f"zero initialisation of union {t.name}")
        return ir.StructInit(tuple(zero(f.type) for f in t.fields), type=t)
    raise Untranslatable(codes.UNSUPPORTED_TYPE, f"no zero value for {type_text(t)}")


def to_type(x: ir.Expr, t: ir.Type) -> ir.Expr:
    """Convert a scalar or pointer value to another scalar or pointer type; records pass unchanged."""
    a = x.type
    if a == t:
        return x
    if isinstance(x, ir.HoleExpr):
        return replace(x, type=t)
    if isinstance(a, ir.Scalar) and isinstance(t, ir.Scalar):
        return _scalar(x, a, t)
    if isinstance(x, ir.Const) and isinstance(x.value, str):
        return const(True, ir.BOOL) if t == ir.BOOL else x  # `cond && "message"`
    if isinstance(a, ir.Pointer) and isinstance(t, ir.Pointer):
        if isinstance(x, ir.Const):
            return const(x.value, t, x.origin)
        return x if a.elem == t.elem else ir.Cast(x, type=t)
    if isinstance(a, ir.Pointer) and isinstance(t, ir.Scalar):
        if t == ir.BOOL:
            return ir.Binary("!=", x, const(0, a), type=ir.BOOL)
        return to_type(ir.Cast(x, type=ir.U64), t)
    if isinstance(a, ir.Scalar) and isinstance(t, ir.Pointer):
        if isinstance(x, ir.Const) and x.value == 0:
            return const(0, t)
        return ir.Cast(to_type(x, ir.U64), type=t)
    if isinstance(a, ir.Array) and isinstance(t, ir.Pointer):
        decayed = ir.Decay(x, type=ir.Pointer(a.elem, const=t.const))
        return to_type(decayed, t)
    if isinstance(a, ir.Struct) and isinstance(t, ir.Struct):
        return x
    raise Untranslatable(
        codes.UNSUPPORTED_CONVERSION, f"conversion from {type_text(a)} to {type_text(t)} is not supported"
    )


def _scalar(x: ir.Expr, a: ir.Scalar, t: ir.Scalar) -> ir.Expr:
    if t.name == "void":
        return x
    if isinstance(x, ir.Const):
        folded = _fold(x, a, t)
        if folded is not None:
            return folded
    return ir.Cast(x, type=t)


def _fold(x: ir.Const, a: ir.Scalar, t: ir.Scalar) -> ir.Const | None:
    """A converted constant. Named constants stay visible behind their cast unless the number is the same."""
    v = x.value
    if not isinstance(v, (bool, int, float)):
        return None
    if a.is_int and t.is_int:
        w = wrap_int(int(v), t)
        return const(w, t, x.origin) if x.origin is None or w == v else None
    if x.origin is not None:
        return None
    if a.is_int and t.name in ("f32", "f64"):
        w32 = float(int(v)) if t.name == "f64" else _round_f32(float(int(v)))
        return const(w32, t)
    if a.name == "f64" and t.name == "f32":
        return const(_round_f32(float(v)), t)
    if a.name == "f32" and t.name == "f64":
        return const(float(v), t)
    if a.is_float and t == ir.BOOL:
        return const(v != 0, t)
    return None


def _round_f32(v: float) -> float:
    if math.isinf(v) or math.isnan(v):
        return v
    try:
        return float(struct.unpack("f", struct.pack("f", v))[0])
    except OverflowError:
        return math.copysign(math.inf, v)


def convert(fx: FunctionLowering, x: ir.Expr, source: ClangType, target: ClangType, at: Cursor) -> ir.Expr:
    """What a cast from C++ type `source` to `target` does to the value `x`."""
    source, target = source.get_canonical(), target.get_canonical()
    if ast.same_type(source, target):
        return x
    if ast.is_record(source) and ast.is_record(target):
        return upcast(fx, x, source, target)
    to = fx.type(target)
    if not _both_functions(x, source, target):
        raise Untranslatable(codes.FUNCTION_POINTER, "the address of a function as a value of another kind")
    if isinstance(x.type, ir.Pointer) and isinstance(to, ir.Pointer):
        a, b = source.get_pointee(), target.get_pointee()
        if ast.is_record(a) and ast.is_record(b) and not ast.same_type(a, b):
            path = base_path(a, b)
            if path is not None and path:
                return address_of(upcast(fx, deref(x), a, b), to)
    return to_type(x, to)


def _both_functions(x: ir.Expr, source: ClangType, target: ClangType) -> bool:
    """False where a pointer to a function, which is a number of porter's own, becomes or is made of something else."""
    a, b = concerns_functions(source), concerns_functions(target)
    truth = target.kind is TypeKind.BOOL
    null = isinstance(x, ir.Const) and not x.value
    return a == b or (a and truth) or (b and (null or source.kind is TypeKind.NULLPTR))


def base_path(derived: ClangType, base: ClangType) -> list[ClangType] | None:
    """The chain of base classes from `derived` down to `base` (empty when they are the same), None when unrelated."""
    if ast.same_type(derived, base):
        return []
    for b in derived.get_canonical().get_bases():
        rest = base_path(b.type, base)
        if rest is not None:
            return [b.type, *rest]
    return None


def upcast(fx: FunctionLowering, x: ir.Expr, source: ClangType, target: ClangType) -> ir.Expr:
    """A derived object seen as its base: the base is a field, unless it is empty."""
    if fx.kernel.types.scalar_class(source) or fx.kernel.types.scalar_class(target):
        return to_type(x, fx.type(target))
    if fx.kernel.types.is_opaque(target):  # a library handle seen as another: nothing moves
        return replace(x, type=fx.type(target)) if isinstance(x, (ir.Intrinsic, ir.StructInit)) else x
    path = base_path(source, target)
    if path is None:
        down = base_path(target, source)
        if down is None:
            raise Untranslatable(
                codes.UNSUPPORTED_CONVERSION, f"cast between unrelated classes {source.spelling} and {target.spelling}"
            )
        pointer = address_of(x, ir.Pointer(fx.type(source)))
        return deref(ir.Cast(pointer, type=ir.Pointer(fx.type(target))))
    for step in path:
        step_type = fx.type(step)
        name = base_name(step)
        if isinstance(x.type, ir.Struct) and not any(f.name == name for f in x.type.fields):
            x = ir.StructInit((), type=step_type) if not fx.is_place(x) else replace(x, type=step_type)
        else:
            x = ir.Field(x, name, type=step_type)
    return x


def deref(p: ir.Expr, volatile: bool = False, t: ir.Type | None = None) -> ir.Expr:
    """`*p`, with `*&x` and `*array` simplified."""
    if isinstance(p, ir.AddressOf):
        return p.place
    if isinstance(p, ir.Decay) and isinstance(p.place.type, ir.Array):
        return ir.Index(p.place, const(0, ir.I32), type=p.place.type.elem)
    elem = p.type.elem if isinstance(p.type, ir.Pointer) else ir.VOID
    return ir.Deref(p, volatile, type=t or elem)


def address_of(place: ir.Expr, t: ir.Type) -> ir.Expr:
    """`&place`, with `&*p` simplified."""
    if isinstance(place, ir.Deref):
        return to_type(place.ptr, t) if isinstance(place.ptr.type, ir.Pointer) else place.ptr
    return ir.AddressOf(place, type=t)


def condition(x: ir.Expr) -> ir.Expr:
    """A value as a truth value."""
    return to_type(x, ir.BOOL)
