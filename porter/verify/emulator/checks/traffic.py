"""Memory traffic as the hardware would see it: 32-byte sectors of global accesses, bank conflicts of shared ones.

These are counts of requests, per warp and instruction; no cache is modelled.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from porter.verify.emulator.decode.program import Load, MatrixMove, Step
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.wave import WARP, Wave
from porter.verify.emulator.memory.access import Resolved

SECTOR_BITS, BANKS = 5, 32


class TrafficCounter:
    """Observes the accesses of one launch's waves."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()

    def watch(self, wave: Wave) -> None:
        wave.observers.append(self.access)

    def access(self, e: Env, step: Step, resolved: Resolved, width: int, value: object = None) -> None:
        reads = isinstance(step, Load) or (isinstance(step, MatrixMove) and step.kind == "ldmatrix")
        name = "load" if reads else "store"
        for piece in resolved.pieces:
            ids = e.ids if piece.positions is None else e.ids[piece.positions]
            offsets = np.broadcast_to(piece.offsets, ids.shape)
            if piece.region.space == "global":
                self.sectors(f"global.{name}", ids // WARP, offsets + piece.region.base, width)
            elif piece.region.space == "shared":
                self.banks(f"shared.{name}", ids, offsets, width)

    def sectors(self, name: str, warp: np.ndarray, address: np.ndarray, width: int) -> None:
        pairs = np.unique(np.stack((warp, address >> SECTOR_BITS), axis=1), axis=0)
        lanes = np.unique(warp, return_counts=True)[1]
        self.totals[name + ".accesses"] += lanes.size
        self.totals[name + ".sectors"] += pairs.shape[0]
        self.totals[name + ".ideal_sectors"] += int((-(-lanes * width // (1 << SECTOR_BITS))).sum())

    def banks(self, name: str, ids: np.ndarray, offsets: np.ndarray, width: int) -> None:
        """Wide accesses go in phases of 128 bytes: 16 lanes of 8 bytes, 8 lanes of 16."""
        lanes = WARP * 4 // max(width, 4)
        phase = ids // lanes
        words = max(width // 4, 1)
        index = (offsets[:, None] // 4 + np.arange(words)).reshape(-1)
        phases = np.repeat(phase, words)
        distinct = np.unique(np.stack((phases, index % BANKS, index), axis=1), axis=0)
        per_bank, counts = np.unique(distinct[:, :2], axis=0, return_counts=True)
        worst = np.zeros(int(phase.max()) + 1, np.int64)
        np.maximum.at(worst, per_bank[:, 0], counts)
        self.totals[name + ".accesses"] += int(np.unique(phase).size)
        self.totals[name + ".wavefronts"] += int(worst.sum())

    def summary(self) -> dict[str, Any]:
        return dict(sorted(self.totals.items()))
