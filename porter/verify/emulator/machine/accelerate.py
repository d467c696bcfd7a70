"""When and how compiled code takes over from the interpreter, and how a bail-out is undone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from porter.verify.emulator.checks.violations import Checks
from porter.verify.emulator.decode.ir import Module
from porter.verify.emulator.decode.program import Program
from porter.verify.emulator.machine.budget import Budget
from porter.verify.emulator.machine.wave import Geometry
from porter.verify.emulator.memory.buffers import AddressSpace

SNAPSHOT_LIMIT = 1 << 30  # bytes of writable buffers that may be copied, so that a bail-out can be undone
SPILL = 16 << 20  # bytes of them that are copied in memory, the rest to a file
STRETCH = 1 << 20
# CPU seconds, measured: of a compilation, for each of its instructions, of taking the code from the cache
COMPILING, COMPILING_EACH, LOADING = 0.05, 0.0005, 0.05
SPENT = 0.5  # what interpretation has cost counts for so much beside what it will cost: there may be no further launch
DOUBTS = 2  # bail-outs behind which an entry is left to the interpreter


class Snapshot:
    """Copies of arrays of bytes. Stretches that hold one number (outputs before they are written) take no room; what
    goes beyond `in_memory` bytes waits in a file: a launch should not take much more memory than its buffers."""

    def __init__(self, in_memory: int):
        self.in_memory = in_memory
        self.pieces: list[tuple[np.ndarray, np.ndarray | None]] = []  # (where, what; None: next in the file)
        self.file: BinaryIO | None = None

    def add(self, data: np.ndarray) -> None:
        for start in range(0, data.size, STRETCH):
            part = data[start : start + STRETCH]
            words = part.view(np.uint64) if part.size % 8 == 0 else part
            if (words == words[0]).all():
                self.pieces.append((words, words[:1].copy()))
            elif part.size <= self.in_memory:
                self.in_memory -= part.size
                self.pieces.append((part, part.copy()))
            else:
                self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 (closed by clear)
                self.file.write(part.data)
                self.pieces.append((part, None))

    def restore(self) -> None:
        if self.file is not None:
            self.file.seek(0)
        for where, what in self.pieces:
            if what is None:
                assert self.file is not None
                where[:] = np.frombuffer(self.file.read(where.size), np.uint8)
            else:
                where[:] = what
        self.clear()

    def clear(self) -> None:
        self.pieces.clear()
        if self.file is not None:
            self.file.close()
            self.file = None


@dataclass(slots=True)
class Past:
    """What launches of one entry have cost so far: kept with the module, since a verification makes dozens of them."""

    interpreted: float = 0.0  # seconds
    doubts: int = 0  # launches that compiled code gave back


@dataclass(slots=True)
class Accelerator:
    """Compiled code for the blocks of one launch. `forced`: for every block, and saying why if that is impossible."""

    module: Module
    program: Program
    geometry: Geometry
    params: np.ndarray
    space: AddressSpace
    checks: Checks
    forced: bool
    used: bool = False
    refusal: str = ""
    crossed: int = 0
    saved: Snapshot = field(default_factory=lambda: Snapshot(SPILL))

    @property
    def kind(self) -> tuple[object, ...]:
        """What launches must share to run the same code."""
        c = self.checks
        return self.program.entry, c.uninitialised, c.shared_races, c.global_races

    @property
    def past(self) -> Past:
        found = self.module.cache.setdefault(("past", self.kind), Past())
        assert isinstance(found, Past)
        return found

    def wanted(self, seconds_left: float = 0.0) -> bool:
        """Is compiled code worth it, given what interpretation has cost and how long it would still take?"""
        if self.refusal:
            return False
        if self.forced:
            return True
        past = self.past
        if past.doubts >= DOUBTS:
            return False
        if ("loaded", self.kind) in self.module.cache:
            return True
        seconds = SPENT * past.interpreted + seconds_left
        if seconds <= LOADING:
            return False
        from porter.verify.emulator.llvm.engine import guards_of, is_cached

        length = sum(len(s.steps) + 1 for s in self.program.segments)
        if seconds > COMPILING + COMPILING_EACH * length:
            return True
        return is_cached(self.module, self.program, guards_of(self.checks, self.program))

    def run(self, blocks: np.ndarray, budget: Budget, seen: dict[object, object]) -> bool:
        """Runs blocks with compiled code. False: nothing has happened (memory is as it was), and `refusal` says why.

        `seen`: the race checker's memory of the blocks that the interpreter has run.
        """
        from porter.verify.emulator.llvm.engine import Machine, compile_program, guards_of
        from porter.verify.emulator.llvm.text import Refused

        try:
            self.snapshot()
            guards = guards_of(self.checks, self.program)
            kernel = compile_program(self.module, self.program, guards)
            self.module.cache["loaded", self.kind] = True
        except Refused as refusal:
            self.refusal = str(refusal)
            self.past.doubts = DOUBTS
            self.saved.clear()
            return False
        machine = Machine(kernel, self.geometry, self.params, self.space, guards, seen, budget.left)
        done = machine.run(blocks)
        if done < blocks.size:
            self.refusal = f"block {int(blocks[done])} needs the interpreter"
            self.past.doubts += 1
            self.restore()
            return False
        self.saved.clear()
        for segment, count in enumerate(machine.counts):
            budget.spend(self.program.segments[segment], int(count), 0)
        self.crossed += machine.crossed
        self.used = True
        return True

    def snapshot(self) -> None:
        """Keeps what compiled code may change."""
        from porter.verify.emulator.llvm.text import Refused

        writable = [r for r in self.space.regions if r.writable and r.size]
        total = sum(r.size * (1 if r.shadow is None else 2) for r in writable)
        if total > SNAPSHOT_LIMIT:
            raise Refused("the buffers are too large to be copied")
        in_memory = max(SPILL, sum(r.size for r in self.space.regions) // 16)
        self.saved = Snapshot(in_memory)
        for region in writable:
            self.saved.add(region.data)
            if region.shadow is not None:
                self.saved.add(region.shadow)

    def restore(self) -> None:
        self.saved.restore()
