"""Constants that a compiled kernel compares with: sizes and rows at which it may do something else.

A port that is wrong only beyond 9216 columns, or from row 64 on, compares with such a number and its original does not.
So what only one of them compares with is tried, at it and beside it, also where the case lists no size that large; all
other sizes are the smallest of the case, which keeps these launches cheap.
"""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Mapping

from porter.case.expressions import Value
from porter.case.reader import Case, CaseInstance, Point
from porter.model import PorterError
from porter.verify.launches.derived import legal_near, listed_sizes, point_of
from porter.verify.launches.inputs import has_indices, index_count, scenarios
from porter.verify.launches.own_values import index_scenario
from porter.verify.launches.trials import Trial, written

MOST = 1 << 18  # elements of a launch at a number that the port compares with
TRIED = 12  # such launches an instance
TOTAL = 1 << 17  # elements of all launches at numbers as counts of vectors and blocks
UNROLLED = 16  # numbers up to this are mostly of unrolled loops: tried as they are
MORE = 4  # launches at the other numbers
RUN = 8
CHEAP = 1 << 15  # elements of one of these
MOST_READ, LITTLE = 1 << 23, 1 << 13  # elements of a launch that writes no more than so many
INDICES = 16
LARGEST = 1 << 24  # numbers above are bit patterns and ends of ranges

_STEP = re.compile(r"^\s*(?:@!?%\w+\s+)?(setp|set|min|max|shr|and|sub|add)\.([\w.]+)\s+([^;]*);", re.MULTILINE)
_INTEGER = re.compile(r"(?<![\w%.])(-?\d+|0[xX][0-9a-fA-F]+)U?(?![\w.])")
_FLOAT = re.compile(r"\b0[fF]([0-9a-fA-F]{8})\b|\b0[dD]([0-9a-fA-F]{16})\b")
_FEEDS = ("shr", "and", "sub", "add")


def compared_constants(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """(numbers of integer comparisons, minima and maxima and of what is computed for them; numbers of those of floats).

    Whole numbers from 2 on that may be a size or a row, in a function's PTX; a shift by k counts as 2^k.
    """
    compared: set[int] = set()
    floats: set[int] = set()
    steps = _STEP.findall(text)
    tested = {r for name, _, operands in steps if name in ("setp", "set") for r in re.findall(r"%\w+", operands)}
    for name, kind, operands in steps:
        if name in _FEEDS and operands.split(",")[0].strip() not in tested:
            continue
        if re.search(r"f(16|32|64)|bf16", kind):
            found = (struct.unpack(">f" if a else ">d", bytes.fromhex(a or b))[0] for a, b in _FLOAT.findall(operands))
            floats |= {abs(int(f)) for f in found if 2 <= abs(f) < LARGEST and f == int(f)}
            continue
        numbers = [int(t, 16 if t[:2] in ("0x", "0X") else 10) for t in _INTEGER.findall(operands)]
        if name == "shr":
            numbers = [1 << v for v in numbers if 0 < v < 24]
        compared |= {abs(v) for v in numbers if 1 < abs(v) < LARGEST}
    return frozenset(compared), frozenset(floats)


def own_constants(original: str, port: str) -> tuple[list[int], list[int]]:
    """(what only the port compares with, the rest that is worth a cheap launch) of two functions' PTX.

    Of the rest are neighbours of the original's numbers, mostly the same comparison (< 128 or <= 127), and the ends of
    a run of RUN or more neighbours: a loop that was unrolled, a table of branches.
    """
    theirs, mine = compared_constants(original), compared_constants(port)
    alone, ends = _alone(mine[0]), _ends(mine[0])
    first = {n for n in alone if not theirs[0] & {n - 1, n, n + 1}}
    rest = (alone | ends) - theirs[0] | (mine[1] - theirs[1]) | ((_alone(theirs[0]) | _ends(theirs[0])) - mine[0])
    return sorted(first), sorted(rest - first)


def _run(numbers: frozenset[int], n: int) -> tuple[int, int]:
    """How many neighbours without a gap a number has below and above it, itself included; at most RUN each."""
    below = next(k for k in range(1, RUN + 1) if n - k not in numbers or k == RUN)
    above = next(k for k in range(1, RUN + 1) if n + k not in numbers or k == RUN)
    return below, above


def _alone(numbers: frozenset[int]) -> frozenset[int]:
    """Those that are in no run of RUN or more."""
    return frozenset(n for n in numbers if sum(_run(numbers, n)) - 1 < RUN)


def _ends(numbers: frozenset[int]) -> frozenset[int]:
    """First and last numbers of such runs."""
    return frozenset(n for n in numbers - _alone(numbers) if 1 in _run(numbers, n))


def constant_trials(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], constants: tuple[list[int], list[int]], seed: int
) -> list[Trial]:
    """Launches at and just beyond the constants, one size at a time, as elements, as vectors and as blocks of them."""
    free = sorted(case.base_sizes, key=lambda n: len(listed_sizes(case, n)) == 1)  # what has one value comes last
    points = [p for p in case.instance_points(instance, values) if written(case, p)]
    if not points:
        return []
    indexed = has_indices(case, values)

    def rank(point: Point) -> tuple[bool, bool, int]:
        """No size of zero, where others vary; enough indices for all that is beside a number."""
        few = indexed and index_count(case, values, point) < INDICES
        return min((point.sizes[n] for n in free), default=1) < 1, few, point.elements

    small = min(points, key=rank)
    start = {n: small.sizes[n] for n in case.base_sizes}
    scalars = {n: v[0] for n, v in case.scalars}
    rng = random.Random(f"constants {seed} {instance.args}")
    units = sorted({1, 8, *(v for v in values.values() if isinstance(v, int) and 1 < v <= 64)})
    try:
        threads = math.prod(case.launch_at(small, values).block)
        units += [u * threads for u in units]
    except PorterError:
        pass
    known = {str(p) for p in points}
    found: dict[str, Point] = {}
    at: dict[str, int] = {}  # the number that a point was made for
    spent = [0]

    def nearest(name: str, value: int) -> Point | None:
        """The point at the least size from `value` on that the instance takes, by what vectors and tiles divide."""
        for step in (1, *units, 16, 32, 64, 128):
            size = -(-value // step) * step
            sizes = {**start, name: legal_near(size, listed_sizes(case, name))}
            point = point_of(case, instance, values, sizes, scalars, frozenset())
            if point is not None:
                return point
        return None

    def fits(point: Point, left: int) -> bool:
        """Not too large: much that is only read costs little."""
        much = written(case, point)
        return much > 0 and (point.elements <= left or (point.elements <= MOST_READ and much <= LITTLE))

    def look(numbers: list[int], most: int, count: int) -> None:
        larger = sorted(numbers, reverse=True)  # small ones are mostly of the compiler
        wanted = [(c, u, n) for u in units for c in larger for n in free if u == 1 or c > UNROLLED]
        for constant, unit, name in wanted:
            listed = listed_sizes(case, name)
            beyond = (constant + 2) * unit
            for value in (constant * unit, *([beyond] if beyond > max(listed) else [])):
                if len(found) >= count:
                    return
                left = most if unit == 1 else min(most, TOTAL - spent[0])
                point = nearest(name, value)
                if point is not None and fits(point, left) and str(point) not in known:
                    found.setdefault(str(point), point)
                    at.setdefault(str(point), constant)
                    spent[0] += point.elements if unit > 1 else 0

    look(constants[0], MOST, TRIED)
    look(constants[1], CHEAP, len(found) + MORE)
    trials: list[Trial] = []
    for name, point in found.items():
        scenario = index_scenario(at[name]) if at[name] > UNROLLED and indexed else "normal"
        trials.append(Trial(point, scenario, rng.randrange(1 << 31), derived=True))
    if "skewed" in scenarios(case, values):  # a number that counts ids: as many have to be the same
        for number in sorted(set(at.values())):
            most = max((found[n] for n in found if at[n] == number), key=lambda p: index_count(case, values, p))
            if index_count(case, values, most) > number > UNROLLED:
                trials.append(Trial(most, "one", rng.randrange(1 << 31), derived=True))
    return trials
