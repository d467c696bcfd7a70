"""Mistakes between threads: barriers, shuffles, atomics, ties."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.mutation.port_text import Edit, PortText, binary, comparison, is_call, show
from tools.mutation.registry import NUMERICS, SANITIZER, mutation


@mutation("missing-barrier", "a barrier left out", SANITIZER, most=4)
def missing_barrier(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr):
        if is_call(node.value, "cute.arch.sync_threads", "lib.grid_sync"):
            yield Edit(node, "pass")


@mutation("missing-lane", "one step of a shuffle reduction left out", NUMERICS)
def missing_lane(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.For):
        found = node.iter
        if isinstance(found, ast.Tuple) and all(isinstance(e, ast.Constant) for e in found.elts):
            kept = [show(e) for e in found.elts[:-1]]
            yield Edit(found, f"({', '.join(kept)},)")
        elif is_call(found, "lib.halving"):
            yield Edit(found, f"{show(found)}[:-1]")


@mutation("mask-lane", "a shuffle mask that names a lane too few", SANITIZER)
def mask_lane(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if show(node.func).startswith("lib.shfl"):
            mask = node.args[2]
            if isinstance(mask, ast.Constant):
                yield Edit(mask, "0x7fffffff")


@mutation("disagreeing-masks", "a lane of a shuffle that names other lanes than those that name it", SANITIZER)
def disagreeing_masks(port: PortText) -> Iterator[Edit]:
    lane = "(cute.arch.thread_idx()[0] & 31)"
    for _, node in port.nodes(ast.Call):
        if show(node.func).startswith("lib.shfl"):
            mask = node.args[2]
            if isinstance(mask, ast.Constant) and mask.value == 0xFFFFFFFF:
                yield Edit(mask, f"(cutlass.Uint32(0xffffffff) - cutlass.Uint32({lane} // 31))")
    for _, node in port.nodes(ast.Assign):
        parts = binary(node.value, ast.LShift)  # one group's lanes, moved to where the group is
        if parts and show(node.targets[0]) == "mask":
            yield Edit(parts[0], f"({show(parts[0])} | (cutlass.Uint32(1) << cutlass.Uint32(16)))")


@mutation("early-barrier", "a barrier over the grid that waits for one arrival less", SANITIZER, NUMERICS, most=2)
def early_barrier(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.While):
        if "lib.ld_" in show(node.test) and (parts := comparison(node.test, ast.Lt)):
            yield Edit(node.test, f"{show(parts[0])} < {show(parts[1])} - 1")
    for function, node in port.nodes(ast.Assign):
        if show(node.targets[0]) == "target" and any(isinstance(n, ast.While) for n in ast.walk(function)):
            yield Edit(node.value, f"{show(node.value)} - Uint32(1)")


@mutation("lost-atomic", "an atomic done as a load, an addition and a store", SANITIZER, NUMERICS)
def lost_atomic(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr, ast.Assign):
        call = node.value
        if is_call(call, "lib.atomic_add") and (parts := binary(call.args[0], ast.Add)):
            place = f"{show(parts[0])}[{show(parts[1])}]"
            if isinstance(node, ast.Assign):
                name = show(node.targets[0])
                yield Edit(node, f"{name} = {place}; {place} = {name} + {show(call.args[1])}")
            else:
                yield Edit(node, f"{place} = {place} + {show(call.args[1])}")
        if is_call(call, "lib.atomic_max") and isinstance(node, ast.Expr):
            yield Edit(node, f"{show(call.args[0])}[0] = {show(call.args[1])}")


@mutation("missing-fence", "a fence left out", SANITIZER, most=2)
def missing_fence(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr):
        if is_call(node.value, "lib.fence"):
            yield Edit(node, "pass")


@mutation("wrong-tie-break", "of equal values the later one taken", NUMERICS)
def wrong_tie_break(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        parts = binary(node, ast.BitOr)  # a > b or (a == b and i < j)
        both = binary(parts[1], ast.BitAnd) if parts and comparison(parts[0], ast.Gt) else None
        less = comparison(both[1], ast.Lt) if both and comparison(both[0], ast.Eq) else None
        if both and less:
            yield Edit(both[1], f"({show(less[0])} > {show(less[1])})")
    for _, node in port.nodes(ast.If):
        parts = comparison(node.test, ast.Gt)
        if parts and show(parts[1]) == "best":
            yield Edit(node.test, f"{show(parts[0])} >= {show(parts[1])}")
