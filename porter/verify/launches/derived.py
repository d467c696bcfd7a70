"""Shapes that nobody wrote down: sizes around the kernel's own constants and comparisons, and a few drawn at random.

The case says what is legal: a size stays between the least and the largest value that the case gives it, keeps a
common factor of these values, and is a power of two where all of them are. What the original then refuses is dropped
by the launch itself (`Trial.derived`).

One more and one less than what vectors divide is tried in every dimension, always and not by chance. A vector's width
is a template value or hidden in the kernel's text; a number that 16 and every such value divide serves for all. Where
the case allows no such neighbour, the nearest size on that side that it allows is taken.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, CaseInstance, Point
from porter.model import PorterError
from porter.verify.launches.inputs import scenarios
from porter.verify.launches.trials import FEW, LARGE, Trial, affected, written

BESIDE = 1  # launches an instance one step beside a listed size: odd numbers of vectors, of groups, of rows
WRAPPED = 1  # where a block at its largest has to go round again, and does not come out even
AROUND = 2  # at sizes around constants
RANDOM = 1
WIDTH = 16  # elements: the widest access of the narrowest type
TRIES = 24  # draws for each of them
STEPS = (1, 2, 4, 8, 16, 32, 64, 128)  # elements: the least that the case allows is taken
EDGES = (0, 1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)  # of warps, blocks and tiles
_OPAQUE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#[^\n]*', re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?![\w.])")
_MOST = 1 << 16  # constants above are masks and bit patterns, not sizes


def constants_of(text: str) -> frozenset[int]:
    """The whole numbers in C++ text, comments, strings and preprocessor lines left out; those that may be sizes."""
    found = (int(n, 0) if n[:2] in ("0x", "0X") else int(n) for n in _NUMBER.findall(_OPAQUE.sub(" ", text)))
    return frozenset(n for n in found if 1 < n <= _MOST)


def size_candidates(case: Case, name: str, constants: frozenset[int], values: Mapping[str, Value]) -> list[int]:
    """Values of a base size that the case does not list, at and beside constants and their vectors, ascending."""
    listed = listed_sizes(case, name)
    widths = {v for v in values.values() if isinstance(v, int) and not isinstance(v, bool) and 1 < v <= 64}
    edges = {*EDGES, *constants, *(c * w for c in constants for w in widths), *listed, *widths}
    around = {e + d for e in edges for d in (-1, 0, 1)} | {e + s * w for e in edges for w in widths for s in (-1, 1)}
    return sorted(v for v in around if v not in listed and is_legal(v, listed))


def listed_sizes(case: Case, name: str) -> frozenset[int]:
    """The values that the case gives a base size."""
    table = dict(case.sizes)[name]
    given = () if isinstance(table, str) or case.only_shapes else table
    return frozenset([*given, *(s[name] for s in case.shapes)])


def is_legal(value: int, listed: frozenset[int]) -> bool:
    """May a size with these listed values have another one? See the module's text."""
    if not min(listed) <= value <= max(listed):
        return False
    factor = math.gcd(*listed)
    if factor > 1 and value % factor:
        return False
    several = [v for v in listed if v > 1]
    powers = len(several) > 1 and all(v & (v - 1) == 0 for v in several)
    return not (powers and value & (value - 1))


def legal_near(value: int, listed: frozenset[int], upwards: bool = True) -> int:
    """The nearest size from `value` on (or down) that has what the listed ones have in common; not bounded by them."""
    factor = max(math.gcd(*listed), 1)
    several = [v for v in listed if v > 1]
    if len(several) > 1 and all(v & (v - 1) == 0 for v in several):
        power = 1 << max(value - 1, 0).bit_length()
        return power if upwards or power == value else power >> 1
    return -(-value // factor) * factor if upwards else value // factor * factor


def derived_trials(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], constants: frozenset[int], seed: int
) -> list[Trial]:
    """Launches of one instance at sizes that the case does not list, cheapest first; none where all are given.

    Each starts from a point of the case and moves one or two of its sizes. They are small (below LARGE elements) and
    write something.
    """
    rng = random.Random(f"derived {seed} {instance.args}")
    points = case.instance_points(instance, values, limit=60, seed=seed)
    free = [n for n in case.base_sizes if len(listed_sizes(case, n)) > 1]
    if not points or not free:
        return []
    full = [p for p in points if all(p.sizes[n] > 0 for n in case.base_sizes)] or points
    near = {n: size_candidates(case, n, constants, values) for n in free}
    found: dict[str, Point] = {}
    rows = {n for b in case.buffers if len(b.shape) > 1 for n in re.findall(r"\w+", str(b.shape[-1]))}
    longest = sorted(free, key=lambda n: (n not in rows, -max(listed_sizes(case, n))))

    caps = constants_of(" ".join(case.launch.block))
    widths = {1, *(v for v in values.values() if isinstance(v, int) and 1 < v <= 64)}

    def wraps(point: Point) -> bool:
        """Are there more vectors in a row than threads in a block, by a number that the block does not divide?"""
        try:
            threads = math.prod(case.launch_at(point, values).block)
        except PorterError:
            return False
        length = point.sizes[longest[0]]
        return any(length // w > threads and length // w % threads for w in widths if w > 1 or len(widths) == 1)

    def moved(kind: str, turn: int) -> dict[str, int] | None:
        start = rng.choice(full if kind == "beside" else points)
        sizes = {n: v for n, v in start.sizes.items() if n in case.base_sizes}
        if kind == "beside":  # the lengths of rows, the longest first, and another size
            name = longest[turn] if turn < max(1, len(rows.intersection(longest))) else rng.choice(longest)
            sizes[name] = rng.choice([v for v in listed_sizes(case, name) if v > 0] or [1])
            steps = (_point(case, instance, values, {**sizes, name: sizes[name] + d}, rng) for d in STEPS
                     if is_legal(sizes[name] + d, listed_sizes(case, name)))  # fmt: skip
            step = next((p for p in steps if p is not None), None)
            return {n: step.sizes[n] for n in case.base_sizes} if step else None
        if kind == "wrapped":
            name = longest[0]
            small = min(points, key=lambda p: (written(case, p) == 0, p.elements))
            sizes = {n: small.sizes[n] for n in case.base_sizes}
            ends = [c * w + d for c in caps for w in widths for d in STEPS]
            legal = [v for v in ends if is_legal(v, listed_sizes(case, name)) and v not in listed_sizes(case, name)]
            rng.shuffle(legal)
            beyond = (_point(case, instance, values, {**sizes, name: v}, rng) for v in legal)
            point = next((p for p in beyond if p is not None and wraps(p)), None)
            return {n: point.sizes[n] for n in case.base_sizes} if point else None
        for name in rng.sample(free, min(len(free), rng.choice((1, 2)))):
            drawn = _draw(rng, near[name] if kind == "around" else [], listed_sizes(case, name))
            sizes[name] = sizes[name] if drawn is None else drawn
        return sizes

    for kind, wanted in (("beside", BESIDE), ("wrapped", WRAPPED), ("around", AROUND), ("random", RANDOM)):
        before = len(found)
        for turn in range(TRIES):
            if len(found) >= before + wanted:
                break
            sizes = moved(kind, len(found) - before if turn < TRIES // 2 else 1)
            if sizes is None or all(v in listed_sizes(case, n) for n, v in sizes.items()):
                continue
            point = _point(case, instance, values, sizes, rng)
            if point is not None and written(case, point) > 0 and point.elements < LARGE:
                found.setdefault(str(point), point)
    names = scenarios(case, values)
    made = []
    for point in found.values():
        shown = [n for n in names if n == "normal" or affected(case, values, point, n) >= FEW]
        made.append(Trial(point, rng.choice(shown), rng.randrange(1 << 31), derived=True))
    return sorted(made, key=lambda t: t.point.elements)


def _point(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], sizes: Mapping[str, int], rng: random.Random
) -> Point | None:
    """A point with scalar variants and null pointers drawn."""
    optional = frozenset(b.name for b in case.buffers if b.optional)
    scalars = {n: rng.choice(v) for n, v in case.scalars}
    return point_of(case, instance, values, sizes, scalars, optional if rng.random() < 0.5 else frozenset())


def _draw(rng: random.Random, near: Sequence[int], listed: frozenset[int]) -> int | None:
    """One of the candidates, the small ones as likely as the large; without candidates any legal number."""
    if near:
        return rng.choice(near[: rng.randrange(1, len(near) + 1)])
    low, high = min(listed), max(listed)
    for _ in range(TRIES):
        value = round(math.exp(rng.uniform(math.log(low + 1), math.log(high + 1)))) - 1
        value -= value % math.gcd(*listed)
        if value not in listed and is_legal(value, listed):
            return value
    return None


def point_of(
    case: Case,
    instance: CaseInstance | None,
    values: Mapping[str, Value],
    sizes: Mapping[str, int],
    scalars: Mapping[str, str],
    null: frozenset[str],
) -> Point | None:
    """The point of the case at these base sizes, with these of the scalars' expressions and null pointers.

    None where the instance's `when` does not hold (if there is one) or an expression does not evaluate.
    """
    try:
        point = case.point_with(sizes, scalars, values, null)
        if instance is not None and instance.when and not expressions.evaluate(instance.when, point.names(values)):
            return None
    except (PorterError, ExprError):
        return None
    return point


# ---------------------------------------------------------------- one more and one less than what vectors divide


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
            point = _beside_width(case, instance, values, points, name, width, step)
            if point is None or point.elements >= LARGE or not written(case, point):
                continue
            sizes = tuple(point.sizes[n] for n in case.base_sizes)
            if sizes not in known:
                known.add(sizes)
                found.append(Trial(point, "normal", rng.randrange(1 << 31), derived=True))
    return found


def _beside_width(
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
