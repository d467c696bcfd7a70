"""What of a function body lies in memory, and what pointers are computed from."""

from __future__ import annotations

from typing import Any

from porter import ir
from porter.emit.generic import Variants


def is_null(e: ir.Expr) -> bool:
    """A null pointer constant."""
    while isinstance(e, ir.Cast):
        e = e.x
    return isinstance(e, ir.Const) and not e.value


def root_pointer(e: ir.Expr) -> str | None:
    """The pointer variable or array that a pointer expression is computed from."""
    while True:
        if isinstance(e, ir.PtrAdd):
            e = e.ptr
        elif isinstance(e, ir.Cast):
            e = e.x
        elif isinstance(e, ir.Select):
            e = e.b if is_null(e.a) else e.a
        elif isinstance(e, ir.AddressOf | ir.Decay):
            e = e.place
        elif isinstance(e, ir.Field | ir.Index):
            e = e.base
        elif isinstance(e, ir.Deref):
            e = e.ptr
        else:
            return e.name if isinstance(e, ir.Var) else None


def memory_names(body: Any) -> set[str]:
    """Locals that need an address: aggregates, and scalars whose address is taken or that are passed by place."""
    out: set[str] = set()
    for n in ir.walk(body):
        if isinstance(n, ir.Decl) and any(isinstance(t, ir.Array | ir.Struct) for t in _types(n.type)):
            out.add(n.name)
        elif isinstance(n, ir.AddressOf | ir.Decay):
            root: ir.Expr = n.place
            while isinstance(root, ir.Field | ir.Index):
                root = root.base
            if isinstance(root, ir.Var):
                out.add(root.name)
        elif isinstance(n, ir.SharedDecl):
            out.add(n.name)
    return out


def _types(t: ir.Type) -> tuple[Any, ...]:
    return t.types if isinstance(t, Variants) else (t,)
