"""Other values of numbers that the case gives one value: a port that has written such a number down is wrong with them.

The original is the judge: what it refuses, or its reference contradicts, is not held against the port. A case that
means a number to stay says `{ fixed = ... }`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, CaseInstance, Point
from porter.model import PorterError
from porter.verify.launches.inputs import scenarios
from porter.verify.launches.own_values import ROWS, scenario_of
from porter.verify.launches.trials import LARGE, SMALL, Trial, written

STRIDE_STEP = 16  # elements: wide accesses of rows stay aligned
ENOUGH = 2048  # written elements of a launch with values around a number
BELOW, ABOVE = 0.0625, 16.0  # of a number that the port compares with
LOOKED_AT = 24  # points of the case that are asked whether a scalar is always the same


def unvaried(case: Case, points: list[Point]) -> dict[str, int | float | bool]:
    """The scalars, not fixed, that have one value at all of these points."""
    found: dict[str, int | float | bool] = {}
    for name, variants in case.scalars:
        if len(variants) > 1 or name in case.fixed_scalars:
            continue
        values = {p.scalars[name] for p in points}
        if len(values) == 1:
            found[name] = values.pop()
    return found


def unvaried_strides(case: Case) -> list[str]:
    """The scalars, not fixed, that are the row stride of a buffer and that the case gives one expression."""
    once = {n for n, v in case.scalars if len(v) == 1 and n not in case.fixed_scalars}
    rows = (b.strides[0].strip() for b in case.buffers if b.strides and len(b.strides) > 1)
    return list(dict.fromkeys(s for s in rows if s in once))


def others(value: int | float | bool) -> list[int | float | bool]:
    """Two other values, the nearer in kind first; one of a bool."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value > 1 else [value + 1]
    return [value * 2.0, value * 0.375] if value else [0.5, -0.25]


def scalar_trials(case: Case, instance: CaseInstance, values: Mapping[str, Value], seed: int) -> list[Trial]:
    """Launches of one instance with other values of such scalars: one scalar at a time, then all of them."""
    points = [p for p in case.instance_points(instance, values, limit=LOOKED_AT, seed=seed) if written(case, p)]
    small = [p for p in points if p.elements < LARGE]
    if not small:
        return []
    single, strides = unvaried(case, points), unvaried_strides(case)
    point = min(small, key=lambda p: (written(case, p) < SMALL, p.elements))
    rows = min(small, key=lambda p: (_least_rows(case, p) < 2, p.elements))
    rng = random.Random(f"scalars {seed} {instance.args}")
    possible = scenarios(case, values)
    found: list[Trial] = []

    def add(start: Point, given: Mapping[str, int | float | bool], scenario: str) -> None:
        made = _with(case, instance, values, start, given)
        if made is not None:
            found.append(Trial(made, scenario, rng.randrange(1 << 31), derived=True))

    for name, value in single.items():
        first = others(value)[0]
        # an epsilon shows where everything else is small
        near = "small" if isinstance(value, float) and "small" in possible else "normal"
        add(point, {name: first}, near)
    floats = {n: others(v)[1] for n, v in single.items() if isinstance(v, float)}
    if floats:
        add(point, floats, "normal")
    for name in strides:
        if name not in single:
            add(rows, {name: rows.scalars[name] + STRIDE_STEP}, "normal")
    return found


def own_value_trials(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], numbers: list[float], seed: int
) -> list[Trial]:
    """Launches with inputs around numbers that only the port compares with, and floating scalars below and above."""
    points = [p for p in case.instance_points(instance, values, limit=LOOKED_AT, seed=seed) if written(case, p)]
    points.sort(key=lambda p: p.elements)
    if not points or not numbers:
        return []
    enough = (p for p in points if _rows(case, p) >= ROWS and written(case, p) >= ENOUGH)
    point = next(enough, max((p for p in points if p.elements < LARGE), key=lambda p: p.elements, default=points[0]))
    rng = random.Random(f"own values {seed} {instance.args}")
    found: list[Trial] = []
    for number in numbers:
        found.append(Trial(point, scenario_of(number), rng.randrange(1 << 31), derived=True))
        for name, value in point.scalars.items():
            if isinstance(value, float) and name not in case.fixed_scalars:
                for other in (number * BELOW, number * ABOVE):
                    made = _with(case, instance, values, point, {name: math.copysign(other, value)})
                    if made is not None:
                        found.append(Trial(made, scenario_of(number), rng.randrange(1 << 31), derived=True))
    return found


def _rows(case: Case, point: Point) -> int:
    return max((math.prod(point.shapes[b.name][:-1]) for b in case.buffers if b.is_compared), default=0)


def _least_rows(case: Case, point: Point) -> int:
    return min((point.shapes[b.name][0] for b in case.buffers if b.strides and len(b.strides) > 1), default=0)


def _with(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], point: Point,
    given: Mapping[str, int | float | bool],
) -> Point | None:  # fmt: skip
    """The point with these scalars, where the instance takes it."""
    texts = {n: str(given.get(n, v)) for n, v in point.scalars.items()}
    sizes = {n: v for n, v in point.sizes.items() if n in case.base_sizes}
    try:
        made = case.point_with(sizes, texts, values, point.null)
        if instance.when and not expressions.evaluate(instance.when, made.names(values)):
            return None
    except (PorterError, ExprError):
        return None
    return made
