"""What of a function body lies in memory, and what pointers are computed from."""

from __future__ import annotations

from typing import Any

from porter import ir
from porter.emit.generic import Variants
from porter.emit.text import is_null_constant


def root_pointer(e: ir.Expr) -> str | None:
    """The pointer variable or array that a pointer expression is computed from; of `p ? p + 1 : nullptr` the one that
    is not null."""
    e = ir.origin(e)
    while isinstance(e, ir.Select):
        e = ir.origin(e.b if is_null_constant(e.a) else e.a)
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
