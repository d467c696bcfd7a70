"""When and how compiled code takes over from the interpreter, and how a bail-out is undone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from porter.verify.ptx.checks import Checks
from porter.verify.ptx.ir import Module
from porter.verify.ptx.memory import AddressSpace
from porter.verify.ptx.program import Program
from porter.verify.ptx.scheduler import Budget
from porter.verify.ptx.wave import Geometry

SNAPSHOT_LIMIT = 1 << 30  # bytes of writable buffers that may be copied, so that a bail-out can be undone
SPILL = 16 << 20  # bytes of them that are copied in memory, the rest to a file
STRETCH = 1 << 20
WORTH_COMPILING = 0.2  # seconds of interpretation left that justify a compilation
WORTH_LOADING = 0.05  # the same when the machine code is in the cache


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

    def wanted(self, seconds_left: float) -> bool:
        """Is it worth it, given how long the interpreter would still need?"""
        if self.refusal:
            return False
        if self.forced:
            return True
        if seconds_left < WORTH_LOADING:
            return False
        from porter.verify.ptx.llvm.engine import guards_of, is_cached

        guards = guards_of(self.checks, self.program)
        return seconds_left > WORTH_COMPILING or is_cached(self.module, self.program, guards)

    def run(self, blocks: np.ndarray, budget: Budget, seen: dict[object, object]) -> bool:
        """Runs blocks with compiled code. False: nothing has happened (memory is as it was), and `refusal` says why.

        `seen`: the race checker's memory of the blocks that the interpreter has run.
        """
        from porter.verify.ptx.llvm.engine import Machine, compile_program, guards_of
        from porter.verify.ptx.llvm.text import Refused

        try:
            self.snapshot()
            guards = guards_of(self.checks, self.program)
            kernel = compile_program(self.module, self.program, guards)
        except Refused as refusal:
            self.refusal = str(refusal)
            self.saved.clear()
            return False
        machine = Machine(kernel, self.geometry, self.params, self.space, guards, seen)
        done = machine.run(blocks)
        if done < blocks.size:
            self.refusal = f"block {int(blocks[done])} needs the interpreter"
            self.restore()
            return False
        for segment, count in enumerate(machine.counts):
            budget.executions[segment] += int(count)
        self.crossed += machine.crossed
        self.used = True
        self.saved.clear()
        return True

    def snapshot(self) -> None:
        """Keeps what compiled code may change."""
        from porter.verify.ptx.llvm.text import Refused

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
