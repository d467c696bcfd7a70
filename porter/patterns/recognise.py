"""The names of what a pass with several patterns did at one place, from the statements before and after it."""

from __future__ import annotations

from porter import ir
from porter.patterns.library import CG
from porter.patterns.marks import Statements, leaves_in, own_nodes
from porter.patterns.tables.intrinsics import LOADS, STORES

_SINCOS = {"sincosf", "__sincosf", "sincos"}


def exits(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """Ways out of a body. A flag that stands before all else belongs to a return inside a loop."""
    leaves = {leaf for b in before for leaf in leaves_in(b)}
    found = {
        "switch_chain": any(isinstance(b, ir.Switch) for b in before),
        "do_while": any(isinstance(b, ir.DoWhile) for b in before),
        "loop_exit": bool(leaves & {ir.Break, ir.Continue}),
        "guard": ir.Return in leaves,
    }
    return tuple(name for name, here in found.items() if here) or ("guard",)


def inlined(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """A function put in place of its call; its ways out are rewritten on the way."""
    gone = any(leaves_in(b) for b in before) and not any(leaves_in(m) for m in made)
    return ("reference_parameter", *(exits(before, made, s) if gone else ()))


def library(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """Functions and methods of libraries; () where a name only lost its namespace, or `*&x` became `x`."""
    was, now = _calls(before), _calls(made)
    groups = {name for name in was - now if name.startswith(CG)}
    reduced = f"{CG}reduce" in groups
    barrier = "lib.grid_sync" in now - was
    found = {
        "cub_block_reduce": isinstance(s, ir.SharedDecl) or any(name.startswith("cub::") for name in was - now),
        "cooperative_group_reduce": reduced,
        "grid_barrier": barrier,
        "cooperative_group": bool(groups) and not reduced and not barrier,
        "byte_copy": "lib.copy_bytes" in now - was,
        "sine_and_cosine": bool(was & _SINCOS),
        "bit_cast": "porter.bits" in now - was,
    }
    return tuple(name for name, here in found.items() if here)


def handles(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """Declarations of handles leave nothing; a token of a cluster's barrier leaves the arrival."""
    return ("cooperative_group",)


def aggregates(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """Accesses of whole vectors, values written member by member, loads and stores by function."""
    wide = any(isinstance(m, ir.Copy) and any(isinstance(n, ir.Deref) for n in ir.walk(m)) for m in made)
    found = {
        "vector_access": wide and isinstance(s, ir.Copy | ir.Decl),
        "access_function": bool(_calls(before) & {*LOADS, *STORES}),
        "member_wise": not (wide and isinstance(s, ir.Copy | ir.Decl)) and any(_aggregate(b) for b in before),
    }
    return tuple(name for name, here in found.items() if here)


def _aggregate(s: ir.Stmt) -> bool:
    """Whether a statement computes with a struct or an array as a whole."""
    return any(isinstance(n, ir.Expr) and isinstance(n.type, ir.Array | ir.Struct) for n in own_nodes(s)) or (
        isinstance(s, ir.Decl) and isinstance(s.type, ir.Array | ir.Struct)
    )


def shared(before: Statements, made: Statements, s: ir.Stmt | None) -> tuple[str, ...]:
    """Shared arrays that functions get from the kernel; () for a scratch array that got another name."""

    def arguments(statements: Statements) -> int:
        return sum(len(n.args) for s in statements for n in own_nodes(s) if isinstance(n, ir.Call))

    declared = isinstance(s, ir.SharedDecl) and not s.scratch
    return ("shared_in_function",) if s is None or declared or arguments(made) > arguments(before) else ()


def _calls(statements: Statements) -> set[str]:
    """The library functions that statements call in expressions of their own."""
    return {n.name for s in statements for n in own_nodes(s) if isinstance(n, ir.Intrinsic)}
