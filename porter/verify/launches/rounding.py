"""Numbers half way between two values of what a kernel rounds to, after its scaling: where rounding modes part.

A static scale becomes a power of two. Where the scale comes from a row's or a group's largest magnitude, that magnitude
becomes the type's largest number times a power of two, so that the scale is that power.

And largest magnitudes at which a scale that is a power of two changes, and the numbers beside them.

A scale is rounded to a power of two from the largest magnitude itself, or from its quotient by the type's largest
number. Both step at one number: what rounds down instead of up, or to nearest, or by a logarithm, differs only there,
or one unit in the last place above or below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from porter.case.expressions import Value
from porter.case.reader import Case, Point

LARGEST = {"i8": 127.0, "u8": 255.0, "i16": 32767.0, "e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}
_MANTISSA = {"e4m3": (3, -6, 8), "e5m2": (2, -14, 15), "e2m1": (1, 0, 2)}  # bits, least and largest exponent
EVERY = 32  # columns: each group of so many has its largest magnitude, and an exponent
BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}  # of a mantissa, as stored
LEAST, MOST, ROWS = -12, 3, 5  # exponents of the groups, and of the one with the row's largest magnitude
SPREAD = 6  # exponents of groups that no scale was made for


def targets_of(case: Case, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The types that a kernel rounds to, by its outputs: quantised ones, 16-bit floats where an input has 32 bits."""
    written = [b.dtype_at(values) for b in case.buffers if b.is_compared]
    wide = any(b.is_read and b.dtype_at(values) == "f32" for b in case.buffers)
    found = [d for d in written if d in LARGEST and not (d == "u8" and "i8" in written)]
    return tuple(dict.fromkeys([*found, *(d for d in written if wide and d in ("bf16", "f16"))]))


def quantised(targets: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the types that are codes."""
    return tuple(t for t in targets if t in LARGEST)


def has_scales(case: Case, values: Mapping[str, Value]) -> bool:
    """Does a kernel write codes and, beside them, something else: scales that it makes of what it reads?"""
    return len([b for b in case.buffers if b.is_compared]) > 1 and bool(quantised(targets_of(case, values)))


def exponents(point: Point, drawn: int) -> tuple[int, ...]:
    """Exponents of the scales in use: that of scale buffers, and of scalars that are powers of two."""
    found = [drawn]
    for value in point.scalars.values():
        if isinstance(value, float) and value > 0:
            mantissa, exponent = np.frexp(value)
            if mantissa == 0.5:
                found.append(int(exponent) - 1)
    return tuple(found)


def half_way(
    shape: tuple[int, ...], target: str, scales: Sequence[int], rng: np.random.Generator
) -> np.ndarray:  # fmt: skip
    """Numbers half way between neighbours of type `target` times 2^e; e is a scale's exponent, minus it, or any.

    Exponents change with groups of columns: of a static scale some group always ties, of a scale that follows the
    largest magnitude the group with the largest exponent.
    """
    columns = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    signs = np.where(rng.random((rows, columns)) < 0.5, -1.0, 1.0)
    if target in ("bf16", "f16"):
        bits = 7 if target == "bf16" else 10
        x = (np.floor(rng.uniform(1 << bits, 2 << bits, (rows, columns))) + 0.5) * 2.0**-bits
        return (signs * x * np.exp2(rng.integers(-8, 8, (rows, columns)))).reshape(shape)
    top = LARGEST[target]
    if target in _MANTISSA:
        bits, low, high = _MANTISSA[target]
        x = (np.floor(rng.uniform(1 << bits, 2 << bits, (rows, columns))) + 0.5) * 2.0**-bits
        x = x * np.exp2(rng.integers(low, high + 1, (rows, columns)))
        x = np.where(x < top, x, (1.0 + 0.5 ** (bits + 1)) * np.exp2(float(high - 1)))
    else:
        x = np.floor(rng.uniform(0.0, min(top, 64.0), (rows, columns))) + 0.5  # seven bits: bfloat16 holds them
    width = max(1, min(EVERY, columns // 2))
    x[:, int(rng.integers(width)) :: width] = top
    ways = [*(w for e in scales for w in (e, -e)), int(rng.integers(-SPREAD, SPREAD + 1))]
    group = np.arange(columns) // width  # the first two have the exponents of a scale, whatever was drawn
    own = np.array(ways, np.float64)[(np.arange(rows)[:, None] + group) % len(ways)]
    return (signs * x * np.exp2(own)).reshape(shape)


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
