"""Which memory a pointer points into: CuTeDSL pointers carry it in their type, so a variable must keep one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from porter import ir

Spaces = dict[str, frozenset[str]]  # variable -> "shared", "global", "local", "generic" or "param:<name>"
_SAME = ("__builtin_assume_aligned",)


def pointer_spaces(body: Any, known: Mapping[str, str]) -> Spaces:
    """The spaces of every variable of a body; `known` are those of its parameters and tables."""
    out: Spaces = {name: frozenset({space}) for name, space in known.items()}
    moves: list[tuple[str, ir.Expr]] = []
    for n in ir.walk(body):
        if isinstance(n, ir.SharedDecl):
            out[n.name] = frozenset({"shared"})
        elif isinstance(n, ir.Decl):
            if not _is_pointer(n.type):
                out.setdefault(n.name, frozenset({"local"}))
            elif n.init is not None:
                moves.append((n.name, n.init))
        elif isinstance(n, ir.Assign) and isinstance(n.target, ir.Var) and _is_pointer(n.target.type):
            moves.append((n.target.name, n.value))
    changed = True
    while changed:
        changed = False
        for name, value in moves:
            new = out.get(name, frozenset()) | space_of(value, out)
            if new != out.get(name, frozenset()):
                out[name] = new
                changed = True
    return out


def space_of(e: Any, spaces: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The spaces that a pointer value may point into; empty for null and for what is not known."""
    if isinstance(e, ir.Var):
        return spaces.get(e.name, frozenset())
    if isinstance(e, ir.PtrAdd):
        return space_of(e.ptr, spaces)
    if isinstance(e, ir.Cast):
        return space_of(e.x, spaces) if _is_pointer(e.x.type) else frozenset({"generic"})
    if isinstance(e, ir.Select):
        return space_of(e.a, spaces) | space_of(e.b, spaces)
    if isinstance(e, ir.AddressOf | ir.Decay):
        return _of_place(e.place, spaces)
    if isinstance(e, ir.Field | ir.Index | ir.Deref):
        return frozenset({"generic"})  # a pointer kept in memory has lost its space
    if isinstance(e, ir.Intrinsic) and e.name in _SAME and e.args:
        return space_of(e.args[0], spaces)
    if isinstance(e, ir.Intrinsic) and e.name == "lib.map_shared_rank":
        return frozenset({"generic"})
    return frozenset()


def _of_place(place: Any, spaces: Mapping[str, frozenset[str]]) -> frozenset[str]:
    while isinstance(place, ir.Field | ir.Index):
        place = place.base
    return space_of(place.ptr, spaces) if isinstance(place, ir.Deref) else space_of(place, spaces)


def mixed(found: Iterable[str]) -> bool:
    """Whether a pointer into these spaces needs the generic one."""
    return len(set(found)) > 1


def is_number(found: frozenset[str]) -> bool:
    """Whether pointers into these spaces are their generic address: global memory, or generic already."""
    return bool(found) and found <= {"global", "generic"}


def _is_pointer(t: Any) -> bool:
    types = getattr(t, "types", (t,))  # Variants of a merged body
    return all(isinstance(x, ir.Pointer) for x in types if x is not None)
