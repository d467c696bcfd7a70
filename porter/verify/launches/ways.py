"""A port may be launched otherwise than its original: then every way through its launch arithmetic has to be verified.

A way is an arm of a min, max or condition, or one side of a divisor (`n // 256` is zero or not). Launches are added
beyond the sizes of the case, where grids that fit only these sizes leave something unwritten, and at sizes that take
ways which no launch took. A way that is taken only at sizes too large to run is refused (PRT844).
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, CaseInstance, Point
from porter.syntax import module_tree
from porter.verify.launches.derived import listed_sizes, point_of
from porter.verify.launches.trials import Trial, written

FUNCTION = "launch_config"
MOST = 1 << 19  # elements of an added launch
LARGEST = 1 << 31  # a size that no launch reaches
Way = tuple[int, int]  # position of the expression in the text, number of the arm


class _Unknown(Exception):
    """Not plain arithmetic."""


@dataclass(frozen=True)
class Launched:
    grid: tuple[int, ...]
    block: tuple[int, ...]
    ways: frozenset[Way]


@dataclass(frozen=True)
class LaunchWays:
    """The body of a port's launch_config, whose parameters are sizes, scalars and template values."""

    assigned: tuple[tuple[str, ast.expr], ...]
    returned: tuple[ast.expr, ...]  # grid and block

    def at(self, names: Mapping[str, Value]) -> Launched | None:
        """What a point is launched with; None when it cannot be told. Of two equal arms none is taken."""
        found: set[Way] = set()
        known: dict[str, Any] = dict(names)
        try:
            for name, value in self.assigned:
                try:
                    known[name] = _value(value, known, found)
                except _Unknown:
                    known.pop(name, None)  # a width of a type, say; it matters where it is used
            grid, block = (
                [_value(v, known, found) for v in (part.elts if isinstance(part, ast.Tuple) else (part,))]
                for part in self.returned
            )
        except (_Unknown, ExprError, ZeroDivisionError, TypeError, OverflowError):
            return None
        return Launched(_three(grid), _three(block), frozenset(found))


def _three(values: Sequence[Any]) -> tuple[int, ...]:
    return (*(int(v) for v in values), 1, 1, 1)[:3]


def ways_of(text: str) -> LaunchWays | None:
    """The ways of a port's launch, None where it is not assignments and a return of (grid, block, bytes)."""
    for node in module_tree(text).body:
        if not (isinstance(node, ast.FunctionDef) and node.name == FUNCTION):
            continue
        assigned = []
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                assigned.append((statement.targets[0].id, statement.value))
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Tuple):
                return LaunchWays(tuple(assigned), tuple(statement.value.elts[:2]))
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                return None
    return None


def _value(node: ast.expr, names: Mapping[str, Any], found: set[Way]) -> Any:
    def rec(n: ast.expr) -> Any:
        return _value(n, names, found)

    def arm(number: int) -> None:
        found.add((node.lineno << 16 | node.col_offset, number))

    match node:
        case ast.Constant(value=bool() | int() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -rec(x)
        case ast.UnaryOp(op=ast.Not(), operand=x):
            return not rec(x)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = rec(left), rec(right)
            if isinstance(op, ast.FloorDiv | ast.Mod):
                arm(int(abs(a) > abs(b)))
            return expressions.arithmetic(op, a, b)
        case ast.BoolOp(op=op, values=values):
            wanted = isinstance(op, ast.Or)
            for number, v in enumerate(values):
                if bool(rec(v)) is wanted:
                    arm(number)
                    return wanted
            return not wanted
        case ast.Compare(left=left, ops=ops, comparators=rest):
            a = rec(left)
            for relation, right in zip(ops, rest, strict=True):
                b = rec(right)
                if not expressions.compare(relation, a, b):
                    return False
                a = b
            return True
        case ast.IfExp(test=t, body=one, orelse=other):
            test = bool(rec(t))
            arm(int(test))
            return rec(one if test else other)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]):
            given = [rec(a) for a in args]
            best = min(given) if name == "min" else max(given)
            if given.count(best) == 1:
                arm(given.index(best))
            return best
    raise _Unknown


@dataclass(frozen=True)
class OwnLaunch:
    """How one instance of a port is launched, beside its case."""

    case: Case
    instance: CaseInstance
    values: Mapping[str, Value]
    ways: LaunchWays | None  # None: the launch is no plain arithmetic
    sm_count: int

    def at(self, point: Point) -> Launched | None:
        return self.ways.at({**point.names(self.values), "sm_count": self.sm_count}) if self.ways else None

    def is_the_cases(self, point: Point, grid_only: bool = False) -> bool:
        mine, theirs = self.at(point), self.case.launch_at(point, self.values, self.sm_count)
        return mine is None or (mine.grid == theirs.grid and (grid_only or mine.block == theirs.block))

    def differs(self) -> bool:
        """Whether the port's launch is not the case's at some size beyond those that the case lists."""
        points = chain.from_iterable(_beyond(self.case, self.instance, self.values))
        return any(not self.is_the_cases(p) for p in points)

    def more_trials(self, trials: Sequence[Trial], seed: int) -> tuple[list[Trial], str]:
        """What has to be launched beside `trials`, and where (if anywhere) a way is taken that nothing can run."""
        rng = random.Random(f"launch {seed} {self.instance.args}")
        seen = frozenset(chain.from_iterable(self._taken(t.point) for t in trials))
        added: list[Trial] = []
        unverified = ""
        for points in _beyond(self.case, self.instance, self.values):
            first = True  # one launch beyond the case for each size, whatever it takes
            for point in points:
                new = self._taken(point) - seen
                if point.elements <= MOST and (new or first):
                    added.append(Trial(point, "normal", rng.randrange(1 << 31), derived=True))
                    seen |= new
                    first = False
                elif new and not self.is_the_cases(point, grid_only=True):
                    unverified = unverified or str(point)
        return sorted(added, key=lambda t: t.point.elements), unverified

    def _taken(self, point: Point) -> frozenset[Way]:
        found = self.at(point)
        return found.ways if found else frozenset()


def _beyond(case: Case, instance: CaseInstance, values: Mapping[str, Value]) -> Iterator[Iterator[Point]]:
    """For each size, then for all together: points with the size ever larger than the case lists it."""
    listed = {n: listed_sizes(case, n) for n in case.base_sizes}
    free = [n for n, v in listed.items() if len(v) > 1]
    points = [p for p in case.instance_points(instance, values) if written(case, p)]
    if not points or not free:
        return
    small = min(points, key=lambda p: p.elements)
    start = {n: small.sizes[n] for n in case.base_sizes}
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
