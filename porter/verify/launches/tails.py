"""One more and one less than what vectors divide, in every dimension: always, not by chance.

A vector's width is a template value or hidden in the kernel's text; a number that 16 and every such value divide serves
for all. Where the case allows no such neighbour, the nearest size on that side that it allows is taken.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from porter.case.expressions import Value
from porter.case.reader import Case, CaseInstance, Point
from porter.verify.launches.derived import STEPS, is_legal, listed_sizes, point_of
from porter.verify.launches.trials import LARGE, Trial, written

WIDTH = 16  # elements: the widest access of the narrowest type


def tail_trials(case: Case, instance: CaseInstance, values: Mapping[str, Value], seed: int) -> list[Trial]:
    """Launches of one instance at such sizes, one dimension at a time, the other sizes the smallest of the case."""
    free = [n for n in case.base_sizes if len(listed_sizes(case, n)) > 1]
    points = [p for p in case.instance_points(instance, values, limit=60, seed=seed) if written(case, p)]
    if not points or not free:
        return []
    rng = random.Random(f"tails {seed} {instance.args}")
    widths = [v for v in values.values() if isinstance(v, int) and not isinstance(v, bool) and 1 < v <= 64]
    width = math.lcm(WIDTH, *widths)
    known = {tuple(p.sizes[n] for n in case.base_sizes) for p in points}
    found: list[Trial] = []
    for name in free:
        for step in (-1, 1):
            point = _beside(case, instance, values, points, name, width, step)
            if point is None or point.elements >= LARGE or not written(case, point):
                continue
            sizes = tuple(point.sizes[n] for n in case.base_sizes)
            if sizes not in known:
                known.add(sizes)
                found.append(Trial(point, "normal", rng.randrange(1 << 31), derived=True))
    return found


def _beside(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], points: list[Point], name: str, width: int,
    step: int,
) -> Point | None:  # fmt: skip
    listed = listed_sizes(case, name)
    start = min(points, key=lambda p: (p.sizes[name] <= 1, p.elements))
    sizes = {n: start.sizes[n] for n in case.base_sizes}
    scalars = {n: v[0] for n, v in case.scalars}
    least, most = min(listed), max(listed)
    multiples = [m for m in (width, 2 * width, 3 * width, 4 * width, 8 * width) if least < m < most]
    for middle in multiples or sorted(v for v in listed if least < v < most) or [most if step < 0 else least]:
        for distance in STEPS:
            size = middle + step * distance
            if size > 0 and is_legal(size, listed):
                point = point_of(case, instance, values, {**sizes, name: size}, scalars, start.null)
                if point is not None:
                    return point
    return None
