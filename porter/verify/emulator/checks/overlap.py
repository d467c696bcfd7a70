"""Programmatic dependent launch: the kernel starts while the one before it still reads and writes.

Until a thread has passed griddepcontrol.wait, or a barrier behind a thread that has, what it finds in global memory is
not yet the input, and what it writes may still be read by the kernel before: both are `early-access` violations.
Prefetches are not accesses. Module variables and parameters are not written by other kernels.
"""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.checks.violations import Recorder
from porter.verify.emulator.decode.program import Load, Step
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.wave import WARP, Wave
from porter.verify.emulator.memory.access import Resolved


class EarlyAccess:
    """Observes the waves of one launch that overlaps the kernel before it."""

    def __init__(self, recorder: Recorder, module_memory: tuple[int, int]):
        self.recorder, self.module_memory = recorder, module_memory

    def watch(self, wave: Wave) -> None:
        """Follow one wave from its start."""
        waited = np.zeros(wave.threads, bool)
        padded, low, high = wave.geometry.padded, *self.module_memory
        per_cluster = padded * wave.geometry.cluster_blocks

        def share(lanes: np.ndarray, group: int) -> None:
            groups = lanes // group
            waited[lanes] |= np.isin(groups, np.unique(groups[waited[lanes]]))

        def sync(kind: str, lanes: np.ndarray, id_: int) -> None:
            if kind == "dependency":
                waited[lanes] = True
            elif kind == "restart":
                waited[lanes] = False
            elif kind == "barrier":
                share(lanes, per_cluster if id_ == 16 else padded)
            elif kind == "warp":
                share(lanes, WARP)

        def access(e: Env, step: Step, resolved: Resolved, width: int, value: object = None) -> None:
            for piece in resolved.pieces:
                region = piece.region
                if region.space != "global" or low <= region.base < high:
                    continue
                ids = e.ids if piece.positions is None else e.ids[piece.positions]
                early = ids[~waited[ids]]
                if early.size:
                    does = "reads" if isinstance(step, Load) else "writes"
                    self.recorder.add(
                        "early-access", step.source, early, wave.coordinates,
                        f"{does} {region.name or 'global memory'} before griddepcontrol.wait: a kernel that is "
                        "launched with use_pdl starts while the one before it still works on its memory",
                        "global", region.base, region.name,
                    )  # fmt: skip

        wave.sync_observers.append(sync)
        wave.observers.append(access)
