"""Counts from PTX text: memory accesses by width, local memory, barriers, shuffles, atomics. Static counts only."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class PtxStats:
    """Static instruction counts of one kernel (with the device functions it was linked with, where it calls any).

    `loads` and `stores` are global accesses, generic ones (no state space stated) included; `*_128` and `*_256` those
    that move 16 or 32 bytes a thread. `local_accesses` counts ld.local and st.local, `local_bytes` the declared depot.
    """

    instructions: int = 0
    loads: int = 0
    stores: int = 0
    loads_128: int = 0
    stores_128: int = 0
    loads_256: int = 0
    stores_256: int = 0
    generic: int = 0
    shared_accesses: int = 0
    local_accesses: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    warp_barriers: int = 0
    cluster_barriers: int = 0
    shuffles: int = 0
    votes: int = 0
    atomics: int = 0
    async_copies: int = 0
    mma: int = 0


_INSTRUCTION = re.compile(r"^\s*(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][\w.:]*)(?=[\s;])")
_ACCESS = re.compile(r"^(ld|st)(?P<tags>(?:\.[\w:]+)*?)(?:\.v(?P<n>[248]))?\.(?P<kind>[a-z]+)(?P<bits>\d+)(?:x2)?$")
_ARRAY = re.compile(
    r"\.(?P<space>local|shared)\b(?:\s*\.align\s+\d+)?"
    r"\s+\.\w?(?P<bits>\d+)\s+(?P<name>[\w$]+)(?P<dims>(?:\[\d+\])*)"
)
_SPACES = ("global", "shared", "local", "param", "const")


def function_texts(ptx: str) -> dict[str, str]:
    """The text of every function with a body, by its symbol: parameters, directives and body. Comments are left out."""
    ptx = _without_comments(ptx)
    found = {}
    for head in re.finditer(r"\.(?:entry|func)\b(?:\s*\([^)]*\))?\s*([\w$]+)", ptx):
        start = ptx.find("{", head.end())
        stop = ptx.find(";", head.end())
        if start < 0 or 0 <= stop < start:
            continue  # a declaration
        depth = 0
        for at in range(start, len(ptx)):
            depth += {"{": 1, "}": -1}.get(ptx[at], 0)
            if depth == 0:
                found[head.group(1)] = ptx[head.start() : at + 1]
                break
    return found


def ptx_stats(ptx: str, entry: str | None = None) -> PtxStats:
    """Counts for a kernel of the module (the only one when `entry` is None). Raises KeyError for an unknown entry.

    Shared arrays at module scope count as the kernel's when its text names them.
    """
    ptx = _without_comments(ptx)
    functions = function_texts(ptx)
    if entry is None:
        entries = [name for name in re.findall(r"\.entry\s+([\w$]+)", ptx) if name in functions]
        if len(entries) != 1:
            raise KeyError(f"the module has {len(entries)} kernels: {' '.join(entries)}")
        entry = entries[0]
    bodies = (functions[name] for name in _reachable(functions, entry))
    text = "\n".join(body[body.index("{") :] for body in bodies)
    counts = dict.fromkeys(PtxStats.__dataclass_fields__, 0)
    for statement in text.split("\n"):
        for part in statement.split(";"):
            match = _INSTRUCTION.match(part + ";")
            if match:
                _count(match.group(1), counts)
    for array in _ARRAY.finditer(text):
        counts[f"{array['space']}_bytes"] += _array_bytes(array)
    outside = ptx
    for body in functions.values():
        outside = outside.replace(body, "")
    for array in _ARRAY.finditer(outside):
        used = re.search(rf"(?<![\w$]){re.escape(array['name'])}(?![\w$])", text)
        if array["space"] == "shared" and used:
            counts["shared_bytes"] += _array_bytes(array)
    return PtxStats(**counts)


def _without_comments(ptx: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", ptx, flags=re.DOTALL)


def _reachable(functions: dict[str, str], entry: str) -> list[str]:
    order, todo = [], [entry]
    while todo:
        name = todo.pop()
        if name in order:
            continue
        order.append(name)
        words = set(re.findall(r"[\w$]+", functions[name]))
        todo.extend(f for f in functions if f in words)
    return order


def _array_bytes(array: re.Match[str]) -> int:
    size = int(array["bits"]) // 8
    for length in re.findall(r"\d+", array["dims"]):
        size *= int(length)
    return size


def _count(opcode: str, counts: dict[str, int]) -> None:
    counts["instructions"] += 1
    first, *tags = opcode.split(".")
    access = _ACCESS.match(opcode)
    if access:
        spaces = [t.split("::")[0] for t in tags if t.split("::")[0] in _SPACES]
        space = spaces[0] if spaces else "generic"
        if space in ("shared", "local"):
            counts[f"{space}_accesses"] += 1
        if space in ("global", "generic"):
            counts["generic"] += space == "generic"
            what = "loads" if first == "ld" else "stores"
            bits = int(access["n"] or 1) * int(access["bits"])
            counts[what] += 1
            if bits in (128, 256):
                counts[f"{what}_{bits}"] += 1
    elif first in ("bar", "barrier"):
        kind = {"warp": "warp_barriers", "cluster": "cluster_barriers"}.get(tags[0] if tags else "", "barriers")
        counts[kind] += 1
    elif first == "shfl":
        counts["shuffles"] += 1
    elif first in ("vote", "match", "redux"):
        counts["votes"] += 1
    elif first in ("atom", "red"):
        counts["atomics"] += 1
    elif first == "cp" and "async" in tags:
        counts["async_copies"] += 1
    elif first in ("mma", "wgmma", "wmma", "tcgen05"):
        counts["mma"] += 1
