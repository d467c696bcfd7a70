"""Largest magnitudes at which a scale that is a power of two changes, and the numbers beside them.

A scale is rounded to a power of two from the largest magnitude itself, or from its quotient by the type's largest
number. Both step at one number: what rounds down instead of up, or to nearest, or by a logarithm, differs only there,
or one unit in the last place above or below.
"""

from __future__ import annotations

import numpy as np

from porter.verify.launches.half_way import EVERY, LARGEST

BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}  # of a mantissa, as stored
LEAST, MOST, ROWS = -12, 3, 5  # exponents of the groups, and of the one with the row's largest magnitude


def steps(shape: tuple[int, ...], target: str, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers of type `dtype` for codes of type `target`: in each group of columns, and in each row, the largest
    magnitude is at such a step, above it or below it.

    Exponents rise with the columns, so that of several groups under one scale the last decides; one group has a larger
    one than all others of its row.
    """
    columns = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    width = min(EVERY, columns)
    group = np.arange(-(-columns // width))
    row = np.arange(rows)[:, None]
    exponent = np.broadcast_to(LEAST + group % (MOST - LEAST + 1), (rows, group.size)).copy()
    exponent[:, int(rng.integers(group.size))] = ROWS
    power = (row + int(rng.integers(2))) % 2 == 1  # rows of powers of two, and of their products with the largest code
    size = np.where(power, 1.0, LARGEST[target]) * np.exp2(exponent)
    unit = np.exp2(np.floor(np.log2(size)) - BITS.get(dtype, 23))
    # those that end 64, 128 or 256 columns differ from one such to the next as well
    way = (row // 2 + group + group // 2 + int(rng.integers(3))) % 3 - 1
    beside = way * np.where(power & (way < 0), unit / 2, unit)
    x = rng.uniform(-0.9, 0.9, (rows, columns)) * np.repeat(size, width, axis=1)[:, :columns]
    at = np.minimum(group * width + int(rng.integers(width)), columns - 1)
    x[row, at] = (size + beside) * np.where(rng.random(size.shape) < 0.5, -1.0, 1.0)
    return x.reshape(shape)
