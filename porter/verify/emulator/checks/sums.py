"""Sums of floats by atomics: how many terms each element of a buffer got, and how large they were altogether.

The order of such a sum is not specified. Two orders of n terms differ by at most 2 n u S, where u is the rounding error
of one addition and S the sum of the terms' magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.memory.buffers import MemoryRegion

ROUNDING = {"f16": 2.0**-11, "f16x2": 2.0**-11, "bf16": 2.0**-8, "bf16x2": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}


@dataclass
class Sums:
    """Of one buffer, by element of the added type: terms, their magnitudes added up, the rounding of one addition."""

    terms: np.ndarray
    magnitude: np.ndarray
    rounding: float


class FloatSums:
    """Watches the float additions of one launch."""

    def __init__(self) -> None:
        self.found: dict[str, Sums] = {}  # by the buffer's name

    def add(self, region: MemoryRegion, index: np.ndarray, operand: np.ndarray, t: PtxType) -> None:
        """Lanes add `operand` (raw words of type `t`) to the words `index` of a region."""
        if region.space != "global":
            return
        numbers = _numbers(operand, t)
        parts = numbers.shape[1]
        sums = self.found.get(region.name)
        if sums is None:
            n = region.size // (t.bytes // parts)
            sums = self.found[region.name] = Sums(np.zeros(n, np.int64), np.zeros(n), ROUNDING[t.name])
        now = _numbers(region.view(t.bytes)[index], t)
        for k in range(parts):
            at = index * parts + k
            fresh, where = np.unique(at[sums.terms[at] == 0], return_index=True)
            if fresh.size:  # what was there before is a term as well
                sums.magnitude[fresh] = np.abs(now[sums.terms[at] == 0][where, k])
            np.add.at(sums.terms, at, 1)
            np.add.at(sums.magnitude, at, np.abs(numbers[:, k]))


def _numbers(words: np.ndarray, t: PtxType) -> np.ndarray:
    """Raw words as (lanes, parts) of float64."""
    if t.name in ("f32", "f64"):
        return np.ascontiguousarray(words).view(t.dtype).astype(np.float64).reshape(-1, 1)
    halves = np.ascontiguousarray(words).view(np.uint16)
    if t.name.startswith("bf16"):
        wide = (halves.astype(np.uint32) << 16).view(np.float32)
    else:
        wide = halves.view(np.float16).astype(np.float32)
    return wide.astype(np.float64).reshape(words.size, -1)
