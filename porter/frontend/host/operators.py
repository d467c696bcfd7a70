"""Operators of host expressions: on numbers, pointers, addresses and element types."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.conversions import Addresses, number, unknown
from porter.frontend.host.demand import null_of
from porter.frontend.host.nodes import Node, is_float
from porter.frontend.host.run import Run
from porter.frontend.host.tensors import same_sizes
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ListValue,
    Null,
    PlacePointer,
    Pointer,
    StructValue,
    Text,
    TypeOf,
    Unknown,
    Value,
)


def binary(run: Run, op: str, a: Value, b: Value, node: Node) -> Value:
    """An operator applied to two values."""
    if isinstance(a, (Pointer, Null, PlacePointer)) or isinstance(b, (Pointer, Null, PlacePointer)):
        return pointers(run, op, a, b, node)
    if isinstance(a, Addresses) or isinstance(b, Addresses):
        return addresses(run, op, a, b, node)
    if isinstance(a, (TypeOf, Text)) or isinstance(b, (TypeOf, Text)):
        return types_equal(run, op, a, b, node)
    if isinstance(a, ListValue) and isinstance(b, ListValue) and op in ("==", "!="):
        return same_sizes(run, op, a, b)
    if isinstance(a, Unknown) and isinstance(b, Unknown):
        return unknown(run, node, a.name)
    x, y = number(run, a, node), number(run, b, node)
    return arithmetic(op, x, y, is_float(node.type_kind))


def arithmetic(op: str, x: Term, y: Term, real: bool = False) -> Term:
    if op == "+":
        return terms.plus_one_where_rest(terms.add(x, y))
    if op == "-":
        return terms.sub(x, y)
    if op == "*":
        return terms.mul(x, y)
    if op == "/":
        if real and not x.real and not y.real:
            if x.value is not None and y.value:
                return terms.const(float(x.value) / float(y.value))
            return Term("real/", (x, y), True)
        return terms.div(x, y)
    if op == "%":
        return terms.mod(x, y)
    if op in ("<", "<=", ">", ">=", "==", "!="):
        return terms.compare(op, x, y)
    if op in ("<<", ">>", "&", "|", "^"):
        return terms.call(op, x, y)
    return terms.call("max", x, y)


def pointers(run: Run, op: str, a: Value, b: Value, node: Node) -> Value:
    if op in ("==", "!="):
        if isinstance(a, Null) or (isinstance(a, Term) and a.value == 0):
            a, b = b, a
        if isinstance(b, Null) or (isinstance(b, Term) and b.value == 0):
            null = null_of(run, a, node.span)
            return terms.const(bool(null) == (op == "=="))
        same = isinstance(a, Pointer) and isinstance(b, Pointer) and a.region is b.region and a.offset == b.offset
        return terms.const(same == (op == "=="))
    if op in ("+", "-"):
        if isinstance(b, Pointer) and op == "+":
            a, b = b, a
        if isinstance(a, Pointer) and isinstance(b, Term):
            return Pointer(a.region, arithmetic(op, a.offset, b), a.element)
        if isinstance(a, PlacePointer) and isinstance(b, Term) and b.value is not None and a.of:
            at = a.index + (int(b.value) if op == "+" else -int(b.value))
            if 0 <= at < len(a.of):
                return PlacePointer(a.of[at], at, a.of)
        if isinstance(a, Pointer):
            return Pointer(a.region, run.symbol("offset", "free", node.span), a.element)
    if isinstance(a, Pointer) or isinstance(b, Pointer):
        return addresses(run, op, a, b, node)
    return unknown(run, node, "difference")


def addresses(run: Run, op: str, a: Value, b: Value, node: Node) -> Value:
    names: tuple[str, ...] = ()
    for x in (a, b):
        names += x.names if isinstance(x, Addresses) else (x.region.name,) if isinstance(x, Pointer) else ()
    if op == "|":
        return Addresses(names)
    if op in ("%", "&") and isinstance(b, Term) and b.value is not None:
        step = int(b.value) + (op == "&")
        return terms.negate(terms.both(*(Term("aligned", (n, step)) for n in names)))
    return unknown(run, node, "address")


def types_equal(run: Run, op: str, a: Value, b: Value, node: Node) -> Value:
    """`x.scalar_type() == at::kHalf`: decides the type of the tensor for the rest of the way."""
    if isinstance(b, TypeOf) and not isinstance(a, TypeOf):
        a, b = b, a
    if not isinstance(a, TypeOf) or op not in ("==", "!="):
        if isinstance(a, Text) and isinstance(b, Text) and op in ("==", "!="):
            return terms.const((a.value == b.value) == (op == "=="))
        text, other = (a, b) if isinstance(a, Text) else (b, a)
        if isinstance(text, Text) and isinstance(other, (Unknown, StructValue)) and op in ("==", "!="):
            return text_is(run, other.name, text.value, op, node)
        return terms.truth(run.symbol("flag", "free", node.span, boolean=True))
    known = run.dtypes.get(a.key)
    if isinstance(b, TypeOf):
        other = run.dtypes.get(b.key)
        if known and other:
            return terms.const((known == other) == (op == "=="))
        if known or other:
            run.dtypes[a.key] = run.dtypes[b.key] = str(known or other)
        return terms.const(op == "==")  # types that nothing tells apart are taken to be the same
    if not isinstance(b, Text):
        return terms.const(op == "==")
    wanted = b.value.removeprefix("=")
    if known is not None:
        return terms.const((known == wanted) == (op == "=="))
    if wanted in run.not_dtypes.get(a.key, ()):
        return terms.const(op == "!=")
    return terms.const(decide_dtype(run, a.key, wanted, node) == (op == "=="))


def text_is(run: Run, name: str, wanted: str, op: str, node: Node) -> Term:
    """`mode == "max"`: a text of which nothing is known is one thing on each way, and then no other."""
    key = f"text {name}"
    if key in run.dtypes:
        return terms.const((run.dtypes[key] == wanted) == (op == "=="))
    if wanted in run.not_dtypes.get(key, ()):
        return terms.const(op == "!=")
    return terms.const(decide_dtype(run, key, wanted, node) == (op == "=="))


def decide_dtype(run: Run, key: str, wanted: str, node: Node) -> bool:
    if run.pick(f"dtype {key} {wanted} {node.span}", 2) == 0:
        run.dtypes[key] = wanted
        return True
    run.not_dtypes.setdefault(key, set()).add(wanted)
    return False
