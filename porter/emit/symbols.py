"""What a case says of a symbol by default: the element type and shape of its declaration."""

from __future__ import annotations

from dataclasses import replace

from porter import ir
from porter.case.model import BufferSpec, Case, Member
from porter.emit.layout import leaf


def dimensions(t: ir.Type) -> tuple[str, tuple[int, ...]]:
    """(dtype, shape) of a variable as a buffer: an array's lengths, then how many elements each entry has.

    `float t[3][4]` is f32 (3, 4), `half2 h[8]` f16 (8, 2), `float x` f32 (1,); a struct of several types is its bytes.
    """
    lengths: list[int] = []
    while isinstance(t, ir.Array):
        lengths.append(int(t.length))
        t = t.elem
    seen = leaf(t)
    if seen.count > 1 or not lengths:
        lengths.append(seen.count)
    return seen.scalar.name, tuple(lengths)


def members(t: ir.Type) -> tuple[Member, ...]:
    """The scalars and arrays of scalars in a struct, by their paths (`scale`, `inner.x`, `rows[1].first`)."""
    if not isinstance(t, ir.Struct):
        return ()
    return tuple(_members(t, "", 0))


def _members(t: ir.Type, path: str, offset: int) -> list[Member]:
    if isinstance(t, ir.Struct):
        at = f"{path}." if path else ""
        return [m for f in t.fields for m in _members(f.type, f"{at}{f.name}", offset + f.offset)]
    if isinstance(t, ir.Array):
        inner: ir.Type = t
        count = 1
        while isinstance(inner, ir.Array):
            count *= int(inner.length)
            inner = inner.elem
        if isinstance(inner, ir.Scalar):
            return [Member(path, inner.name, offset, count)]
        size = ir.sizeof(t.elem)
        return [m for i in range(int(t.length)) for m in _members(t.elem, f"{path}[{i}]", offset + i * size)]
    assert isinstance(t, ir.Scalar)
    return [Member(path, t.name, offset, 1)]


def default_spec(s: ir.Symbol) -> BufferSpec:
    """A symbol as a buffer without values."""
    dtype, shape = dimensions(s.type)
    role = "in" if s.constant else "inout"
    return BufferSpec(s.name, dtype, tuple(map(str, shape)), role=role, symbol=s.declared)


def described(s: ir.Symbol) -> str:
    """What a parameter stands for, in a docstring."""
    return f"the {s.kind} variable {s.declared}"


def byte_rows(s: ir.Symbol) -> list[str]:
    """Where the members lie of a symbol that is given as its bytes, a struct of several types; else []."""
    if not leaf(s.type).mixed or not isinstance(s.type, ir.Struct):
        return []
    rows = []
    for m in members(s.type):
        count = f"[{m.count}]" if m.count > 1 else ""
        rows.append(f"byte {m.offset}: {m.path}, {m.dtype}{count}")
    return rows


def with_symbols(case: Case, symbols: tuple[ir.Symbol, ...]) -> Case:
    """The case with each symbol that it does not give as a buffer without values: the port takes them all."""
    given = {b.name for b in case.buffers}
    missing = tuple(default_spec(s) for s in symbols if s.name not in given)
    return replace(case, buffers=(*case.buffers, *missing)) if missing else case
