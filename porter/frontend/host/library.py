"""What calls of libraries give: the C++ library, the CUDA runtime, PyTorch."""

from __future__ import annotations

from collections.abc import Callable

from porter.frontend.host import memory, terms
from porter.frontend.host.conversions import converted, number
from porter.frontend.host.demand import demand, list_items, present
from porter.frontend.host.expressions import condition, evaluate, place_of, subscript
from porter.frontend.host.nodes import Node, is_float
from porter.frontend.host.operators import arithmetic
from porter.frontend.host.run import Frame, PathEnds, Run
from porter.frontend.host.tensors import SIZES_BYTES, factory, tensor_method
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    ListValue,
    Null,
    OptionalValue,
    Options,
    Place,
    PlacePointer,
    Pointer,
    StructValue,
    TensorValue,
    Text,
    TypeOf,
    Unknown,
    Value,
)
from porter.frontend.parse.clang_compat import Cursor

_DEVICE = {  # cudaDeviceAttr -> what an H100 has; 16 is the number of multiprocessors
    1: 1024, 8: 49152, 10: 32, 39: 2048, 75: 9, 76: 0, 81: 233472, 97: 232448, 95: 1, 106: 32, 5: 2147483647, 6: 65535,
}  # fmt: skip
_ALLOCATE = ("cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc")
_QUIET = (
    "cudaGetLastError", "cudaPeekAtLastError", "cudaDeviceSynchronize", "cudaFuncSetAttribute", "cudaSetDevice",
    "cudaStreamSynchronize", "cudaFree", "cudaFreeAsync", "cudaFuncSetCacheConfig", "cudaFreeHost", "cudaEventRecord",
    "cudaEventSynchronize", "cudaEventCreate", "cudaEventDestroy", "cudaGetErrorString", "cudaStreamCreate",
    "printf", "fprintf", "free", "cudaMemPrefetchAsync", "cudaDeviceReset", "cudaFuncGetAttributes",
)  # fmt: skip


def library_call(run: Run, frame: Frame, node: Node, target: Cursor, arguments: list[Node]) -> Value:
    """The value of a call of a function without a body here; NotImplemented where it says nothing."""
    name = node.spelling or target.spelling
    if name in ("__porter_fail", "exit", "abort", "terminate"):
        raise PathEnds
    if name in ("__porter_check", "__assert_porter") and arguments:
        c = condition(run, frame, arguments[0])
        if not any(run.symbols[s].kind == "free" for s in terms.symbols(c) if s in run.symbols):
            run.require(c, node.span)
        return None
    if name in _QUIET:
        return terms.ZERO
    if name in _ALLOCATE and len(arguments) >= 2:
        return memory.allocate(run, frame, node, arguments)
    if name in ("cudaMemcpy", "cudaMemcpyAsync"):
        return memory.copy(run, frame, node, arguments)
    if name in ("cudaMemset", "cudaMemsetAsync"):
        return memory.fill(run, frame, node, arguments)
    if name in ("malloc", "calloc"):
        values = [evaluate(run, frame, a) for a in arguments]
        if all(isinstance(v, Term) for v in values) and values:
            total = values[0] if len(values) == 1 else terms.mul(values[0], values[1])
            return memory.allocated(run, "made malloc", size=total, node=node)
    if name == "cudaDeviceGetAttribute" and len(arguments) >= 2:
        return _attribute(run, frame, node, arguments)
    if name in ("cudaGetDeviceProperties", "cudaGetDevice"):
        return _device(run, frame, node, arguments, name)
    if name in ("getCurrentDeviceProperties", "getDeviceProperties"):
        return PlacePointer(Place(Unknown("device", node.span)))
    if name == "cudaOccupancyMaxActiveBlocksPerMultiprocessor" and arguments:
        return _written(run, frame, node, arguments[0], (1, 2), "blocks that fit on a multiprocessor")
    if name == "cudaOccupancyMaxPotentialBlockSize" and len(arguments) >= 2:
        _written(run, frame, node, arguments[0], (132,), "the least grid that fills the device")
        return _written(run, frame, node, arguments[1], (256,), "the block that the runtime chooses")
    values = [evaluate(run, frame, a) for a in arguments]
    return _of_values(run, name, values, node)


def _of_values(run: Run, name: str, values: list[Value], node: Node) -> Value:
    made = factory(run, name, values, node)
    if made is not NotImplemented:
        return made
    if values and isinstance(values[0], TensorValue):
        found = tensor_method(run, values[0], name, values[1:], node)
        if found is not NotImplemented:
            return found
    if name in ("as_scalar_type", "typeMetaToScalarType", "scalarTypeToTypeMeta") and values:
        return values[0]
    if name in ("move", "forward", "ref", "cref", "as_const", "addressof", "data") and values:
        return values[0]
    if name in ("make_optional",) and values:
        return OptionalValue("", values[0], True)
    if name in ("isFloatingType",):
        return terms.TRUE
    if name == "elementSize" and values:
        v = values[0]
        if isinstance(v, Text) and v.value.lstrip("=") in SIZES_BYTES:
            return terms.const(SIZES_BYTES[v.value.lstrip("=")])
        return run.symbol("element_size", "free", node.span, default=(2, 4), reason="bytes of an element")
    if name in ("dtype", "TensorOptions") and values:
        v = values[0]
        return Options(v.key if isinstance(v, TypeOf) else v.value) if isinstance(v, (TypeOf, Text)) else Options("")
    if name in ("device", "device_of"):
        return Options("")
    if name in ("sm_count", "get_num_sms", "getMultiProcessorCount"):
        return Term("sm_count")
    if name in ("warp_size",):
        return terms.const(32)
    return _mathematics(run, name, values, node)


def _mathematics(run: Run, name: str, values: list[Value], node: Node) -> Value:
    numbers = [v for v in values if isinstance(v, Term)]
    if len(numbers) != len(values) or not numbers:
        if name in ("min", "max") and values and isinstance(values[0], ListValue):
            items = [i for i in list_items(run, values[0]) or [] if isinstance(i, Term)]
            return _folded(name, items) if items else NotImplemented
        if name not in ("min", "max", "ceil_div", "ATenCeilDiv"):
            return NotImplemented
        numbers = [number(run, v, node) for v in values]
    table: dict[str, Callable[[], Value]] = {
        "ceil_div": lambda: terms.ceil_div(numbers[0], numbers[1]),
        "ATenCeilDiv": lambda: terms.ceil_div(numbers[0], numbers[1]),
        "abs": lambda: terms.call("abs", numbers[0]),
        "sqrt": lambda: terms.call("sqrt", numbers[0]),
        "sqrtf": lambda: terms.call("sqrt", numbers[0]),
        "rsqrtf": lambda: arithmetic("/", terms.const(1.0), terms.call("sqrt", numbers[0]), True),
        "ceil": lambda: Term("ceil", (numbers[0],), True) if numbers[0].real else numbers[0],
        "floor": lambda: Term("floor", (numbers[0],), True) if numbers[0].real else numbers[0],
    }  # fmt: skip
    table |= {"ceilf": table["ceil"], "floorf": table["floor"]}
    if name in ("min", "max", "fminf", "fmaxf", "fmin", "fmax") and len(numbers) >= 2:
        return _folded("min" if "min" in name else "max", numbers[:2])
    if name in ("ceil_div", "ATenCeilDiv") and len(numbers) != 2:
        return NotImplemented
    if name in table:
        return table[name]()
    if name in ("pow", "powf") and len(numbers) == 2 and all(n.value is not None for n in numbers):
        try:
            found = float(numbers[0].value or 0) ** float(numbers[1].value or 0)
        except (OverflowError, ZeroDivisionError):
            return NotImplemented
        return terms.const(found) if isinstance(found, float) else NotImplemented
    if name == "numeric_limits":
        return NotImplemented
    return NotImplemented


def _folded(name: str, numbers: list[Term]) -> Term:
    total = numbers[0]
    for n in numbers[1:]:
        total = terms.call(name, total, n)
    return total


def _attribute(run: Run, frame: Frame, node: Node, arguments: list[Node]) -> Value:
    which = evaluate(run, frame, arguments[1])
    address = evaluate(run, frame, arguments[0])
    if isinstance(address, PlacePointer):
        known: Value = None
        if isinstance(which, Term) and which.value is not None:
            number_ = int(which.value)
            known = Term("sm_count") if number_ == 16 else terms.const(_DEVICE[number_]) if number_ in _DEVICE else None
        if known is None:
            name = address.place.name or "attribute"
            known = run.symbol(name, "free", node.span, reason="a property of the device")
        run.write(address.place, known)
    return terms.ZERO


def _device(run: Run, frame: Frame, node: Node, arguments: list[Node], name: str) -> Value:
    address = evaluate(run, frame, arguments[0])
    if isinstance(address, PlacePointer):
        run.write(address.place, terms.ZERO if name == "cudaGetDevice" else Unknown("device", node.span))
    return terms.ZERO


def _written(run: Run, frame: Frame, node: Node, argument: Node, default: tuple[int, ...], reason: str) -> Value:
    """A number that the runtime writes: a free size."""
    address = evaluate(run, frame, argument)
    place = address.place if isinstance(address, PlacePointer) else place_of(run, frame, argument)
    if place is not None:
        run.write(place, run.symbol(place.name or "blocks", "free", node.span, default=default, reason=reason))
    return terms.ZERO


def method_call(
    run: Run, frame: Frame, node: Node, base: Value, name: str, arguments: list[Node], place: Place | None
) -> Value:
    """`base.name(...)` of a class of a library; NotImplemented where it says nothing."""
    if isinstance(base, OptionalValue):
        if name in ("has_value", "operator bool", "defined"):
            return terms.const(present(run, base))
        if name == "value_or":
            return base.value if present(run, base) else evaluate(run, frame, arguments[0])
        return base.value
    if isinstance(base, TensorValue):
        if name in ("accessor", "packed_accessor32", "packed_accessor64", "packed_accessor"):
            return NotImplemented
        return tensor_method(run, base, name, [evaluate(run, frame, a) for a in arguments], node)
    if isinstance(base, (TypeOf, Text)):
        if name in ("scalarType", "operator c10::ScalarType", "c_str", "toScalarType"):
            return base
        if name in ("itemsize",):
            return _of_values(run, "elementSize", [base], node)
    if isinstance(base, Options):
        values = [evaluate(run, frame, a) for a in arguments]
        if name == "dtype" and values and isinstance(values[0], (TypeOf, Text)):
            return Options(values[0].key if isinstance(values[0], TypeOf) else values[0].value)
        return base
    if isinstance(base, (ListValue, ArrayValue)):
        return _list_method(run, frame, node, base, name, arguments, place)
    if (isinstance(base, Pointer) and base.region.name.startswith("made vector")) or isinstance(base, Pointer):
        if name in ("data", "get", "begin"):
            return base
        if name == "size" and base.region.bytes is not None and base.region.bytes.op == "elements":
            return base.region.bytes.parts[0]
    if isinstance(base, Term) and name in ("to", "toDouble", "toFloat", "toLong", "toInt", "item", "operator long",
                                           "operator int64_t"):  # fmt: skip
        return converted(run, base, node)
    if isinstance(base, StructValue) and name == "operator uint3":
        return base
    if isinstance(base, PlacePointer) and name == "get":
        return base
    if isinstance(base, (Null,)) and name in ("defined", "has_value"):
        return terms.FALSE
    if isinstance(base, Unknown):
        return _unknown_method(run, node, base, name, [evaluate(run, frame, a) for a in arguments])
    return NotImplemented


def _list_method(
    run: Run, frame: Frame, node: Node, base: ListValue | ArrayValue, name: str, arguments: list[Node],
    place: Place | None,
) -> Value:  # fmt: skip
    items = list_items(run, base)
    if name in ("vec", "begin", "to_vector"):
        return base
    if name == "size":
        if items is not None:
            return terms.const(len(items))
        if isinstance(base, ListValue) and base.of is not None:
            t = base.of[0]
            return run.symbol(f"{t.key}_dim", "rank", t.span, key=f"{t.key}.rank")
    if name == "data" and items is not None:
        places = tuple(base.items) if isinstance(base, ArrayValue) else tuple(Place(i) for i in items)
        return PlacePointer(places[0], 0, places) if places else Null()
    if name in ("back", "front"):
        return subscript(run, base, terms.const(-1 if name == "back" else 0), node)
    if name in ("at", "operator[]") and arguments:
        return subscript(run, base, evaluate(run, frame, arguments[0]), node)
    if name in ("push_back", "emplace_back") and items is not None and arguments and place is not None:
        run.write(place, ListValue((*items, evaluate(run, frame, arguments[0]))))
        return None
    if name == "pop_back" and items:
        if place is not None:
            run.write(place, ListValue(tuple(items[:-1])))
        return None
    if name == "empty" and items is not None:
        return terms.const(not items)
    return NotImplemented


def _unknown_method(run: Run, node: Node, base: Unknown, name: str, values: list[Value]) -> Value:
    """A method of something that is not seen: a stream, an accessor, a list of tensors."""
    first = values[0] if values else None
    label = f"_{first.value}" if isinstance(first, Term) and first.value is not None else ""
    kind = "dim" if name in ("size", "stride", "numel") else "free"
    if name in ("stream", "operator CUstream_st *"):
        return base
    reason = "" if kind == "dim" else f"{name}() cannot be seen through"
    text = f"{base.name}_{name}{label}" if not is_float(node.type_kind) or name != "item" else base.name
    return demand(run, node.cursor.type, text, node.span, kind, reason)
