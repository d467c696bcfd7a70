"""The names of what a pass with several patterns did at one place, from the statements before and after it."""

from __future__ import annotations

from porter import ir
from porter.patterns.library import CG
from porter.patterns.marks import Statements, leaves_in, own_nodes
from porter.patterns.tables.intrinsics import LOADS, STORES

_SINCOS = {"sincosf", "__sincosf", "sincos"}


def exits(before: Statements, after: Statements) -> tuple[str, ...]:
    """Ways out of a body. A flag that stands before all else belongs to a return inside a loop."""
    leaves = {leaf for s in before for leaf in leaves_in(s)}
    found = {
        "switch_chain": any(isinstance(s, ir.Switch) for s in before),
        "do_while": any(isinstance(s, ir.DoWhile) for s in before),
        "loop_exit": bool(leaves & {ir.Break, ir.Continue}),
        "guard": ir.Return in leaves,
    }
    return tuple(name for name, here in found.items() if here) or ("guard",)


def inlined(before: Statements, after: Statements) -> tuple[str, ...]:
    """A function put in place of its call; its ways out are rewritten on the way."""
    left = {leaf for s in after for leaf in leaves_in(s)}
    gone = any(leaves_in(s) for s in before) and not left
    return ("reference_parameter", *(exits(before, after) if gone else ()))


def library(before: Statements, after: Statements) -> tuple[str, ...]:
    """Functions and methods of libraries; () where a name only lost its namespace, or `*&x` became `x`."""
    was = [n for s in before for n in own_nodes(s)]
    now = [n for s in after for n in own_nodes(s)]
    calls = {n.name for n in was if isinstance(n, ir.Intrinsic)}
    made = {n.name for n in now if isinstance(n, ir.Intrinsic)}
    groups = {name for name in calls - made if name.startswith(CG)}
    scratch = any(isinstance(n, ir.SharedDecl) for n in now)
    reduced = f"{CG}reduce" in groups
    barrier = "lib.grid_sync" in made - calls
    found = {
        "cub_block_reduce": scratch or any(name.startswith("cub::") for name in calls - made),
        "cooperative_group_reduce": reduced,
        "grid_barrier": barrier,
        "cooperative_group": bool(groups) and not reduced and not barrier,
        "byte_copy": "lib.copy_bytes" in made - calls,
        "sine_and_cosine": bool(calls & _SINCOS),
        "bit_cast": "porter.bits" in made - calls,
    }
    return tuple(name for name, here in found.items() if here)


def handles(before: Statements, after: Statements) -> tuple[str, ...]:
    """Declarations of handles leave nothing; a token of a cluster's barrier leaves the arrival."""
    return ("cooperative_group",)


def aggregates(before: Statements, after: Statements) -> tuple[str, ...]:
    """Accesses of whole vectors, values written member by member, loads and stores by function."""
    calls = {n.name for s in before for n in own_nodes(s) if isinstance(n, ir.Intrinsic)}
    moves = [s for s in after if isinstance(s, ir.Copy)]
    wide = any(isinstance(n, ir.Deref) for s in moves for n in ir.walk(s))
    found = {
        "vector_access": wide,
        "access_function": bool(calls & {*LOADS, *STORES}),
        "member_wise": not wide and (bool(moves) or any(_aggregate(s) for s in before)),
    }
    return tuple(name for name, here in found.items() if here)


def _aggregate(s: ir.Stmt) -> bool:
    """Whether a statement computes with a struct or an array as a whole."""
    return any(isinstance(n, ir.Expr) and isinstance(n.type, ir.Array | ir.Struct) for n in own_nodes(s)) or (
        isinstance(s, ir.Decl) and isinstance(s.type, ir.Array | ir.Struct)
    )


def shared(before: Statements, after: Statements) -> tuple[str, ...]:
    """Shared arrays that functions get from the kernel; () for a scratch array that got another name."""

    def arguments(statements: Statements) -> int:
        return sum(len(n.args) for s in statements for n in own_nodes(s) if isinstance(n, ir.Call))

    declared = any(isinstance(s, ir.SharedDecl) and not s.scratch for s in after)
    parameter = not before and not after
    return ("shared_in_function",) if declared or parameter or arguments(after) > arguments(before) else ()
