"""Tensors of PyTorch, its stable ABI and tvm-ffi: sizes, strides, types, data pointers, and how new ones are made."""

from __future__ import annotations

from typing import Any

from porter.frontend.host import terms
from porter.frontend.host.demand import list_items, numel, rank, size, sizes, stride
from porter.frontend.host.nodes import Node
from porter.frontend.host.run import Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ListValue,
    Options,
    Pointer,
    Region,
    TensorValue,
    Text,
    TypeOf,
    Unknown,
    Value,
)
from porter.source import Span

_SAME = (
    "contiguous", "detach", "cuda", "to", "clone", "requires_grad_", "set_requires_grad", "zero_", "fill_", "copy_",
    "data", "_data",
)  # fmt: skip
_SIZES_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4, "Long": 8, "Double": 8,
    "Float8_e4m3fn": 1, "Float8_e5m2": 1,
}  # fmt: skip
#: C++ spelling of an element -> enumerator of ScalarType
SCALAR_TYPES = {
    "u8": "Byte", "i8": "Char", "i16": "Short", "i32": "Int", "i64": "Long", "f16": "Half", "f32": "Float",
    "f64": "Double", "bool": "Bool", "bf16": "BFloat16", "e4m3": "Float8_e4m3fn", "e5m2": "Float8_e5m2",
}  # fmt: skip


def made(run: Run, dims: list[Term] | None, dtype: str, span: Span, said_by: str, init: str = "") -> TensorValue:
    """A new tensor, which the variable that it is given to will name."""
    key = f"made {len(run.tensors)} {span}"
    t = TensorValue(key, span, dims, dtype, True, init, None, said_by)
    t.region = Region(f"made {len(run.tensors)}", span, tensor=t)
    run.tensors[key] = t
    return t


def viewed(run: Run, of: TensorValue, dims: list[Term] | None, span: Span, said_by: str) -> TensorValue:
    """The same memory under another shape."""
    key = f"view {len(run.tensors)} {of.key}"
    t = TensorValue(key, span, dims, of.dtype, of.contiguous, of.init, of.region, said_by)
    run.tensors[key] = t
    return t


def like(run: Run, of: TensorValue, dtype: str, span: Span, init: str = "") -> TensorValue:
    """`empty_like(x)`: sizes follow those of `of`, also when its rank is not known yet."""
    known = sizes(run, of)
    t = made(run, list(known) if known is not None else None, dtype or of.dtype, span, f"empty_like({of.key})", init)
    if known is None:
        run.hints.counted.add(of.key)
        t.said_by = f"like {of.key}"
    return t


def dtype_of(run: Run, t: TensorValue) -> Value:
    """The element type: decided, stated, or for the way to decide."""
    if t.dtype.startswith("="):
        return Text(t.dtype)
    known = run.dtypes.get(t.dtype)
    return Text(f"={known}") if known else TypeOf(t.dtype)


def element_bytes(run: Run, t: TensorValue) -> Term:
    found = dtype_of(run, t)
    if isinstance(found, Text) and found.value[1:] in _SIZES_BYTES:
        return terms.const(_SIZES_BYTES[found.value[1:]])
    return run.symbol(f"{t.key}_element_size", "free", t.span, default=(2, 4), reason="bytes of an element")


def pointer(run: Run, t: TensorValue, node: Node) -> Value:
    """`data_ptr<T>()`."""
    region = t.region or Region(t.key, tensor=t)
    spelled = node.cursor.type.get_canonical().get_pointee().get_canonical().spelling.replace("const ", "")
    from porter.cxx.types import scalar_name

    scalar = scalar_name(spelled)
    if scalar in SCALAR_TYPES and not t.dtype.startswith("=") and t.dtype not in run.dtypes:
        run.dtypes[t.dtype] = SCALAR_TYPES[scalar]
    return Pointer(region, terms.ZERO, spelled)


def same_sizes(run: Run, op: str, a: ListValue, b: ListValue) -> Term:
    """`a.sizes() == b.sizes()`."""
    if a.of is not None and b.of is not None:
        x, y = a.of[0], b.of[0]
        n, m = rank(run, x), rank(run, y)
        if x.dims is None and y.dims is None:
            run.hints.same.add((x.key, y.key))
        if n is None and m is not None and y.dims is None:
            run.hints.ranks[x.key] = m
        elif m is None and n is not None:
            run.hints.ranks[y.key] = n
        if n is None or m is None:
            run.hints.counted.update((x.key, y.key))
            return terms.const(op == "==")
    left, right = list_items(run, a), list_items(run, b)
    if left is None or right is None or len(left) != len(right):
        return terms.const(op == "==")
    equal = terms.both(*(terms.compare("==", p, q) for p, q in zip(left, right, strict=True) if isinstance(p, Term)
                         and isinstance(q, Term)))  # fmt: skip
    return equal if op == "==" else terms.negate(equal)


def tensor_method(run: Run, t: TensorValue, name: str, values: list[Any], node: Node) -> Value:
    """`t.name(values)`; NotImplemented for what says nothing."""
    first = values[0] if values else None
    at = int(first.value) if isinstance(first, Term) and first.value is not None else None
    if name == "size" and at is not None:
        return size(run, t, at)
    if name == "stride" and at is not None:
        return stride(run, t, at)
    if name in ("sizes", "shape"):
        return ListValue((), (t, "size"))
    if name == "strides":
        return ListValue((), (t, "stride"))
    if name == "numel":
        return numel(run, t)
    if name == "nbytes":
        return terms.mul(numel(run, t), element_bytes(run, t))
    if name in ("dim", "ndimension", "ndim"):
        n = rank(run, t)
        return terms.const(n) if n is not None else run.symbol(f"{t.key}_dim", "rank", t.span, key=f"{t.key}.rank")
    if name in ("element_size", "itemsize"):
        return element_bytes(run, t)
    if name in ("scalar_type", "dtype", "type", "scalarType"):
        return dtype_of(run, t)
    if name in ("data_ptr", "mutable_data_ptr", "const_data_ptr", "data") and node.type_text.endswith("*"):
        return pointer(run, t, node)
    if name == "options":
        return Options(t.dtype)
    if name in ("is_cuda", "is_contiguous", "IsContiguous", "is_non_overlapping_and_dense"):
        return terms.TRUE
    if name in ("is_cpu", "is_sparse", "requires_grad", "is_meta"):
        return terms.FALSE
    if name == "defined":
        return terms.const(t.said_by != "undefined")
    if name == "storage_offset" or name == "byte_offset":
        return terms.ZERO
    if name in ("get_device", "get_device_index"):
        return terms.ZERO
    if name in ("device", "layout"):
        return Unknown("device", node.span)
    if name in _SAME:
        dtype = next((v for v in values if isinstance(v, (Text, TypeOf, Options))), None)
        if name == "to" and isinstance(dtype, Text) and dtype.value.startswith("="):
            known = sizes(run, t)
            return made(run, list(known) if known else None, dtype.value, node.span, f"{t.key} in another type")
        return t
    if name in ("view", "reshape", "resize_", "new_empty", "new_zeros", "new_ones", "new_full", "expand"):
        dims = _given_dims(run, values)
        if name.startswith("new_"):
            option = next((v for v in values if isinstance(v, (Options, Text))), None)
            dtype_key = option.dtype if isinstance(option, Options) else option.value if option else ""
            return made(run, dims, dtype_key or t.dtype, node.span, f"{name}()", name.removeprefix("new_"))
        if dims is not None:
            dims = _inferred(run, t, dims)
        return viewed(run, t, dims, node.span, f"a {name} of {t.key}")
    if name == "flatten":
        return viewed(run, t, [numel(run, t)] if not values else None, node.span, f"{t.key}, flattened")
    if name in ("unsqueeze", "squeeze", "select", "narrow", "slice", "transpose", "t", "permute", "index"):
        return viewed(run, t, _reshaped(run, t, name, values), node.span, f"a {name} of {t.key}")
    if name == "item":
        return run.symbol(f"{t.key}_item", "free", node.span, reason=f"an element of {t.key}")
    if name in ("sum", "max", "min", "abs", "sqrt", "pow", "mul", "add"):
        return made(run, None, t.dtype, node.span, f"{name}()")
    return NotImplemented


def _given_dims(run: Run, values: list[Any]) -> list[Term] | None:
    """The sizes that a call is given: in a list, or one by one."""
    if values and isinstance(values[0], (ListValue,)):
        items = list_items(run, values[0])
    else:
        items = []
        for v in values:
            if not isinstance(v, Term):
                break
            items.append(v)
    if not items:
        return [] if items == [] and values and isinstance(values[0], ListValue) else None
    return [i for i in items if isinstance(i, Term)] if all(isinstance(i, Term) for i in items) else None


def _inferred(run: Run, t: TensorValue, dims: list[Term]) -> list[Term]:
    """A size of -1 is what is left."""
    minus = terms.const(-1)
    if minus not in dims:
        return dims
    rest = terms.ONE
    for d in dims:
        rest = rest if d == minus else terms.mul(rest, d)
    return [terms.div(numel(run, t), rest) if d == minus else d for d in dims]


def _reshaped(run: Run, t: TensorValue, name: str, values: list[Any]) -> list[Term] | None:
    known = sizes(run, t)
    if known is None:
        return None
    at = [int(v.value) for v in values if isinstance(v, Term) and v.value is not None]
    dims = list(known)
    if name == "unsqueeze" and at:
        where = at[0] if at[0] >= 0 else at[0] + len(dims) + 1
        return [*dims[:where], terms.ONE, *dims[where:]]
    if name == "squeeze" and at and len(dims) > 1:
        del dims[at[0]]
        return dims
    if name == "select" and at and len(dims) > 1:
        del dims[at[0]]
        return dims
    if name == "transpose" and len(at) == 2:
        dims[at[0]], dims[at[1]] = dims[at[1]], dims[at[0]]
        return dims
    if name == "t" and len(dims) == 2:
        return [dims[1], dims[0]]
    return None


def factory(run: Run, name: str, values: list[Any], node: Node) -> Value:
    """torch::empty({...}), zeros, ones, full and their `_like`; NotImplemented for another function."""
    options = next((v for v in values if isinstance(v, Options)), None)
    stated = next((v for v in values if isinstance(v, (Text, TypeOf))), None)
    dtype = options.dtype if options else ""
    if isinstance(stated, Text) and stated.value.startswith("="):
        dtype = stated.value
    elif isinstance(stated, TypeOf):
        dtype = stated.key
    base = name.removesuffix("_like")
    if base not in ("empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "from_blob"):
        return NotImplemented
    if name.endswith("_like"):
        if values and isinstance(values[0], TensorValue):
            return like(run, values[0], dtype, node.span, base)
        return NotImplemented
    if base == "from_blob":
        return NotImplemented
    dims = _given_dims(run, values)
    return made(run, dims, dtype or "=Float", node.span, f"torch::{name}", base)
