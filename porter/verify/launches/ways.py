"""A port may be launched otherwise than its original: then every way through its launch arithmetic has to be verified.

Whether it is launched otherwise is decided by values: its launch_config is asked at many sizes (powers of two and
primes and their neighbours, the constants in its text, where one of its comparisons turns), and held against the case.
Ways (launch_reading) then say which launches have to be added: beyond the sizes of the case, where grids that fit only
these sizes leave something unwritten, and at sizes that take ways which no launch took. A way that is taken only at
sizes too large to run is refused (PRT844), and so is a launch that cannot be read where it differs at such sizes.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from porter.case.expressions import Value
from porter.case.model import LaunchShape
from porter.case.reader import Case, CaseInstance, Point
from porter.model import PorterError
from porter.syntax import module_tree
from porter.verify.launches.derived import legal_near, listed_sizes, point_of
from porter.verify.launches.reading import Place, PortRaises, Reading, Trace, Unreadable, Way
from porter.verify.launches.trials import Trial, written

FUNCTION = "launch_config"
MOST = 1 << 19  # elements of an added launch
LARGEST = 1 << 31  # a size that no launch reaches
TURNS = 400  # evaluations of launch_config a size, in the search for where it turns
PRIMES = (2, 3, 5, 7, 11, 13, 31, 61, 97, 127, 251, 509, 1021, 2039, 4093, 8191, 65521, 131071, 1000003, 16777213)

Ask = Callable[[Sequence[Point]], Sequence[LaunchShape | None]]  # the port's own launches; None: it does not take one


@dataclass(frozen=True)
class Launched:
    grid: tuple[int, ...]
    block: tuple[int, ...]
    ways: frozenset[Way]
    smem: int = 0


@dataclass(frozen=True)
class LaunchWays:
    """The launch_config of a port, whose parameters are sizes, scalars and template values."""

    reading: Reading
    constants: frozenset[int]  # whole numbers in the text of what it may use

    def at(self, names: Mapping[str, Value]) -> Launched | None:
        """What a point is launched with; None when it cannot be told. Of two equal arms none is taken."""
        trace = Trace()
        try:
            grid, block, *rest = self.reading.call(FUNCTION, names, trace)
            smem = int(rest[0]) if rest and isinstance(rest[0], int) else 0
            return Launched(_three(grid), _three(block), frozenset(trace.ways), smem)
        except (Unreadable, TypeError, ValueError):
            return None

    def signs(self, names: Mapping[str, Value]) -> dict[Place, int]:
        """Of each comparison, which side is larger: -1, 0, 1."""
        trace = Trace()
        try:
            self.reading.call(FUNCTION, names, trace)
        except PortRaises:
            pass
        except Unreadable:
            return {}
        return {place: (m > 0) - (m < 0) for place, m in trace.margins.items()}


def _three(values: Any) -> tuple[int, ...]:
    found = values if isinstance(values, list | tuple) else (values,)
    return (*(int(v) for v in found), 1, 1, 1)[:3]


def ways_of(text: str) -> LaunchWays | None:
    """The ways of a port's launch; None where it has no launch_config."""
    tree = module_tree(text)
    reading = Reading(tree)
    if FUNCTION not in reading.functions:
        return None
    used = [reading.functions[FUNCTION]]
    for function in used:
        names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        used += [f for n, f in reading.functions.items() if n in names and f not in used]
    nodes: list[ast.AST] = [*used, *(v for n, v in reading.constants.items() if n != "KERNEL")]
    numbers = {n.value for part in nodes for n in ast.walk(part) if isinstance(n, ast.Constant)}
    return LaunchWays(reading, frozenset(n for n in numbers if type(n) is int and 1 < n < LARGEST))


@dataclass(frozen=True)
class OwnLaunch:
    """How one instance of a port is launched, beside its case."""

    case: Case
    instance: CaseInstance
    values: Mapping[str, Value]
    ways: LaunchWays | None  # None: the launch is no plain arithmetic
    sm_count: int
    ask: Ask | None = None  # None: what is read is taken for the answer

    def at(self, point: Point) -> Launched | None:
        return self.ways.at({**point.names(self.values), "sm_count": self.sm_count}) if self.ways else None

    def is_the_cases(self, point: Point, grid_only: bool = False) -> bool:
        mine, theirs = self.asked[self._key(point)], self.cases(point)
        if mine is None or theirs is None:
            return True  # one of them says that it does not take such sizes
        return mine.grid == theirs.grid and (grid_only or (mine.block, mine.smem) == (theirs.block, theirs.smem))

    def cases(self, point: Point) -> LaunchShape | None:
        """The case's launch; None where its arithmetic gives none."""
        try:
            return self.case.launch_at(point, self.values, self.sm_count)
        except PorterError:
            return None

    @staticmethod
    def _key(point: Point) -> str:
        return f"{point}"

    @cached_property
    def asked(self) -> dict[str, LaunchShape | None]:
        """The port's own launches at every point that is looked at."""
        every = [*chain.from_iterable(self.beyond), *self.around]
        if self.ask is not None:
            answers = self.ask(every)
        else:
            read = [self.at(p) for p in every]
            answers = [None if r is None else LaunchShape(_dims(r.grid), _dims(r.block), r.smem) for r in read]
        return {self._key(p): a for p, a in zip(every, answers, strict=True)}

    @cached_property
    def beyond(self) -> list[list[Point]]:
        """For each size, then for all together: points with the size ever larger than the case lists it."""
        return [list(points) for points in _beyond(self.case, self.instance, self.values)]

    @cached_property
    def around(self) -> list[Point]:
        """One size at a time, the others small: powers of two, primes, constants, where a comparison turns."""
        start = _start(self.case, self.instance, self.values)
        if start is None:
            return []
        sizes, free = start
        scalars = {n: v[0] for n, v in self.case.scalars}
        found: dict[str, Point] = {}
        for name in free:
            listed = listed_sizes(self.case, name)
            powers = [1 << k for k in range(31)]
            widths = {v for v in self.values.values() if isinstance(v, int) and 1 < v <= 64}
            constants = self.ways.constants if self.ways else frozenset()
            near = {*powers, *PRIMES, *constants, *(c * w for c in constants for w in widths)}
            near |= {a * b for a in constants for b in constants if a * b < LARGEST}
            wanted = {v + d for v in near for d in (-1, 0, 1)}
            wanted |= self._turns(name, sizes, scalars)
            for value in sorted({legal_near(max(v, 1), listed) for v in wanted}):
                point = None
                if value < LARGEST:
                    changed = {**sizes, name: value}
                    point = point_of(self.case, self.instance, self.values, changed, scalars, frozenset())
                if point is not None:
                    found.setdefault(self._key(point), point)
        return list(found.values())

    def _turns(self, name: str, sizes: Mapping[str, int], scalars: Mapping[str, str]) -> set[int]:
        """Values of a size at which a comparison of launch_config turns, by bisection between powers of two."""
        known: dict[int, dict[Place, int]] = {}

        def signs(value: int) -> dict[Place, int]:
            if value not in known:
                point = point_of(self.case, None, self.values, {**sizes, name: value}, scalars, frozenset())
                names = {**point.names(self.values), "sm_count": self.sm_count} if point is not None else None
                known[value] = self.ways.signs(names) if self.ways and names else {}
            return known[value]

        grid = [0, *(1 << k for k in range(0, 31, 3))]
        found: set[int] = set()
        for low, high in pairwise(grid):
            one, other = signs(low), signs(high)
            for place in one.keys() | other.keys():
                if one.get(place) == other.get(place) or len(known) > TURNS:
                    continue
                a, b = low, high
                while b - a > 1:
                    middle = (a + b) // 2
                    a, b = (middle, b) if signs(middle).get(place) == one.get(place) else (a, middle)
                found |= {a - 1, a, b, b + 1}
        return found

    def differs(self) -> bool:
        """Whether the port's launch is not the case's at some size, the case's or beyond."""
        points = chain(chain.from_iterable(self.beyond), self.around)
        return any(not self.is_the_cases(p) for p in points)

    def more_trials(self, trials: Sequence[Trial], seed: int) -> tuple[list[Trial], str]:
        """What has to be launched beside `trials`, and where (if anywhere) a way is taken that nothing can run."""
        rng = random.Random(f"launch {seed} {self.instance.args}")
        seen = frozenset(chain.from_iterable(self._taken(t.point) for t in trials))
        added: list[Trial] = []
        unverified = ""
        for points in [*self.beyond, *([p] for p in self._different())]:
            first = len(points) > 1  # one launch beyond the case for each size, whatever it takes
            for point in points:
                new = self._taken(point) - seen
                if point.elements <= MOST and (new or first):
                    added.append(Trial(point, "normal", rng.randrange(1 << 31), derived=True))
                    seen |= new
                    first = False
                elif new and not self.is_the_cases(point, grid_only=True):
                    unverified = unverified or str(point)
        return sorted(added, key=lambda t: t.point.elements), unverified

    def _different(self) -> list[Point]:
        """Of the points around at which the launches differ those that can be run, cheapest first; then the others."""
        found = [p for p in self.around if not self.is_the_cases(p)]
        return sorted(found, key=lambda p: p.elements)

    def _taken(self, point: Point) -> frozenset[Way]:
        found = self.at(point)
        return found.ways if found else self._relation(point)

    def _relation(self, point: Point) -> frozenset[Way]:
        """In the place of ways that cannot be read: by what factor the port's grid is smaller than the case's."""
        mine = self.asked.get(self._key(point))
        if mine is None:
            return frozenset()
        theirs = self.cases(point)
        if theirs is None:
            return frozenset()
        ratio = (round(2 * math.log2(max(t, 1) / max(m, 1))) for m, t in zip(mine.grid, theirs.grid, strict=True))
        return frozenset((-1 - axis, r) for axis, r in enumerate(ratio))


def _dims(values: Sequence[int]) -> tuple[int, int, int]:
    padded = (*values, 1, 1, 1)
    return (padded[0], padded[1], padded[2])


def _start(case: Case, instance: CaseInstance, values: Mapping[str, Value]) -> tuple[dict[str, int], list[str]] | None:
    """The smallest sizes of the case at which something is written, and the names of those that it varies."""
    free = [n for n in case.base_sizes if len(listed_sizes(case, n)) > 1]
    points = [p for p in case.instance_points(instance, values) if written(case, p)]
    if not points or not free:
        return None
    small = min(points, key=lambda p: p.elements)
    return {n: small.sizes[n] for n in case.base_sizes}, free


def _beyond(case: Case, instance: CaseInstance, values: Mapping[str, Value]) -> Iterator[Iterator[Point]]:
    """For each size, then for all together: points with the size ever larger than the case lists it."""
    found = _start(case, instance, values)
    if found is None:
        return
    start, free = found
    listed = {n: listed_sizes(case, n) for n in case.base_sizes}
    scalars = {n: v[0] for n, v in case.scalars}

    def growing(names: Sequence[str]) -> Iterator[Point]:
        for power in range(1, 31):
            sizes = {**start, **{n: _grown(listed[n], power) for n in names}}
            if max(sizes.values()) > LARGEST:
                return
            point = point_of(case, instance, values, sizes, scalars, frozenset())
            if point is not None:
                yield point

    for name in free:
        yield growing([name])
    if len(free) > 1:
        yield growing(free)


def _grown(listed: frozenset[int], power: int) -> int:
    """A size beyond those listed that has what they have in common: a factor, or being a power of two."""
    most, factor = max(listed), math.gcd(*listed)
    several = [v for v in listed if v > 1]
    if len(several) > 1 and all(v & (v - 1) == 0 for v in several):
        return most << power
    return (most << power) + max(factor, 1)
