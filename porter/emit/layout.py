"""Where an object's scalars lie: the element type a pointer to it has in the port, and how many elements it spans."""

from __future__ import annotations

from dataclasses import dataclass, field

from porter import ir


@dataclass(frozen=True)
class Leaf:
    """An object of one type seen as `count` elements of `scalar`; `mixed` objects are seen as bytes.

    `absent`: the instance does not have the object; the view is that of another one.
    """

    scalar: ir.Scalar
    count: int
    mixed: bool = False
    absent: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        return ir.SCALAR_BYTES[self.scalar.name]


def scalars(t: ir.Type, offset: int = 0) -> list[tuple[int, ir.Scalar]]:
    """(byte offset, scalar) of every scalar in an object of a concrete type; pointers count as u64."""
    if isinstance(t, ir.Scalar):
        return [(offset, t)]
    if isinstance(t, ir.Pointer):
        return [(offset, ir.U64)]
    if isinstance(t, ir.Array):
        size = ir.sizeof(t.elem)
        inner = scalars(t.elem)
        return [(offset + i * size + o, s) for i in range(int(t.length)) for o, s in inner]
    assert isinstance(t, ir.Struct)
    return [x for f in t.fields for x in scalars(f.type, offset + f.offset)]


def leaf(t: ir.Type) -> Leaf:
    """The element view of a concrete type."""
    if t == ir.VOID:
        return Leaf(ir.U8, 1)
    if isinstance(t, ir.Scalar):
        return Leaf(t, 1)
    if isinstance(t, ir.Pointer):
        return Leaf(ir.U64, 1)
    if isinstance(t, ir.Array):
        inner = leaf(t.elem)
        return Leaf(inner.scalar, inner.count * int(t.length), inner.mixed)
    assert isinstance(t, ir.Struct)
    parts = [leaf(f.type) for f in t.fields]
    kinds = {p.scalar for p in parts}
    if len(kinds) == 1 and not any(p.mixed for p in parts):
        scalar = kinds.pop()
        size = ir.SCALAR_BYTES[scalar.name]
        if t.size % size == 0 and all(f.offset % size == 0 for f in t.fields):
            return Leaf(scalar, t.size // size)
    return Leaf(ir.U8, int(t.size), True)


def align_of(t: ir.Type) -> int:
    """Alignment in bytes that C++ guarantees for an object of this type."""
    if isinstance(t, ir.Scalar) and t == ir.VOID:
        return 1
    return ir.alignof(t)
