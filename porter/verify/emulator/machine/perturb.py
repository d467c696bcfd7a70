"""Moves the results of approximate instructions to their bounds, to see how much an output may legally differ."""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.ops.approximate import ANGLE_FAR, ANGLE_NEAR, BOUNDS


class Perturbation:
    """Called by the numpy algebra with every approximate result.

    `direction`: -1, 0 or +1 times the bound of the PTX ISA, or "random" (each sign equally likely, from `seed`).
    `only`: the instructions to move ("ex2", "tanh.f16", ...); all by default. `scale` multiplies the bound.
    """

    def __init__(
        self, direction: float | str = "random", only: tuple[str, ...] = (), scale: float = 1.0, seed: int = 0
    ):
        self.direction, self.only, self.scale = direction, only, scale
        self._random = np.random.default_rng(seed)

    def __call__(self, op: str, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.only and op not in self.only:
            return exact
        kind, bound = BOUNDS[op]
        if isinstance(self.direction, str):
            amount: np.ndarray = self._random.choice(np.array([-1.0, 1.0]), exact.shape) * bound * self.scale
        else:
            amount = np.array(self.direction * bound * self.scale)
        if kind == "relative":
            return exact * (1.0 + amount)
        if kind == "log":
            return exact + amount * np.maximum(1.0, np.abs(exact))
        if kind == "angle":
            far = np.where(np.abs(x) > ANGLE_NEAR, ANGLE_FAR / bound, 1.0)
            return np.clip(exact + amount * far, -1.0, 1.0)
        return exact + amount
