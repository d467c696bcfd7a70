"""What is checked while a kernel runs, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from porter.verify.emulator.decode.ir import Instr, Module


@dataclass(frozen=True, slots=True)
class Checks:
    """Switches. Bad accesses are always stopped; `bounds` and `alignment` say whether they are reported."""

    bounds: bool = True
    alignment: bool = True
    uninitialised: bool = True
    shared_races: bool = False
    global_races: bool = False
    fill: int = 0  # what each byte of shared and local memory holds before it is written
    sums: bool = False  # terms of the sums that are made by float atomics (Result.sums)
    counts: bool = False  # memory sectors and bank conflicts (instructions and barriers are always counted)


KINDS = (
    "out-of-bounds", "misaligned", "uninitialised-read", "read-only-write", "shared-race", "global-race",
    "missing-fence",  # a race of which a flag tells the order, without release, acquire, fence or scope
    "early-access",  # before griddepcontrol.wait, in a launch that overlaps the kernel before it
    "stale-read",  # ld.global.nc of memory that the kernel writes: the cache behind it is not kept coherent
    "lockstep",  # lanes of a warp that pass values through volatile memory, without synchronising the warp
    "absent-lane",  # a shuffle takes the value of a lane that does not take part
    "skipped-lane",  # a .sync instruction names a lane that went another way and never came
    "divergent-barrier", "divergent-sync", "deadlock", "trap", "assert", "budget",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Violation:
    """Misbehaviour of one of KINDS at one instruction. Fields describe its first thread; `count` threads did it."""

    kind: str
    ptx_line: int
    opcode: str
    message: str
    loc: tuple[str, int] | None = None  # file and line of the nearest .loc
    space: str = ""
    address: int = 0
    buffer: str = ""
    offset: int = 0  # bytes from the start of the buffer (or of the block's shared memory)
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    count: int = 1
    rank: int | None = None  # None in a launch of one rank
    callers: tuple[tuple[str, int], ...] = ()  # the places that the nearest .loc was inlined into, outwards

    def __str__(self) -> str:
        where = f"{self.loc[0]}:{self.loc[1]}, " if self.loc else ""
        more = f" ({self.count} times)" if self.count > 1 else ""
        return (
            f"{self.kind}: {self.message}{more} [{where}PTX line {self.ptx_line}: {self.opcode}; "
            f"{'' if self.rank is None else f'rank {self.rank}, '}block {self.block}, thread {self.thread}]"
        )


Coordinates = Callable[[int], tuple[tuple[int, int, int], tuple[int, int, int], int | None]]


class Recorder:
    """Collects violations, one per kind, instruction and buffer."""

    def __init__(self, module: Module):
        self.module = module
        self.found: dict[tuple[str, int, str], Violation] = {}

    def add(
        self,
        kind: str,
        instr: Instr | None,
        lanes: np.ndarray,
        where: Coordinates,
        message: str,
        space: str = "",
        address: int = 0,
        buffer: str = "",
        offset: int = 0,
    ) -> None:
        """`lanes` are the wave's thread indices, the first one is described."""
        line = instr.line if instr is not None else 0
        key = (kind, line, buffer)
        known = self.found.get(key)
        count = int(lanes.size)
        if known is not None:
            object.__setattr__(known, "count", known.count + count)
            return
        block, thread, rank = where(int(lanes[0]))
        loc: tuple[str, int] | None = None
        callers: tuple[tuple[str, int], ...] = ()
        if instr is not None and instr.loc is not None and instr.loc.line:
            places = [(self.module.files.get(f, f"file {f}"), n) for f, n in instr.loc.chain()]
            loc, callers = places[0], tuple(places[1:])
        opcode = instr.opcode if instr is not None else "(end)"
        self.found[key] = Violation(
            kind, line, opcode, message, loc, space, address, buffer, offset, block, thread, count, rank, callers
        )

    @property
    def violations(self) -> list[Violation]:
        return list(self.found.values())
