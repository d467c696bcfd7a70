"""Outputs whose last rows begin beyond 2^31 elements: so many rows that an offset of 32 bits is too narrow.

The kernel is told of all rows, but only the blocks at the ends of the grid run, and only the first and the last row of
each buffer have contents. The rest is address space that takes no memory.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, CaseInstance, LaunchShape, Point
from porter.cxx.types import scalar_name
from porter.model import KernelInfo, PorterError
from porter.verify.launches.buffers import SPARSE
from porter.verify.launches.derived import listed_sizes
from porter.verify.launches.trials import LARGE, Trial, written

BEYOND = 1 << 31  # elements
ENDS = 2  # blocks at each end of a dimension of the grid
EACH = 256  # elements of a thread, at most: fewer threads than that go round for the rows of others
WHOLE = 1 << 22  # elements up to which a buffer has all its rows
FEW = 8  # a dimension of so many blocks is run whole
_NARROW = {"i32": 1 << 31, "u32": 1 << 32, "i16": 1 << 15, "u16": 1 << 16, "i8": 1 << 7, "u8": 1 << 8}


def far_rows_trial(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], info: KernelInfo, seed: int
) -> Trial | None:
    """A launch over more than 2^31 elements of output, of which the first and the last row are looked at.

    None where no size is a number of rows alone, where blocks work together, or where a number would not fit its
    parameter's type.
    """
    if case.launch.cooperative or any(e.strip() != "1" for e in case.launch.cluster):
        return None
    points = [p for p in case.instance_points(instance, values, limit=60, seed=seed) if 0 < written(case, p) < LARGE]
    points.sort(key=lambda p: -_row(case, p))
    for name in case.base_sizes:
        if not listed_sizes(case, name):
            continue
        for point in points[:4]:
            found = _window(case, instance, values, info, point, name)
            if found is not None:
                return Trial(found, "normal", random.Random(f"rows {seed}").randrange(1 << 31), far=True, window=True)
    return None


def edge_blocks(shape: LaunchShape) -> LaunchShape:
    """The launch with the blocks at the ends of its grid only."""
    dims = [
        range(n) if n <= FEW else sorted({*range(ENDS), *range(n - ENDS, n)}) for n in shape.grid
    ]  # fmt: skip
    gx, gy, _ = shape.grid
    return replace(shape, only=tuple(x + gx * (y + gy * z) for z, y, x in itertools.product(*dims[::-1])))


def _row(case: Case, point: Point) -> int:
    """Elements in a row of the output with the longest ones."""
    return max((math.prod(point.shapes[b.name][1:]) for b in case.buffers if b.is_compared), default=0)


def _window(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], info: KernelInfo, point: Point, name: str
) -> Point | None:
    rows = BEYOND // max(_row(case, point), 1) + 3
    sizes = {n: v for n, v in point.sizes.items() if n in case.base_sizes}
    texts = {n: v[0] for n, v in case.scalars}
    try:
        one = case.point_with({**sizes, name: 1}, texts, values, point.null)
        all_ = case.point_with({**sizes, name: rows}, texts, values, point.null)
        if instance.when and not expressions.evaluate(instance.when, all_.names(values)):
            return None
    except (PorterError, ExprError):
        return None
    shapes, strides = dict(all_.shapes), dict(all_.strides)
    is_far = False
    for buffer in case.buffers:
        few, many = one.shapes[buffer.name], all_.shapes[buffer.name]
        if few == many:
            continue
        if few != (1, *many[1:]) or many[0] != rows:
            return None  # not so many rows, but something else that grows with this size
        if math.prod(many) <= WHOLE:
            continue
        if math.prod(many) <= SPARSE:
            return None  # memory for all of it, of which other rows than the two would count as gaps
        shapes[buffer.name] = (2, *many[1:])
        strides[buffer.name] = ((rows - 1) * strides[buffer.name][0], *strides[buffer.name][1:])
        is_far |= buffer.is_compared and len(many) > 1
    narrow = {p.name: _NARROW.get(scalar_name(p.type) or "", 1 << 63) for p in info.params}
    if not is_far or any(isinstance(v, int) and v >= narrow.get(n, 1 << 63) for n, v in all_.scalars.items()):
        return None
    return replace(all_, shapes=shapes, strides=strides)


def at_the_edges(
    trials: list[Trial], pairs: list[tuple[LaunchShape, LaunchShape]]
) -> tuple[list[Trial], list[tuple[LaunchShape, LaunchShape]]]:
    """The launches, those over too many rows at the edges of their grids; left out where the two grids differ, and
    where the grid does not grow with the rows."""
    found = []
    for trial, (theirs, mine) in zip(trials, pairs, strict=True):
        threads = math.prod(theirs.grid) * math.prod(theirs.block)
        if trial.window and theirs == mine and threads * EACH >= BEYOND:
            found.append((trial, (edge_blocks(theirs), edge_blocks(mine))))
        elif not trial.window:
            found.append((trial, (theirs, mine)))
    return [t for t, _ in found], [p for _, p in found]
