"""Memory that the host allocates and copies: how long buffers are."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.demand import demand, without_qualifiers
from porter.frontend.host.expressions import evaluate, place_of
from porter.frontend.host.nodes import Node
from porter.frontend.host.run import Frame, Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import Place, PlacePointer, Pointer, Region, Value
from porter.frontend.parse.clang_compat import CursorKind, TypeKind


def allocated(run: Run, name: str, *, size: Term | None = None, count: Term | None = None, node: Node | None = None,
              element: str = "") -> Pointer:  # fmt: skip
    """A pointer to new memory of `size` bytes or `count` elements."""
    made = Region(name)
    if node is not None:
        made.span = node.span
    made.bytes = size
    if count is not None:
        made.bytes = Term("elements", (count,))
    made.said_by = "its allocation"
    return Pointer(made, terms.ZERO, element)


def new_array(run: Run, frame: Frame, node: Node) -> Value:
    """`new T[n]`."""
    ctype = node.cursor.type.get_canonical()
    if ctype.kind == TypeKind.POINTER:
        target = ctype.get_pointee().get_canonical()
        if target.kind == TypeKind.RECORD and not node.children:
            return PlacePointer(Place(demand(run, target, target.spelling.split("::")[-1], node.span, "free")))
        counts = [evaluate(run, frame, c) for c in node.expressions if c.kind != CursorKind.INIT_LIST_EXPR]
        count = next((c for c in counts if isinstance(c, Term)), terms.ONE)
        return allocated(run, "made new", count=count, node=node, element=without_qualifiers(target.spelling))
    return demand(run, ctype, "new", node.span, "free")


def allocate(run: Run, frame: Frame, node: Node, arguments: list[Node]) -> Value:
    """cudaMalloc and its relatives: the pointer behind the first argument leads to new memory."""
    address = evaluate(run, frame, arguments[0])
    size = evaluate(run, frame, arguments[1])
    place = address.place if isinstance(address, PlacePointer) else place_of(run, frame, arguments[0])
    if place is not None:
        element = place.value.element if isinstance(place.value, Pointer) else ""
        made = allocated(run, place.name or "buffer", size=size if isinstance(size, Term) else None, node=node,
                         element=element)  # fmt: skip
        run.write(place, made)
    return terms.ZERO


def copy(run: Run, frame: Frame, node: Node, arguments: list[Node]) -> Value:
    """cudaMemcpy: what it copies is at least that long."""
    values = [evaluate(run, frame, a) for a in arguments[:3]]
    for v in values[:2]:
        if isinstance(v, Pointer) and len(values) == 3 and isinstance(values[2], Term) and v.offset == terms.ZERO:
            _is_long(v.region, values[2], node)
    return terms.ZERO


def fill(run: Run, frame: Frame, node: Node, arguments: list[Node]) -> Value:
    """cudaMemset: likewise; and the memory starts with that value."""
    values = [evaluate(run, frame, a) for a in arguments[:3]]
    if len(values) == 3 and isinstance(values[0], Pointer) and isinstance(values[2], Term):
        _is_long(values[0].region, values[2], node)
        if isinstance(values[1], Term) and values[1].value == 0 and values[0].offset == terms.ZERO:
            values[0].region.zeroed = node.span
    return terms.ZERO


def _is_long(region: Region, size: Term, node: Node) -> None:
    if region.bytes is None and region.tensor is None:
        region.bytes, region.said_by = size, "a copy of it"
        region.span = node.span
