"""Which launches a run verifies: points of the case paired with scenarios of inputs; each of both at least once."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, CaseInstance, Point, span_of
from porter.cxx.types import scalar_name
from porter.model import KernelInfo
from porter.verify.launches.inputs import SCENARIOS, dist_of, scenarios

LAUNCHES = 12  # an instance, when not thorough: enough for each scenario and each size once
LARGE = 60_000  # elements of a point from which one launch with ordinary inputs must do
SMALL = 64  # written elements below which a point shows little of a distribution
FEW = 7  # elements of an input below which a scenario hardly shows
EMPTY_LAUNCHES = 2  # points at which nothing is to be written
FAR_STRIDE = (1 << 30) + 4096  # elements: the third row starts past 2^31
FAR_ROWS = 7
MOST_FAR = 1 << 36  # elements of address space
PLANTED = ("nonfinite", "nan_rows", "neg_inf", "bad_ids", "equal", "ties", "rows")
THOROUGH_LAUNCHES = 2_000


@dataclass(frozen=True)
class Trial:
    """One launch: a point, a scenario of inputs, a seed; buffers in `misaligned` start one element late."""

    point: Point
    scenario: str
    seed: int
    misaligned: frozenset[str] = frozenset()
    far: bool = False  # element offsets pass 2^31
    window: bool = False  # of so many rows only the first and the last have contents, and only edge blocks run
    derived: bool = False  # at sizes that the case does not list: what the original refuses there is not judged

    def __str__(self) -> str:
        shift = f" misaligned {','.join(sorted(self.misaligned))}" if self.misaligned else ""
        return f"{self.point} {self.scenario} seed {self.seed}{shift}"


def choose_trials(
    case: Case,
    instance: CaseInstance,
    values: Mapping[str, Value],
    seed: int,
    launches: int = LAUNCHES,
    thorough: bool = False,
) -> list[Trial]:
    """The launches of one instance, cheapest first. Empty when its `when` holds at no point.

    Not thorough: each scenario once on a point large enough to show it, each size value once. Thorough: every scenario
    at every point (at most THOROUGH_LAUNCHES, sampled by the seed).
    """
    rng = random.Random(f"{seed} {instance.args}")
    names = scenarios(case, values)
    shift = may_misalign(case, instance, values)
    points = case.instance_points(instance, values)
    pairs: list[tuple[Point, str]] = []
    if thorough:
        pairs = [(p, s) for p in points for s in names]
        if len(pairs) > THOROUGH_LAUNCHES:
            pairs = rng.sample(pairs, THOROUGH_LAUNCHES)
    elif points:
        pairs = _pairs(case, values, points, names, launches, rng)
    trials = []
    for n, (point, scenario) in enumerate(sorted(pairs, key=lambda p: p[0].elements)):
        misaligned = shift if shift and n % 3 == 2 else frozenset()
        trials.append(Trial(point, scenario, rng.randrange(1 << 31), misaligned))
    return trials


def _pairs(
    case: Case, values: Mapping[str, Value], points: list[Point], names: list[str], launches: int, rng: random.Random
) -> list[tuple[Point, str]]:
    shown = {id(p): written(case, p) for p in points}
    empty = [p for p in points if shown[id(p)] == 0]
    chosen = case.choose([p for p in points if shown[id(p)]], launches, rng.randrange(1 << 31))
    pairs = [(p, "normal") for p in rng.sample(empty, min(EMPTY_LAUNCHES, len(empty)))]
    # The smallest and the largest points show the kernel's edges; ordinary inputs show those best. What plants single
    # values goes to the points with the most rows, where other rows stay clean.
    useful = [p for p in chosen if shown[id(p)] >= SMALL and p.elements < LARGE]
    pairs += [(p, "normal") for p in chosen if not any(p is u for u in useful)]
    useful.sort(key=lambda p: -_rows(case, p))
    rest = [n for n in names if n != "normal"]
    rng.shuffle(rest)
    rest.sort(key=lambda n: (n not in PLANTED, n != "steps"))  # these need rows
    if not useful:
        useful = sorted(chosen, key=lambda p: -p.elements)[:3] or points[-1:]
        pairs = [(p, s) for p, s in pairs if not any(p is u for u in useful)]
    free: list[Point] = []
    for name in rest:
        free = free or list(useful)
        # the first point of the most rows at which some input shows the scenario; an empty input shows nothing
        point = next((p for p in free if affected(case, values, p, name) >= FEW), None)
        point = point or max(useful, key=lambda p: affected(case, values, p, name))
        free = [p for p in free if p is not point]
        pairs.append((point, name))
    given = {id(p) for p, _ in pairs}
    pairs += [(p, "normal") for p in useful if id(p) not in given]
    if all(s != "normal" or not shown[id(p)] for p, s in pairs):
        pairs.append((useful[0], "normal"))
    return pairs


def _rows(case: Case, point: Point) -> int:
    """Rows of the output with the most of them."""
    return max(math.prod(point.shapes[b.name][:-1]) for b in case.buffers if b.is_compared)


def affected(case: Case, values: Mapping[str, Value], point: Point, scenario: str) -> int:
    """Elements of the inputs that a scenario changes at a point, of the input with the most."""
    sizes = [
        math.prod(point.shapes[b.name])
        for b in case.buffers
        if b.is_read and b.name not in point.null and scenario in SCENARIOS.get(dist_of(b, b.dtype_at(values)), ())
    ]
    return max(sizes, default=0)


def written(case: Case, point: Point) -> int:
    """Elements that the kernel has to write at a point."""
    return sum(math.prod(point.shapes[b.name]) for b in case.buffers if b.is_compared)


def may_misalign(case: Case, instance: CaseInstance, values: Mapping[str, Value]) -> frozenset[str]:
    """Buffers that an instance must accept one element off: where the case states alignment, those it does not ask for.

    A case that never says aligned() says nothing about alignment; then nothing is misaligned.
    """
    if not any(i.when and expressions.uses_aligned(i.when) for i in case.instances):
        return frozenset()
    named = {
        b.name for b in case.buffers if any(b.name in expressions.names_in(i.when) for i in case.instances if i.when)
    }
    return frozenset(b for b in named if not _asks_alignment(instance, b))


def _asks_alignment(instance: CaseInstance, buffer: str) -> bool:
    if not instance.when:
        return False
    try:
        return expressions.uses_aligned(instance.when) and buffer in expressions.names_in(instance.when)
    except ExprError:
        return True


def far_trial(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], info: KernelInfo, seed: int
) -> Trial | None:
    """A launch with more than 2^31 elements from the first row to the last, where a 64-bit parameter sets the stride.

    The memory between the rows is never committed. None when no parameter does, or `when` does not allow it.
    """
    wide = {p.name for p in info.params if scalar_name(p.type) in ("i64", "u64")}
    strided = [b for b in case.buffers if b.strides and b.strides[0] in wide]
    if not strided:
        return None
    points = [p for p in case.instance_points(instance, values) if all(p.shapes[b.name][0] >= 3 for b in strided)]
    points = [p for p in points if 0 < written(case, p) < LARGE]
    if not points:
        return None
    # several rows of output: an index that is drawn for each of them must name a row beyond 2^31 in one
    point = min(points, key=lambda p: (-min(_rows(case, p), FAR_ROWS), p.elements))
    for name in dict.fromkeys(b.strides[0] for b in strided if b.strides):
        point = case.with_scalar(point, name, FAR_STRIDE, values)
    if max(span_of(point.shapes[b.name], point.strides[b.name]) for b in strided) >= MOST_FAR:
        return None
    try:
        if instance.when and not expressions.evaluate(instance.when, point.names(values)):
            return None
    except ExprError:
        return None
    return Trial(point, "normal", random.Random(f"far {seed}").randrange(1 << 31), far=True)
