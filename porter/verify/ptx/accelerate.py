"""When and how compiled code takes over from the interpreter, and how a bail-out is undone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from porter.verify.ptx.checks import Checks
from porter.verify.ptx.ir import Module
from porter.verify.ptx.memory import AddressSpace, Region
from porter.verify.ptx.program import Program
from porter.verify.ptx.scheduler import Budget
from porter.verify.ptx.wave import Geometry

SNAPSHOT_LIMIT = 1 << 30  # bytes of writable buffers that may be copied, so that a bail-out can be undone
WORTH_COMPILING = 0.2  # seconds of interpretation left that justify a compilation
WORTH_LOADING = 0.05  # the same when the machine code is in the cache


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
    saved: list[tuple[Region, np.ndarray, np.ndarray | None]] = field(default_factory=list)

    def wanted(self, seconds_left: float) -> bool:
        """Is it worth it, given how long the interpreter would still need?"""
        if self.refusal:
            return False
        if self.forced:
            return True
        if seconds_left < WORTH_LOADING:
            return False
        from porter.verify.ptx.llvm.engine import is_cached

        return seconds_left > WORTH_COMPILING or is_cached(self.module, self.program, self.checks.uninitialised)

    def run(self, blocks: np.ndarray, budget: Budget) -> bool:
        """Runs blocks with compiled code. False: nothing has happened (memory is as it was), and `refusal` says why."""
        from porter.verify.ptx.llvm.engine import Machine, compile_program
        from porter.verify.ptx.llvm.text import Refused

        try:
            self.snapshot()
            kernel = compile_program(self.module, self.program, self.checks.uninitialised)
        except Refused as refusal:
            self.refusal = str(refusal)
            self.saved.clear()
            return False
        machine = Machine(kernel, self.geometry, self.program, self.params, self.space, self.checks.uninitialised)
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
        """Copies what compiled code may change. Never-written outputs are told by their shadow alone."""
        from porter.verify.ptx.llvm.text import Refused

        total = 0
        for region in self.space.regions:
            if not region.writable or not region.size:
                continue
            shadow = None if region.shadow is None else region.shadow
            total += region.size * (1 if shadow is None else 2)
            if total > SNAPSHOT_LIMIT:
                self.saved.clear()
                raise Refused("the buffers are too large to be copied")
            self.saved.append((region, region.data.copy(), None if shadow is None else shadow.copy()))

    def restore(self) -> None:
        for region, data, shadow in self.saved:
            region.data[:] = data
            if shadow is not None and region.shadow is not None:
                region.shadow[:] = shadow
        self.saved.clear()
