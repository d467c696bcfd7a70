"""Numbers that a compiled port compares values with, and its original does not: inputs and scalars at them, and near.

A port that is wrong where a value is beyond 50000, or an epsilon below 1e-9, has such a number in a comparison, a
minimum or a maximum of floats.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence

import numpy as np

MOST = 3  # numbers of a port that are tried
ROWS = 3  # of a launch with values around a number: each of another kind
LEAST, GREATEST = 1e-37, 1e37
BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}  # of a mantissa, as stored
_STEP = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:setp|set|min|max)\.[\w.]*f(?:32|64)\s+([^;]*);", re.MULTILINE)
_FLOAT = re.compile(r"\b0[fF]([0-9a-fA-F]{8})\b|\b0[dD]([0-9a-fA-F]{16})\b")


def own_numbers(original: str, port: str) -> list[float]:
    """The magnitudes of numbers that only the port compares floats with, in functions' PTX."""
    theirs = _numbers(original)
    return sorted(n for n in _numbers("\n".join(_STEP.findall(port))) - theirs if LEAST <= n <= GREATEST)[:MOST]


def _numbers(text: str) -> set[float]:
    found = (struct.unpack(">f" if a else ">d", bytes.fromhex(a or b))[0] for a, b in _FLOAT.findall(text))
    return {abs(f) for f in found if math.isfinite(f)}


def scenario_of(number: float) -> str:
    return f"around {number!r}"


def number_of(scenario: str) -> float | None:
    """The number of a scenario of `scenario_of`; None for any other."""
    return float(scenario.removeprefix("around ")) if scenario.startswith("around ") else None


def index_scenario(number: int) -> str:
    return f"index {number}"


def index_of(scenario: str) -> int | None:
    """The number of a scenario of `index_scenario`; None for any other."""
    return int(scenario.removeprefix("index ")) if scenario.startswith("index ") else None


def indices(x: np.ndarray, number: int, starts: Sequence[int], ends: tuple[int, int], rng: np.random.Generator) -> None:
    """Put the number and its neighbours, counted from any of `starts`, into half of the whole numbers `x`, as far as
    they are in the range from ends[0] below ends[1]."""
    wanted = [s + number + d for s in starts for d in (-1, 0, 1) if ends[0] <= s + number + d < ends[1]]
    flat = x.reshape(-1)
    if wanted and flat.size:
        places = rng.permutation(flat.size)[: max(1, flat.size // 2)]
        flat[places] = np.resize(rng.permutation(wanted), places.size)


def around(shape: tuple[int, ...], number: float, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Values at a number and in ever narrower ranges about it, with both signs; rows whose squares are of its size."""
    rows = shape[:-1]
    narrow = number * (1.0 + rng.uniform(-1.0, 1.0, shape) * np.exp2(-rng.integers(0, 16, shape).astype(np.float64)))
    unit = 2.0 ** (math.floor(math.log2(number)) - BITS.get(dtype, 23))
    beside = number + unit * rng.integers(-1, 2, shape)
    x = np.where(rng.random(shape) < 0.25, beside, narrow) * np.where(rng.random(shape) < 0.25, -1.0, 1.0)
    squares = (np.arange(math.prod(rows)).reshape(*rows, 1) + int(rng.integers(ROWS))) % ROWS == 0
    return np.where(squares, math.sqrt(number) * rng.standard_normal(shape), x)
