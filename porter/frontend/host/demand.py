"""Values made on demand: of parameters, of results that cannot be seen through, of tensors' sizes and types."""

from __future__ import annotations

import re
from typing import Any

from porter.frontend.host import terms
from porter.frontend.host.nodes import is_float, is_integer
from porter.frontend.host.run import Hints, Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    ListValue,
    Null,
    OptionalValue,
    Place,
    PlacePointer,
    Pointer,
    Region,
    StructValue,
    TensorValue,
    Unknown,
    Value,
)
from porter.frontend.parse.clang_compat import CursorKind, TypeKind
from porter.source import NO_SPAN, Span

_TENSOR = re.compile(r"\b(Tensor|TensorView)$")
_OPTIONAL = re.compile(r"\b([Oo]ptional)<(.*)>$")
_STREAMS = re.compile(r"\b(CUstream_st|CUDAStream|CUevent_st|cublasContext|Stream)\b")
_LISTS = re.compile(r"\b(ArrayRef|vector|initializer_list|TensorList|ShapeView|array)<?")


def plain(spelling: str) -> str:
    """A type without const and reference."""
    return re.sub(r"\bconst\b|\bvolatile\b|&", " ", spelling).strip()


def tensor(run: Run, key: str, span: Span = NO_SPAN) -> TensorValue:
    """The tensor of this name: the same one on every demand."""
    if key not in run.tensors:
        made = TensorValue(key, span)
        made.region = Region(key, span, tensor=made)
        made.dtype = key
        run.tensors[key] = made
    return run.tensors[key]


def demand(run: Run, ctype: Any, name: str, span: Span = NO_SPAN, kind: str = "param", reason: str = "") -> Value:
    """A value of a C++ type of which nothing but a name is known."""
    canonical = ctype.get_canonical()
    if canonical.kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
        canonical = canonical.get_pointee().get_canonical()
    text = plain(canonical.spelling)
    if is_float(canonical.kind):
        return run.symbol(name, kind, span, real=True, reason=reason)
    if is_integer(canonical.kind):
        values: tuple[int, ...] = ()
        if canonical.kind == TypeKind.ENUM:
            if text.endswith("ScalarType"):
                return Unknown(name, span)
            declaration = canonical.get_declaration()
            values = tuple(c.enum_value for c in declaration.get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL)
        return run.symbol(name, kind, span, boolean=canonical.kind == TypeKind.BOOL, enumerators=values, reason=reason)
    if _STREAMS.search(text):
        return Unknown(name, span)
    if _TENSOR.search(text):
        return tensor(run, name, span)
    optional = _OPTIONAL.search(text)
    if optional:
        inner = canonical.get_template_argument_type(0)
        value = demand(run, inner, name, span, kind) if inner.kind != TypeKind.INVALID else tensor(run, name, span)
        return OptionalValue(name, value)
    if canonical.kind == TypeKind.POINTER:
        target = canonical.get_pointee()
        under = target.get_canonical()
        if under.kind == TypeKind.FUNCTIONPROTO:
            return Unknown(name, span)
        if under.kind == TypeKind.RECORD and not is_element(under):
            if _TENSOR.search(plain(under.spelling)):
                return PlacePointer(Place(tensor(run, name, span), name))
            return PlacePointer(Place(demand(run, under, name, span, kind), name))
        return Pointer(region(run, name, span), terms.ZERO, plain(target.get_canonical().spelling))
    if canonical.kind == TypeKind.CONSTANTARRAY and canonical.element_count <= 64:
        element = canonical.element_type
        return ArrayValue(
            [Place(demand(run, element, f"{name}_{i}", span, kind)) for i in range(canonical.element_count)]
        )
    if _LISTS.search(text) and "::" in text:
        return Unknown(name, span)
    if canonical.kind == TypeKind.RECORD and is_number(text):
        return run.symbol(name, kind, span, real=True, reason=reason)
    if canonical.kind == TypeKind.RECORD and canonical.get_declaration().get_definition() is not None:
        return StructValue(text, {}, name)
    return Unknown(name, span)


_NUMBERS = re.compile(r"(^|::)(__half|__nv_bfloat16|Half|BFloat16|Float8_\w+|__nv_fp8_\w+|half_t|bfloat16_t|Scalar)$")
_VECTORS = re.compile(
    r"^(?:struct )?(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]$|^__(?:half|nv_bfloat16)2$|(?:^|::)complex<"
)


def is_number(spelling: str) -> bool:
    return bool(_NUMBERS.search(plain(spelling)))


def is_element(canonical: Any) -> bool:
    """Whether pointers to this class lead to memory of the device: numbers and small vectors of them."""
    text = plain(canonical.spelling)
    return is_number(text) or bool(_VECTORS.search(text)) or text in ("void",)


def region(run: Run, name: str, span: Span = NO_SPAN) -> Region:
    if name not in run.regions:
        run.regions[name] = Region(name, span)
    return run.regions[name]


def member(run: Run, struct: StructValue, name: str, ctype: Any, span: Span) -> Place:
    """A member of a struct; one that nothing has set is made from the struct's name."""
    if name not in struct.members:
        kind = "param" if struct.name else "free"
        whole = f"{struct.name}_{name}" if struct.name else name
        struct.members[name] = Place(demand(run, ctype, whole, span, kind), name)
    return struct.members[name]


# ---------------------------------------------------------------- tensors


def rank(run: Run, t: TensorValue) -> int | None:
    if t.dims is not None:
        return len(t.dims)
    return run.hints.ranks.get(t.key)


def size(run: Run, t: TensorValue, index: int) -> Term:
    """`t.size(index)`, also from the back."""
    if t.dims is not None:
        at = index + len(t.dims) if index < 0 else index
        return t.dims[at] if 0 <= at < len(t.dims) else terms.ONE
    if index >= 0:
        run.hints.first[t.key] = max(run.hints.first.get(t.key, 0), index + 1)
    else:
        run.hints.last[t.key] = max(run.hints.last.get(t.key, 0), -index)
    n = run.hints.ranks.get(t.key)
    if n is not None:
        index = index + n if index < 0 else index
    label = str(index) if index >= 0 else f"last{-index if index < -1 else ''}"
    key = f"{t.key}.{label}"
    return run.symbol(f"{t.key}_{label}", "dim", t.span, key=key)


def sizes(run: Run, t: TensorValue) -> list[Term] | None:
    """All sizes, where the rank is known."""
    if t.dims is not None:
        return t.dims
    n = run.hints.ranks.get(t.key)
    return None if n is None else [size_quietly(run, t, i) for i in range(n)]


def size_quietly(run: Run, t: TensorValue, index: int) -> Term:
    """As `size`, without its asking being a sign of the rank."""
    first = run.hints.first.get(t.key)
    found = size(run, t, index)
    if first is None:
        run.hints.first.pop(t.key, None)
    else:
        run.hints.first[t.key] = first
    return found


def numel(run: Run, t: TensorValue) -> Term:
    run.hints.counted.add(t.key)
    known = sizes(run, t)
    if known is None:
        return run.symbol(f"{t.key}_numel", "dim", t.span, key=f"{t.key}.numel")
    total = terms.ONE
    for d in known:
        total = terms.mul(total, d)
    return total


def stride(run: Run, t: TensorValue, index: int) -> Term:
    """A stride in elements: that of contiguous rows where the tensor is made here or the host insists on it, else a
    size of its own."""
    n = rank(run, t)
    if n is not None and index < 0:
        index += n
    if n is not None and index == n - 1:
        return terms.ONE
    if index == -1:
        return terms.ONE
    if t.dims is not None and index >= 0:
        total = terms.ONE
        for d in t.dims[index + 1 :]:
            total = terms.mul(total, d)
        return total
    if n is None and index >= 0:
        run.hints.first[t.key] = max(run.hints.first.get(t.key, 0), index + 1)
    label = str(index) if index >= 0 else f"last{-index}"
    found = run.symbol(f"{t.key}_stride_{label}", "dim", t.span, key=f"{t.key}.stride.{label}")
    run.dims[t.key, f"stride{label}"] = found
    return found


def settle_ranks(hints: Hints) -> bool:
    """Decide the ranks of tensors from what was asked of them; True when one is new: then the run is repeated."""
    changed = False
    for key in {*hints.first, *hints.last, *hints.counted} - hints.dimensioned:
        first, last = hints.first.get(key, 0), hints.last.get(key, 0)
        n = first + last
        if last > 1 and first:
            n = max(first + 1, last)
        if key in hints.counted and (not first or not last) and n:
            n += last > 0 and first == 0  # numel() / size(-1) are the rows
        n = max(n, 1)
        if first == 0 and last == 1 and key not in hints.counted:
            n = 2
        if hints.ranks.get(key) != n and n > hints.ranks.get(key, 0):
            hints.ranks[key] = n
            changed = True
    for a, b in hints.same:
        n = max(hints.ranks.get(a, 0), hints.ranks.get(b, 0))
        for key in (a, b):
            if n and hints.ranks.get(key, 0) < n:
                hints.ranks[key] = n
                changed = True
    return changed


def null_of(run: Run, value: Value, span: Span) -> bool | None:
    """Whether a pointer is null, as this way has it; None where that is no question."""
    if isinstance(value, Null):
        return True
    if isinstance(value, Pointer):
        key = value.region.name
        if value.region.tensor is not None or value.region.bytes is not None or value.offset != terms.ZERO:
            return False
        if key not in run.nulls:
            run.nulls[key] = run.pick(f"null {key}", 2) == 1
        return run.nulls[key]
    return bool(isinstance(value, Term) and value.value == 0)


def present(run: Run, value: OptionalValue) -> bool:
    """Whether an optional holds something, as this way has it."""
    if value.present is not None:
        return value.present
    if value.key not in run.nulls:
        run.nulls[value.key] = run.pick(f"null {value.key}", 2) == 1
    return not run.nulls[value.key]


def list_items(run: Run, value: Value) -> list[Value] | None:
    """The items of a list, an array or the sizes of a tensor of known rank."""
    if isinstance(value, ListValue):
        if value.of is None:
            return list(value.items)
        t, what = value.of
        n = rank(run, t)
        if n is None:
            return None
        return [size_quietly(run, t, i) if what == "size" else stride(run, t, i) for i in range(n)]
    if isinstance(value, ArrayValue):
        return [p.value for p in value.items]
    return None
