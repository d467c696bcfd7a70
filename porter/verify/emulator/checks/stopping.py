"""A launch that is ended on its way: after so many writes that others may see, as atomics and strong stores are."""

from __future__ import annotations

from porter.verify.emulator.checks.ordering import level_of
from porter.verify.emulator.decode.program import Atomic, Step, Store
from porter.verify.emulator.machine.budget import OutOfBudget
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.wave import Wave
from porter.verify.emulator.memory.access import Resolved


class Stopper:
    """Counts the strong writes to global memory of one launch, an instruction of a warp or more as one."""

    def __init__(self, most: int):
        self.most, self.seen = most, 0

    def watch(self, wave: Wave) -> None:
        """Follow one wave from its start."""

        def access(e: Env, step: Step, resolved: Resolved, width: int, value: object = None) -> None:
            strong = isinstance(step, Atomic) or (isinstance(step, Store) and level_of(step))
            if strong and any(p.region.space == "global" for p in resolved.pieces):
                if self.seen >= self.most:
                    raise OutOfBudget
                self.seen += 1

        wave.observers.append(access)
