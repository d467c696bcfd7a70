"""The value of a host expression, and the place that it names."""

from __future__ import annotations

from typing import Any

from porter.frontend.host import terms
from porter.frontend.host.conversions import condition_of, converted, copied, number, unknown, whole_number
from porter.frontend.host.demand import demand, list_items, member, null_of, present, size, stride
from porter.frontend.host.global_variables import assigned
from porter.frontend.host.nodes import Node, is_float, is_integer
from porter.frontend.host.operators import binary, pointers
from porter.frontend.host.run import CannotMerge, Frame, Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    FunctionValue,
    LambdaValue,
    ListValue,
    Null,
    OptionalValue,
    Place,
    PlacePointer,
    Pointer,
    StructValue,
    TensorValue,
    Text,
    Unknown,
    Value,
)
from porter.frontend.parse.clang_compat import CursorKind, TypeKind

_CASTS = (
    CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR, CursorKind.CXX_CONST_CAST_EXPR, CursorKind.CXX_DYNAMIC_CAST_EXPR,
)  # fmt: skip
_LITERALS = (
    CursorKind.INTEGER_LITERAL, CursorKind.FLOATING_LITERAL, CursorKind.CXX_BOOL_LITERAL_EXPR,
    CursorKind.CHARACTER_LITERAL,
)  # fmt: skip


def evaluate(run: Run, frame: Frame, node: Node) -> Value:
    """The value of an expression."""
    run.step()
    kind = node.kind
    if kind in _LITERALS:
        value = node.constant
        return Unknown("literal", node.span) if value is None else terms.const(value)
    if kind == CursorKind.UNEXPOSED_EXPR:
        return _unexposed(run, frame, node)
    if kind == CursorKind.PAREN_EXPR:
        return evaluate(run, frame, node.children[0])
    if kind == CursorKind.DECL_REF_EXPR:
        return _name(run, frame, node)
    if kind == CursorKind.MEMBER_REF_EXPR:
        place = place_of(run, frame, node)
        return place.value if place is not None else unknown(run, node, node.spelling)
    if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
        return _subscript(run, frame, node)
    if kind == CursorKind.BINARY_OPERATOR:
        return _binary(run, frame, node)
    if kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
        return _compound(run, frame, node)
    if kind == CursorKind.UNARY_OPERATOR:
        return _unary(run, frame, node)
    if kind == CursorKind.CONDITIONAL_OPERATOR and len(node.children) == 3:
        return _conditional(run, frame, node)
    if kind in _CASTS:
        return converted(run, evaluate(run, frame, node.expressions[-1]), node) if node.expressions else None
    if kind == CursorKind.CALL_EXPR:
        from porter.frontend.host.calls import call  # cycle: arguments of calls are expressions

        return call(run, frame, node)
    if kind == CursorKind.INIT_LIST_EXPR:
        return _init_list(run, frame, node)
    if kind == CursorKind.LAMBDA_EXPR:
        return LambdaValue(node, frame)
    if kind in (CursorKind.CXX_NULL_PTR_LITERAL_EXPR, CursorKind.GNU_NULL_EXPR):
        return Null()
    if kind == CursorKind.STRING_LITERAL:
        return Text(node.spelling.strip('"'))
    if kind == CursorKind.CXX_THIS_EXPR:
        this = this_of(frame)
        return PlacePointer(Place(this)) if this is not None else Unknown("this", node.span)
    if kind == CursorKind.CXX_NEW_EXPR:
        from porter.frontend.host.memory import new_array  # cycle: the length of an array is an expression

        return new_array(run, frame, node)
    if node.constant is not None and kind.is_expression():
        return terms.const(node.constant)
    return unknown(run, node, node.spelling or "value")


def this_of(frame: Frame | None) -> StructValue | None:
    while frame is not None:
        if frame.this is not None:
            return frame.this
        frame = frame.outer
    return None


def condition(run: Run, frame: Frame, node: Node) -> Term:
    """A condition, with `&&`, `||` and `!` kept."""
    value = evaluate(run, frame, node)
    if isinstance(value, Term):
        return terms.truth(value)
    if isinstance(value, (Pointer, PlacePointer, Null)):
        return terms.const(not null_of(run, value, node.span))
    if isinstance(value, OptionalValue):
        return terms.const(present(run, value))
    if isinstance(value, (FunctionValue, LambdaValue, TensorValue, StructValue, Text)):
        return terms.TRUE
    return terms.truth(number(run, value, node))


def _unexposed(run: Run, frame: Frame, node: Node) -> Value:
    children = node.children
    if len(children) == 1:
        return converted(run, evaluate(run, frame, children[0]), node)
    if not children:
        if is_integer(node.type_kind) or is_float(node.type_kind):
            value = node.constant
            return None if value is None else terms.const(value)
        return None  # a default argument
    expressions = node.expressions
    if expressions:
        return converted(run, evaluate(run, frame, expressions[-1]), node)
    return unknown(run, node, node.spelling)


def _name(run: Run, frame: Frame, node: Node) -> Value:
    target = node.target
    if target is None:
        if not node.spelling and len(node.expressions) == 1:  # a template parameter, with what stands for it
            return evaluate(run, frame, node.expressions[0])
        return _overloaded(run, node)
    if target.kind == CursorKind.ENUM_CONSTANT_DECL:
        parent = target.semantic_parent
        if parent is not None and parent.spelling == "ScalarType":
            return Text(f"={target.spelling}")
        return terms.const(int(target.enum_value))
    if target.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        from porter.frontend.parse.declarations import template_arguments

        text = ", ".join(template_arguments(target, node.cursor)) if target.kind == CursorKind.FUNCTION_DECL else ""
        return FunctionValue(target, text)
    if target.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL):
        place = variable(run, frame, node)
        return place.value if place is not None else unknown(run, node, node.spelling)
    if target.kind == CursorKind.OVERLOADED_DECL_REF or target.kind == CursorKind.FUNCTION_TEMPLATE:
        return _overloaded(run, node)
    if node.constant is not None:
        return terms.const(node.constant)
    return unknown(run, node, node.spelling)


def _overloaded(run: Run, node: Node) -> Value:
    """`k<T, 128>` where the reference is not resolved: the kernel by its name and its arguments as written."""
    for x in node.walk():
        if x.kind == CursorKind.OVERLOADED_DECL_REF or (
            x.target is not None and x.target.kind in (CursorKind.FUNCTION_TEMPLATE, CursorKind.OVERLOADED_DECL_REF)
        ):
            written = run.program.unit.text(node.cursor)
            inside = written[written.index("<") + 1 : written.rindex(">")] if "<" in written and ">" in written else ""
            return FunctionValue(x.target if x.kind != CursorKind.OVERLOADED_DECL_REF else x.cursor, inside or "?")
    return unknown(run, node, node.spelling)


def variable(run: Run, frame: Frame, node: Node) -> Place | None:
    """The place of a variable: a local, a parameter, a member of *this, a global."""
    found = frame.find(node.target_key)
    if found is not None:
        return found
    target = node.target
    if target is None:
        return None
    key = node.target_key
    if key not in run.program.globals:
        declaration = run.program.nodes.of(target)
        value: Value = None
        if target.kind == CursorKind.VAR_DECL and (set_by := assigned(run, target)):
            value = _property_of_device(set_by)  # what it is initialised with is not what the launcher reads
        elif declaration.constant is not None and target.kind == CursorKind.VAR_DECL:
            value = terms.const(declaration.constant)
        elif target.kind == CursorKind.VAR_DECL and target.type.is_const_qualified() and declaration.expressions:
            value = evaluate(run, Frame(declaration), declaration.expressions[-1])
        if value is None:
            name = node.spelling
            frame.places[key] = Place(demand(run, target.type, name, node.span, "free",
                                             f"{name} is not set in the launcher"), name)  # fmt: skip
            return frame.places[key]
        run.program.globals[key] = Place(value, node.spelling)
    return run.program.globals[key]


def _property_of_device(text: str) -> Term | None:
    """`properties.multiProcessorCount` as its value."""
    known = _PROPERTIES.get(text.rsplit(".", 1)[-1]) if "." in text else None
    return known if isinstance(known, Term) else terms.const(known) if known is not None else None


def place_of(run: Run, frame: Frame, node: Node) -> Place | None:
    """The place that an expression names, None for a value without one."""
    kind = node.kind
    if kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR) and len(node.children) == 1:
        return place_of(run, frame, node.children[0])
    if kind in _CASTS and node.expressions:
        return place_of(run, frame, node.expressions[-1])
    if kind == CursorKind.DECL_REF_EXPR and node.target is not None:
        if node.target.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL):
            return variable(run, frame, node)
        return None
    if kind == CursorKind.MEMBER_REF_EXPR:
        base: Value
        base = evaluate(run, frame, node.expressions[0]) if node.expressions else this_of(frame)
        if isinstance(base, PlacePointer):
            base = base.place.value
        if isinstance(base, OptionalValue):
            base = base.value
        if isinstance(base, StructValue):
            return member(run, base, node.spelling, node.cursor.type, node.span)
        if isinstance(base, Unknown):
            return Place(_property(run, base.name, node), node.spelling)
        return None
    if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and len(node.children) == 2:
        base, index = (evaluate(run, frame, c) for c in node.children)
        return element_place(run, base, index, node)
    if kind == CursorKind.UNARY_OPERATOR and node.operator == "*":
        value = evaluate(run, frame, node.children[0])
        return value.place if isinstance(value, PlacePointer) else None
    if kind == CursorKind.CALL_EXPR and node.spelling in ("operator[]", "operator*", "operator->", "value", "at"):
        value = evaluate(run, frame, node)
        if isinstance(value, Place):
            return value
        return Place(value)
    return None


_PROPERTIES: dict[str, Any] = {
    "multiProcessorCount": Term("sm_count"), "warpSize": 32, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 49152,
    "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472, "maxThreadsPerMultiProcessor": 2048,
    "major": 9, "minor": 0, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536, "maxBlocksPerMultiProcessor": 32,
}  # fmt: skip


def _property(run: Run, owner: str, node: Node) -> Value:
    """A member of something unknown; of the device, what an H100 has."""
    found = _PROPERTIES.get(node.spelling)
    if found is not None:
        return found if isinstance(found, Term) else terms.const(found)
    return unknown(run, node, f"{owner}_{node.spelling}")


def element_place(run: Run, base: Value, index: Value, node: Node) -> Place | None:
    """The place of an element. Where the index of a small array is not known, the way decides it."""
    items: list[Place] | None = None
    at = 0
    if isinstance(base, ArrayValue):
        items = base.items
    elif isinstance(base, PlacePointer) and base.of:
        items, at = list(base.of), base.index
    if items is None or not isinstance(index, Term):
        return None
    if index.value is None:
        if not items or len(items) > 32:
            return None
        for i in range(len(items) - 1):
            if run.decide(terms.compare("==", index, terms.const(i)), node.span):
                return items[i]
        return items[-1]
    at += int(index.value)
    return items[at] if 0 <= at < len(items) else None


def _subscript(run: Run, frame: Frame, node: Node) -> Value:
    if len(node.children) != 2:
        return unknown(run, node, "element")
    base, index = (evaluate(run, frame, c) for c in node.children)
    return subscript(run, base, index, node)


def subscript(run: Run, base: Value, index: Value, node: Node) -> Value:
    """`base[index]`."""
    if isinstance(base, ListValue) and base.of is not None and isinstance(index, Term) and index.value is not None:
        t, what = base.of
        return size(run, t, int(index.value)) if what == "size" else stride(run, t, int(index.value))
    items = list_items(run, base) if isinstance(base, ListValue) else None
    if items is not None and isinstance(index, Term) and index.value is not None:
        at = int(index.value)
        return items[at] if -len(items) <= at < len(items) else unknown(run, node, "element")
    place = element_place(run, base, index, node)
    if place is not None:
        return place.value
    name = base.region.name if isinstance(base, Pointer) else base.name if isinstance(base, Unknown) else "element"
    label = f"_{index.value}" if isinstance(index, Term) and index.value is not None else "_element"
    return unknown(run, node, f"{name}{label}")


def _binary(run: Run, frame: Frame, node: Node) -> Value:
    op = node.operator
    left, right = node.children[0], node.children[1]
    if op == "=":
        value = copied(evaluate(run, frame, right))
        assign(run, frame, left, value)
        return value
    if op == ",":
        evaluate(run, frame, left)
        return evaluate(run, frame, right)
    if op in ("&&", "||"):
        a = condition(run, frame, left)
        if a.value is not None and bool(a.value) == (op == "||"):
            return a
        b = condition(run, frame, right)
        return terms.both(a, b) if op == "&&" else terms.either(a, b)
    return binary(run, op, evaluate(run, frame, left), evaluate(run, frame, right), node)


def assign(run: Run, frame: Frame, target: Node, value: Value) -> None:
    place = place_of(run, frame, target)
    if place is not None:
        run.write(place, value)
        if place.name:
            run.called(value, place.name)


def _compound(run: Run, frame: Frame, node: Node) -> Value:
    place = place_of(run, frame, node.children[0])
    b = evaluate(run, frame, node.children[1])
    a = place.value if place is not None else evaluate(run, frame, node.children[0])
    value = binary(run, node.operator[:-1], a, b, node)
    if isinstance(value, Term) and is_integer(node.children[0].type_kind) and value.real:
        value = whole_number(value)
    if place is not None:
        run.write(place, value)
    return value


def _unary(run: Run, frame: Frame, node: Node) -> Value:
    op, inner = node.operator, node.children[0]
    if op in ("x++", "++x", "x--", "--x"):
        place = place_of(run, frame, inner)
        old = place.value if place is not None else evaluate(run, frame, inner)
        new = binary(run, "+" if "+" in op else "-", old, terms.ONE, node)
        if place is not None:
            run.write(place, new)
        return old if op.startswith("x") else new
    if op == "&":
        return address(run, frame, inner)
    value = evaluate(run, frame, inner)
    if op == "*":
        if isinstance(value, PlacePointer):
            return value.place.value
        if isinstance(value, FunctionValue):
            return value
        return unknown(run, node, value.region.name + "_value" if isinstance(value, Pointer) else "value")
    if op == "!":
        return terms.negate(condition_of(run, value, node))
    x = number(run, value, node)
    if op == "-":
        return terms.neg(x)
    return terms.call("~", x) if op == "~" else x


def address(run: Run, frame: Frame, inner: Node) -> Value:
    """`&x`."""
    while inner.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR) and len(inner.children) == 1:
        inner = inner.children[0]
    if inner.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and len(inner.children) == 2:
        base, index = (evaluate(run, frame, c) for c in inner.children)
        if isinstance(base, Pointer):
            return pointers(run, "+", base, index, inner)
        items = base.items if isinstance(base, ArrayValue) else None
        place = element_place(run, base, index, inner)
        if place is not None and items is not None:
            return PlacePointer(place, items.index(place), tuple(items))
        if place is not None:
            return PlacePointer(place)
    place = place_of(run, frame, inner)
    if place is not None:
        return PlacePointer(place)
    value = evaluate(run, frame, inner)
    if isinstance(value, FunctionValue):
        return value
    return PlacePointer(Place(value))


def _conditional(run: Run, frame: Frame, node: Node) -> Value:
    test, a, b = node.children
    c = condition(run, frame, test)
    known = run.known(c)
    if known is not None:
        return converted(run, evaluate(run, frame, a if known else b), node)
    decisions = len(run.decisions)
    run.guards.append(c)
    x = evaluate(run, frame, a)
    run.guards[-1] = terms.negate(c)
    y = evaluate(run, frame, b)
    run.guards.pop()
    try:
        return run.choose(c, x, y)
    except CannotMerge:
        if len(run.decisions) != decisions:
            return x
        return x if run.decide(c, node.span) else y


def _init_list(run: Run, frame: Frame, node: Node) -> Value:
    ctype = node.cursor.type.get_canonical()
    if ctype.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
        items = [Place(copied(evaluate(run, frame, c))) for c in node.expressions]
        count = ctype.element_count if ctype.kind == TypeKind.CONSTANTARRAY else len(items)
        element = ctype.element_type
        while len(items) < min(count, 256):
            items.append(Place(blank(run, element)))
        return ArrayValue(items)
    if ctype.kind == TypeKind.RECORD and not ctype.spelling.startswith(("std::initializer_list", "std::vector")):
        return struct_from_list(run, frame, node, ctype)
    values = tuple(evaluate(run, frame, c) for c in node.expressions)
    if len(values) == 1 and (is_integer(ctype.kind) or is_float(ctype.kind) or ctype.kind == TypeKind.POINTER):
        return values[0]
    if not values and is_integer(ctype.kind):
        return terms.ZERO
    return ListValue(values)


def blank(run: Run, ctype: Any) -> Value:
    """The value of `{}`."""
    canonical = ctype.get_canonical()
    if is_integer(canonical.kind):
        return terms.ZERO
    if is_float(canonical.kind):
        return terms.const(0.0)
    if canonical.kind == TypeKind.POINTER:
        return Null()
    if canonical.kind == TypeKind.RECORD:
        made = StructValue(canonical.spelling.replace("const ", ""))
        if made.type == "dim3":
            made.members = {n: Place(terms.ONE, n) for n in "xyz"}
        else:
            made.members = {f.spelling: Place(blank(run, f.type), f.spelling) for f in canonical.get_fields()}
        return made
    if canonical.kind == TypeKind.CONSTANTARRAY:
        return ArrayValue([Place(blank(run, canonical.element_type)) for _ in range(min(canonical.element_count, 64))])
    return Null()


def struct_from_list(run: Run, frame: Frame, node: Node, ctype: Any) -> StructValue:
    fields = list(ctype.get_fields())
    made = blank(run, ctype)
    assert isinstance(made, StructValue)
    at = 0
    for item in node.children:
        parts = item.children
        if item.kind == CursorKind.UNEXPOSED_EXPR and parts and parts[0].kind == CursorKind.MEMBER_REF:
            name = parts[0].spelling  # .gridDim = ...
            value = evaluate(run, frame, parts[-1])
            at = next((i + 1 for i, f in enumerate(fields) if f.spelling == name), at)
        elif item.kind.is_expression() and at < len(fields):
            name = fields[at].spelling
            value = evaluate(run, frame, item)
            at += 1
        else:
            continue
        place = made.members.setdefault(name, Place(None, name))
        if isinstance(place.value, StructValue) and place.value.type == "dim3" and isinstance(value, Term):
            value = StructValue("dim3", {"x": Place(value), "y": Place(terms.ONE), "z": Place(terms.ONE)})
        place.value = copied(value) if value is not None else place.value
    return made
