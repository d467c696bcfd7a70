"""Calls in host code: the project's own functions are run, those of libraries are looked up, launches are recorded."""

from __future__ import annotations

from typing import Any

from porter.frontend.host import terms
from porter.frontend.host.conversions import Addresses, converted, copied, unknown
from porter.frontend.host.demand import demand, present, tensor
from porter.frontend.host.expressions import blank, evaluate, place_of, subscript, this_of
from porter.frontend.host.launching import launch
from porter.frontend.host.library import library_call, method_call
from porter.frontend.host.memory import allocated
from porter.frontend.host.nodes import Node, is_integer
from porter.frontend.host.operators import binary
from porter.frontend.host.reach import launches, launches_within
from porter.frontend.host.run import MAX_DEPTH, Frame, OutOfBudget, PathEnds, Run
from porter.frontend.host.statements import execute
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    FunctionValue,
    LambdaValue,
    ListValue,
    Null,
    OptionalValue,
    Options,
    Place,
    PlacePointer,
    StructValue,
    TensorValue,
    Text,
    TypeOf,
    Unknown,
    Value,
)
from porter.frontend.launches.sites import is_launch
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.declarations import has_body, is_kernel, is_prelude, template_arguments, template_of

_REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)


def call(run: Run, frame: Frame, node: Node) -> Value:
    """The value of a call."""
    if is_launch(node.cursor):
        return launch(run, frame, node)
    target = node.target
    if target is not None and target.kind == CursorKind.CONSTRUCTOR:
        return construct(run, frame, node)
    children = node.children
    if not children:
        return blank(run, node.cursor.type) if node.type_kind == TypeKind.RECORD else unknown(run, node, node.spelling)
    name = node.spelling
    is_member = children[0].kind == CursorKind.MEMBER_REF_EXPR
    named = is_member and children[0].spelling == name == "operator()"  # f.template operator()<8>()
    if name.startswith("operator") and not named and (
        len(children) < 2 or not is_member or _names(children[1], name)
    ):  # fmt: skip
        return _operator(run, frame, node, name)
    callee = children[0]
    while callee.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR) and len(callee.children) == 1:
        callee = callee.children[0]
    arguments = children[1:]
    if callee.kind == CursorKind.MEMBER_REF_EXPR:
        return _method(run, frame, node, callee, arguments)
    if target is not None and target.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return invoke(run, frame, node, target, arguments, None)
    value = evaluate(run, frame, callee)
    return apply(run, frame, node, value, arguments)


def _names(node: Node, name: str) -> bool:
    """Whether an expression is nothing but the name of an operator."""
    while node.kind == CursorKind.UNEXPOSED_EXPR and len(node.children) == 1:
        node = node.children[0]
    return node.kind == CursorKind.DECL_REF_EXPR and node.spelling == name


def apply(
    run: Run, frame: Frame, node: Node, function: Value, arguments: list[Node], target: Cursor | None = None
) -> Value:
    """A call of a value: a lambda, a function pointer. `target` is the call operator that overload resolution chose: of
    a lambda with template parameters it is an instance with a body of its own."""
    if isinstance(function, PlacePointer):
        function = function.place.value
    if isinstance(function, LambdaValue):
        called = function.node
        if target is not None and template_of(target) is not None and has_body(target.get_definition() or target):
            called = run.program.nodes.of(target.get_definition() or target)
        body = called.children[-1] if called.children else None
        if body is None or body.kind != CursorKind.COMPOUND_STMT:
            return unknown(run, node, "result")
        inner = Frame(called, {}, function.frame, None, None, frame.depth + 1, frame.launching, frame.templates)
        inner.launching = launches_within(run.program, body)
        _bind(run, frame, inner, _parameters(called), arguments)
        return _run_body(run, inner, body)
    cursor = function.cursor if isinstance(function, FunctionValue) else None
    if cursor is not None and cursor.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return invoke(run, frame, node, cursor, arguments, None)
    for a in arguments:
        evaluate(run, frame, a)
    return unknown(run, node, node.spelling or "result")


def invoke(
    run: Run, frame: Frame, node: Node, target: Cursor, arguments: list[Node], this: StructValue | None
) -> Value:
    """A call of a function by its declaration."""
    definition = target.get_definition() or target
    if is_kernel(target):
        return None
    if is_prelude(definition) or not has_body(definition):
        found = library_call(run, frame, node, target, arguments)
        if found is not NotImplemented:
            return found
        _forget(run, frame, arguments)
        reason = f"{node.spelling}() cannot be seen through"
        return unknown(run, node, node.spelling or "result", reason)
    rounded = _known_by_name(run, frame, node, definition, arguments)
    if rounded is not None:
        return rounded
    if frame.depth > MAX_DEPTH:
        raise OutOfBudget
    function = run.program.nodes.of(definition)
    inner = Frame(function, {}, None, this, None, frame.depth + 1, launches(run.program, definition))
    inner.templates = template_arguments(definition)
    _bind(run, frame, inner, _parameters(function), arguments)
    body = next((c for c in function.children if c.kind == CursorKind.COMPOUND_STMT), None)
    return _run_body(run, inner, body) if body is not None else None


def _known_by_name(run: Run, frame: Frame, node: Node, target: Cursor, arguments: list[Node]) -> Value | None:
    """Loops that find a power of two are known by their names."""
    name = target.spelling.lower().replace("_", "")
    if len(arguments) == 1 and name in ("nextpow2", "nextpowerof2", "nextpoweroftwo"):
        value = evaluate(run, frame, arguments[0])
        return terms.call("next_pow2", value) if isinstance(value, Term) else None
    return None


def _parameters(function: Node) -> list[Node]:
    return [c for c in function.children if c.kind == CursorKind.PARM_DECL]


def _bind(run: Run, outer: Frame, inner: Frame, params: list[Node], arguments: list[Node]) -> None:
    for i, p in enumerate(params):
        place: Place | None = None
        value: Value = None
        if i < len(arguments):
            if p.type_kind in _REFERENCES:
                place = place_of(run, outer, arguments[i])
                if place is not None and place.value is None:
                    place.value = evaluate(run, outer, arguments[i])
            if place is None:
                value = copied(evaluate(run, outer, arguments[i]))
        if place is None and value is None and (i >= len(arguments) or _is_default(arguments[i])):
            value = _default(run, inner, p)
        if place is None and isinstance(value, Term) and p.type_kind == TypeKind.BOOL:
            value = terms.truth(value)
        inner.places[p.key] = place or Place(value, p.spelling)
        if value is not None:
            run.called(value, p.spelling)


def _is_default(node: Node) -> bool:
    return node.kind == CursorKind.UNEXPOSED_EXPR and not node.children


def _default(run: Run, inner: Frame, p: Node) -> Value:
    if p.expressions:
        return evaluate(run, inner, p.expressions[-1])
    return demand(run, p.cursor.type, p.spelling, p.span, "free")


def _run_body(run: Run, inner: Frame, body: Node) -> Value:
    execute(run, inner, body)
    return inner.result


def _forget(run: Run, frame: Frame, arguments: list[Node]) -> None:
    """What a function that is not seen may have written: variables whose address it is given."""
    for a in arguments:
        while a.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR) and len(a.children) == 1:
            a = a.children[0]
        if a.kind == CursorKind.UNARY_OPERATOR and a.operator == "&":
            inner = a.children[0]
            place = place_of(run, frame, inner)
            if place is not None and (place.value is None or isinstance(place.value, (Term, Unknown, Null))):
                run.write(place, demand(run, inner.cursor.type, inner.spelling or "value", inner.span, "free"))
        elif a.kind in (CursorKind.LAMBDA_EXPR, CursorKind.CALL_EXPR):
            evaluate(run, frame, a)


def _operator(run: Run, frame: Frame, node: Node, name: str) -> Value:
    """An overloaded operator: the first operand, the operator, the others."""
    children = node.children
    operands = [children[0], *children[2:]]
    if name == "operator=":
        value = copied(evaluate(run, frame, operands[1])) if len(operands) > 1 else None
        place = place_of(run, frame, operands[0])
        if place is not None and value is not None:
            if isinstance(place.value, StructValue) and place.value.type == "dim3" and isinstance(value, Term):
                value = dim3(value)
            new = value.region if isinstance(value, TensorValue) else None
            if isinstance(place.value, TensorValue) and new is not None and new.name.startswith("made "):
                new.name = place.name or place.value.key
            run.write(place, value)
        return value
    first = evaluate(run, frame, operands[0])
    if name == "operator()":
        if isinstance(first, (LambdaValue, FunctionValue, PlacePointer)):
            return apply(run, frame, node, first, operands[1:], node.target)
        target = node.target
        if isinstance(first, StructValue) and target is not None:
            return invoke(run, frame, node, target, operands[1:], first)
        return apply(run, frame, node, first, operands[1:])
    if isinstance(first, OptionalValue):
        if name in ("operator*", "operator->"):
            return first.value
        if name == "operator bool":
            return terms.const(present(run, first))
        if name in ("operator==", "operator!="):
            return terms.const(present(run, first) == (name == "operator!="))
    if name in ("operator*", "operator->") and len(operands) == 1 and not isinstance(first, Term):
        return first.place.value if isinstance(first, PlacePointer) else first
    if name == "operator[]" and len(operands) == 2:
        return subscript(run, first, evaluate(run, frame, operands[1]), node)
    target = node.target
    if isinstance(first, StructValue) and target is not None and _own(target):
        if target.kind == CursorKind.CXX_METHOD:
            return invoke(run, frame, node, target, operands[1:], first)
        return invoke(run, frame, node, target, operands, None)
    if name == "operator<<":
        if any(x.spelling in ("cerr",) for x in operands[0].walk() if x.kind == CursorKind.DECL_REF_EXPR):
            return None
        return first
    rest = [evaluate(run, frame, x) for x in operands[1:]]
    symbol = name.removeprefix("operator")
    if len(rest) == 1 and symbol in ("+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "|", "&"):
        if isinstance(first, TensorValue) or isinstance(rest[0], TensorValue):
            return first if isinstance(first, TensorValue) else rest[0]
        kinds: tuple[type, ...] = (Term, TypeOf, Text, ListValue, Addresses)
        if isinstance(first, kinds) or isinstance(rest[0], kinds):
            return binary(run, symbol, first, rest[0], node)
    if name.startswith("operator ") and isinstance(first, (Term, Unknown, TypeOf, Text)):
        return first if isinstance(first, (Term, TypeOf, Text)) else unknown(run, node, first.name)
    return unknown(run, node, node.spelling.removeprefix("operator").strip(" ()*&<>=!+-") or "value")


def dim3(x: Value, y: Value = terms.ONE, z: Value = terms.ONE) -> StructValue:
    members = {"x": Place(x, "x"), "y": Place(y, "y"), "z": Place(z, "z")}
    return StructValue("dim3", members)


def _method(run: Run, frame: Frame, node: Node, callee: Node, arguments: list[Node]) -> Value:
    """`base.name(...)`."""
    base: Value = evaluate(run, frame, callee.expressions[0]) if callee.expressions else this_of(frame)
    if isinstance(base, PlacePointer):
        base = base.place.value
    name = callee.spelling
    if isinstance(base, OptionalValue) and name not in ("has_value", "value", "value_or", "operator bool", "defined"):
        base = base.value
    target = node.target
    if isinstance(base, LambdaValue) and name == "operator()":
        return apply(run, frame, node, base, arguments, target)
    if isinstance(base, StructValue) and target is not None:
        definition = target.get_definition() or target
        if has_body(definition) and not is_prelude(definition):
            return invoke(run, frame, node, target, arguments, base)
    place = place_of(run, frame, callee.expressions[0]) if callee.expressions else None
    found = method_call(run, frame, node, base, name, arguments, place)
    if found is not NotImplemented:
        return found
    _forget(run, frame, arguments)
    return unknown(run, node, name, f"{name}() cannot be seen through")


def construct(run: Run, frame: Frame, node: Node) -> Value:
    """`T(...)`."""
    ctype = node.cursor.type.get_canonical()
    text = ctype.spelling.replace("const ", "")
    arguments = [c for c in node.children if c.kind.is_expression()]
    if text == "dim3":
        values = [evaluate(run, frame, a) for a in arguments]
        if len(values) == 1 and isinstance(values[0], StructValue):
            return copied(values[0])
        numbers: list[Value] = [
            v if isinstance(v, Term) else terms.ONE if v is None else unknown(run, a, a.spelling or "blocks")
            for v, a in zip(values, arguments, strict=True)
        ]
        return dim3(*(numbers + [terms.ONE] * 3)[:3])
    given = [a for a in arguments if not _is_default(a)]
    target = node.target
    if ctype.kind == TypeKind.CONSTANTARRAY:
        return blank(run, ctype)
    if len(given) == 1:
        value = evaluate(run, frame, given[0])
        copies = (StructValue, TensorValue, OptionalValue, Options, ListValue, TypeOf, Unknown, LambdaValue)
        if isinstance(value, copies) and not _own(target):
            if "optional<" in text and not isinstance(value, (OptionalValue, Unknown)):
                return OptionalValue("", value, True)
            if "TensorOptions" in text and isinstance(value, (Text, TypeOf)):
                return _options(value)
            return copied(value)
        if "TensorOptions" in text:
            return _options(value)
        if "optional<" in text:
            if "nullopt" in given[0].type_text or isinstance(value, Null):
                return OptionalValue("", Null(), False)
            return OptionalValue("", value, True)
        if isinstance(value, StructValue) and value.type == text:
            return copied(value)
        if isinstance(value, (Term, FunctionValue, Text, ArrayValue)) and not _own(target):
            if text.startswith(("std::vector", "c10::ArrayRef")):
                if isinstance(value, ArrayValue):
                    return ListValue(tuple(p.value for p in value.items))
                return _vector(run, value) if text.startswith("std::vector") else ListValue((value,))
            return converted(run, value, node) if is_integer(node.type_kind) else value
    if target is not None and _own(target):
        return _own_constructor(run, frame, node, target, arguments, ctype)
    if text.startswith("std::vector") and given:
        return _vector(run, evaluate(run, frame, given[0]))
    if "optional<" in text:
        return OptionalValue("", Null(), False)
    if text.endswith("Tensor") and not given:
        undefined = tensor(run, f"undefined{len(run.tensors)}", node.span)
        undefined.said_by = "undefined"
        return undefined
    if text.startswith(("std::", "c10::", "at::", "torch::")):
        for a in given:
            evaluate(run, frame, a)
        return Unknown(node.spelling or "value", node.span)
    return blank(run, ctype) if ctype.kind == TypeKind.RECORD else unknown(run, node, node.spelling)


def _vector(run: Run, count: Value) -> Value:
    """A vector of so many elements: memory of the host."""
    if isinstance(count, Term):
        return allocated(run, "made vector", count=count)
    return count if isinstance(count, ListValue) else Unknown("list")


def _options(value: Value) -> Value:
    if isinstance(value, TypeOf):
        return Options(value.key)
    if isinstance(value, Text):
        return Options(value.value)
    return value if isinstance(value, Options) else Options("")


def _own(target: Any) -> bool:
    """A constructor that the project wrote."""
    if target is None:
        return False
    definition = target.get_definition() or target
    return has_body(definition) and not is_prelude(definition)


def _own_constructor(run: Run, frame: Frame, node: Node, target: Any, arguments: list[Node], ctype: Any) -> StructValue:
    made = blank(run, ctype)
    if not isinstance(made, StructValue):
        raise PathEnds
    for p in made.members.values():
        if isinstance(p.value, Term):
            p.value = None
    for f in ctype.get_fields():
        expression = run.program.nodes.of(f).expressions
        if expression:
            made.members[f.spelling] = Place(evaluate(run, Frame(node, {}, None, made), expression[-1]), f.spelling)
    function = run.program.nodes.of(target.get_definition() or target)
    inner = Frame(function, {}, None, made, None, frame.depth + 1, False)
    _bind(run, frame, inner, _parameters(function), arguments)
    children = function.children
    for i, c in enumerate(children):
        if c.kind == CursorKind.MEMBER_REF and i + 1 < len(children):
            made.members[c.spelling] = Place(copied(evaluate(run, inner, children[i + 1])), c.spelling)
    body = next((c for c in children if c.kind == CursorKind.COMPOUND_STMT), None)
    if body is not None:
        _run_body(run, inner, body)
    return made
