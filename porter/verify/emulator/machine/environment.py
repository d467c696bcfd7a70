"""How a step sees registers: of all threads, of some threads gathered together, or of those whose guard holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from porter.verify.emulator.decode.types import TYPES
from porter.verify.emulator.machine.wave import Wave

_F32 = np.dtype(np.float32)


def recast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values reinterpreted as a dtype of the same size. Any NaN of f32 arithmetic becomes the canonical 0x7fffffff."""
    have = x.dtype
    if have is dtype:
        return x
    if have is _F32:
        nan = np.isnan(x)
        x = x.view(np.uint32)
        if nan.any():
            x = np.where(nan, np.uint32(0x7FFFFFFF), x)
    return x if x.dtype is dtype else x.view(dtype)


class Gathered(dict):  # type: ignore[type-arg]
    """Registers of some threads, gathered on first use; `written` are those to put back."""

    __slots__ = ("lanes", "registers", "written")

    def __init__(self, registers: Any, lanes: np.ndarray):
        super().__init__()
        self.registers, self.lanes = registers, lanes
        self.written: set[int] = set()

    def __missing__(self, index: int) -> np.ndarray:
        a = self.registers[index]
        if a.size != 1:
            a = a[self.lanes]
        dict.__setitem__(self, index, a)
        return a

    def __setitem__(self, index: int, value: np.ndarray) -> None:
        dict.__setitem__(self, index, value)
        self.written.add(index)


class Env:
    """`v[r]` are register values of `lanes` (None: every thread of the wave).

    `wide`: v holds values of all threads though only `lanes` are active.
    """

    __slots__ = ("lanes", "n", "v", "wave", "wide")

    def __init__(self, wave: Wave, v: Any, lanes: np.ndarray | None, wide: bool):
        self.wave, self.v, self.lanes, self.wide = wave, v, lanes, wide
        self.n = wave.threads if lanes is None else int(lanes.size)

    @property
    def ids(self) -> np.ndarray:
        return self.wave.ids if self.lanes is None else self.lanes

    def active(self, x: np.ndarray) -> np.ndarray:
        """Values of the active threads only (or the one value for all)."""
        return x[self.lanes] if self.wide and x.size != 1 else x

    def full(self, x: np.ndarray) -> np.ndarray:
        """Values of the active threads, one for each of them."""
        x = self.active(x)
        return np.broadcast_to(x, (self.n,)) if x.size != self.n else x

    def each(self, x: np.ndarray) -> np.ndarray:
        """What is of the active threads already (or one value for all): one value for each of them."""
        return np.broadcast_to(x, (self.n,)) if x.size != self.n else x

    def spread(self, x: np.ndarray) -> np.ndarray:
        """The reverse of `active`, for results."""
        if not self.wide or x.size == 1:
            return x
        out = np.zeros(self.wave.threads, x.dtype)
        out[self.lanes] = x
        return out

    def special(self, name: str) -> np.ndarray:
        x = self.wave.special(name)
        if x.size == 1 or self.wide or self.lanes is None:
            return x
        return x[self.lanes]

    def narrowed(self, keep: np.ndarray) -> Env:
        """For the active threads where `keep` holds (a mask over active threads)."""
        positions = np.flatnonzero(keep)
        lanes = self.ids[positions]
        return Env(self.wave, Gathered(self.v, lanes if self.wide else positions), lanes, False)

    def absorb(self, inner: Env) -> None:
        """Takes over what a narrowed environment wrote."""
        gathered = inner.v
        size = self.wave.threads if self.wide else self.n
        for index in gathered.written:
            self.v[index] = scattered(self.v[index], size, gathered.lanes, gathered[index])


def scattered(old: np.ndarray, size: int, lanes: np.ndarray, value: np.ndarray) -> np.ndarray:
    """A copy of `old` (length size) with `value` at `lanes`."""
    if old.dtype is not value.dtype:
        raw = TYPES[f"b{old.dtype.itemsize * 8}"].raw if old.dtype.kind != "b" else old.dtype
        old, value = recast(old, raw), recast(value, raw)
    new = np.array(np.broadcast_to(old, (size,))) if old.size != size else old.copy()
    new[lanes] = value
    return new
