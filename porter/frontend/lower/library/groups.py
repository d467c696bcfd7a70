"""Cooperative groups known by their base type: `thread_group` is whatever group was put into it.

A group carries no state beyond its kind, so a variable of the base type gets the type of its initialiser, and a
function is lowered once for each kind of group that it is called with.
"""

from __future__ import annotations

from porter import ir
from porter.frontend.lower.body import FunctionLowering
from porter.frontend.lower.lambdas import written_variables
from porter.frontend.lower.library.half import referee
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.clang_compat import Type as ClangType

_CG = "cooperative_groups::"
_BASE = _CG + "thread_group"
_SIZES = (1, 2, 4, 8, 16, 32)


def is_base(t: ClangType) -> bool:
    """Whether a type is the base of all groups, or a reference to it."""
    return ast.unqualified(referee(t)) == _BASE


def actual_group(fx: FunctionLowering, c: Cursor) -> ir.Struct | None:
    """The type of the group that an expression of the base type stands for; None where that is not seen."""
    while True:
        if not is_base(c.type) and ast.unqualified(referee(c.type)).startswith(_CG):
            found = fx.type(c.type)
            return found if isinstance(found, ir.Struct) else None
        if c.kind is CursorKind.DECL_REF_EXPR and c.referenced is not None:
            place = fx.lookup(c.referenced)
            known = place.type if place is not None else None
            return known if isinstance(known, ir.Struct) and known.name != _BASE else None
        inner = ast.values(c)
        if c.kind is CursorKind.CALL_EXPR and c.referenced is not None:
            if ast.qualified_name(c.referenced) == _CG + "tiled_partition":
                return _tiles(fx, ast.arguments(c))
            inner = ast.arguments(c) if c.referenced.kind is CursorKind.CONSTRUCTOR else []
        if len(inner) != 1:
            return None
        c = inner[0]


def _tiles(fx: FunctionLowering, args: list[Cursor]) -> ir.Struct | None:
    """`tiled_partition(group, n)` of a block or of tiles whose number of lanes is known."""
    size = ast.evaluate(args[1]) if len(args) == 2 else None
    parent = actual_group(fx, args[0]) if args else None
    if size not in _SIZES or parent is None or "coalesced" in parent.name:
        return None
    return ir.Struct(f"{_CG}tiled_group<{size}>", (), 1, 1)


def group_arguments(fx: FunctionLowering, function: Cursor, args: list[Cursor]) -> tuple[tuple[Cursor, ir.Struct], ...]:
    """(parameter, type of its argument) of each parameter of the base type whose argument is known."""
    params = [p for p in function.get_arguments() if p is not None]
    found = [(p, actual_group(fx, a)) for p, a in zip(params, args, strict=False) if is_base(p.type)]
    return tuple((p, t) for p, t in found if t is not None)


def declared_group(fx: FunctionLowering, d: Cursor, init: Cursor | None) -> ir.Struct | None:
    """The type that a variable of the base type keeps from its initialiser, where nothing else is assigned to it."""
    if init is None or not is_base(d.type) or d in written_variables(fx):
        return None
    return actual_group(fx, init)
