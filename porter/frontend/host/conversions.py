"""Values turned into others: by casts, as numbers, as conditions, and what nobody sees through."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.demand import demand, null_of, present
from porter.frontend.host.nodes import Node, is_float, is_integer
from porter.frontend.host.run import Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    FunctionValue,
    Null,
    OptionalValue,
    Place,
    PlacePointer,
    Pointer,
    StructValue,
    TypeOf,
    Unknown,
    Value,
)
from porter.frontend.parse.clang_compat import TypeKind


class Addresses:
    """The addresses of buffers as one number, of which only the alignment can be asked."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names


def copied(value: Value) -> Value:
    """A struct or an array by value."""
    if isinstance(value, StructValue):
        members = {n: Place(copied(p.value), n) for n, p in value.members.items()}
        return StructValue(value.type, members, value.name)
    if isinstance(value, ArrayValue):
        return ArrayValue([Place(copied(p.value)) for p in value.items])
    return value


def unknown(run: Run, node: Node, name: str, reason: str = "") -> Value:
    """What cannot be seen through, made by its type: a number becomes a named free size."""
    return demand(run, node.cursor.type, name or "value", node.span, "free", reason)


def number(run: Run, value: Value, node: Node) -> Term:
    """The value as a number; what is none becomes a free size."""
    if isinstance(value, Term):
        return value
    if isinstance(value, OptionalValue):
        return terms.const(present(run, value))
    if isinstance(value, Null):
        return terms.ZERO
    if isinstance(value, (Pointer, PlacePointer)) and node.type_kind == TypeKind.BOOL:
        return terms.const(not null_of(run, value, node.span))
    if isinstance(value, TypeOf):
        return terms.sym(f"dtype {value.key}")
    name = value.name if isinstance(value, Unknown) else node.spelling or "value"
    if isinstance(value, Unknown) or is_integer(node.type_kind) or is_float(node.type_kind):
        real = is_float(node.type_kind)
        return run.symbol(name, "free", node.span, real=real, reason="the host code was not seen through")
    return run.symbol(name, "free", node.span, reason="the host code was not seen through")


def converted(run: Run, value: Value, node: Node) -> Value:
    """A value in the type of a cast around it."""
    kind = node.type_kind
    if isinstance(value, Term):
        if kind == TypeKind.BOOL:
            return terms.truth(value)
        if is_integer(kind) and isinstance(value.value, bool):
            return terms.const(int(value.value))
        if is_integer(kind) and value.real:
            return whole_number(value)
        if is_float(kind) and value.value is not None:
            return terms.const(float(value.value))
        if kind == TypeKind.POINTER and value.value == 0:
            return Null()
        return value
    if kind == TypeKind.BOOL and isinstance(value, (Pointer, PlacePointer, Null, OptionalValue)):
        return terms.const(present(run, value) if isinstance(value, OptionalValue) else
                           not null_of(run, value, node.span))  # fmt: skip
    if isinstance(value, Pointer) and kind == TypeKind.POINTER:
        target = node.cursor.type.get_canonical().get_pointee().get_canonical().spelling
        return Pointer(value.region, value.offset, target.replace("const ", ""))
    if isinstance(value, Pointer) and is_integer(kind):
        return Addresses((value.region.name,))
    if isinstance(value, FunctionValue) and not value.cursor and kind == TypeKind.POINTER:
        return value
    return value


def whole_number(value: Term) -> Term:
    """A float cut to an integer: a rounded-up quotient where it is one."""
    if value.op == "ceil" and value.parts[0].op == "real/":
        a, b = value.parts[0].parts
        if not a.real and not b.real:
            return terms.ceil_div(a, b)
        if not a.real and b.value is not None and float(b.value).is_integer():
            return terms.ceil_div(a, terms.const(int(b.value)))
    if value.op == "real/" and not any(p.real for p in value.parts):
        return terms.div(*value.parts)
    return terms.call("int", value)


def condition_of(run: Run, value: Value, node: Node) -> Term:
    if isinstance(value, (Pointer, PlacePointer, Null)):
        return terms.const(not null_of(run, value, node.span))
    if isinstance(value, OptionalValue):
        return terms.const(present(run, value))
    return terms.truth(number(run, value, node))
