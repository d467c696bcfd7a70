"""Timing several implementations against each other: turns taken round by round, medians, and how far to trust them.

Pure arithmetic and control: what is replayed is a function that returns microseconds. The GPU child and bench/ use it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from porter.model.facts import TimingFacts

ROUNDS, MOST_ROUNDS = 11, 41
SPREAD = 0.01  # rounds go on until the baseline differs from itself by at most this
AGAIN = "again"  # the baseline a second time in every round
COLD_SETS = 400  # sets of buffers, at most; the sweep before a replay covers what they leave of the cache
CALLS = 40  # in a graph, at least
LONG_ENOUGH = 400.0  # microseconds of a replay: events resolve half a microsecond
MEMORY_SHARE = 0.5  # of the free memory that sets of buffers may take

_MEDIAN_ERROR = (
    1.2533 / 1.349
)  # standard error of a median of n normal values: 1.2533 sigma / sqrt(n), sigma = IQR/1.349

Replay = Callable[[], float]


@dataclass
class Timing:
    """Microseconds a call of each side, one value a round; the baseline's second turn is under AGAIN."""

    baseline: str
    times: dict[str, list[float]] = field(default_factory=dict)
    wanted: float = SPREAD

    @property
    def rounds(self) -> int:
        return len(self.times[self.baseline])

    def median(self, side: str) -> float:
        return statistics.median(self.times[side])

    def ratio(self, side: str, to: str = "") -> float:
        """The median over rounds of side / baseline: what slows both in a round cancels."""
        return statistics.median(_ratios(self.times[side], self.times[to or self.baseline]))

    @property
    def spread(self) -> float:
        """How far the baseline is from itself: the distance of its median A-versus-A ratio from 1, or that ratio's
        standard error where it is larger, so that luck does not look like precision."""
        own = _ratios(self.times[AGAIN], self.times[self.baseline])
        return max(abs(statistics.median(own) - 1.0), _standard_error(own))

    @property
    def settled(self) -> bool:
        return self.spread <= self.wanted

    def counts(self, side: str, to: str = "") -> bool:
        """Is the side's difference from the baseline outside twice the spread?"""
        return abs(self.ratio(side, to) - 1.0) > 2.0 * self.spread

    def facts(self) -> TimingFacts:
        """Medians, ratios to the baseline, spread, rounds."""
        sides = [s for s in self.times if s not in (self.baseline, AGAIN)]
        return TimingFacts(
            us={s: round(self.median(s), 3) for s in self.times},
            ratio={s: round(self.ratio(s), 4) for s in sides},
            counts={s: self.counts(s) for s in sides},
            a_vs_a=round(self.spread, 4),
            rounds=self.rounds,
            settled=self.settled,
        )

    def data(self) -> dict[str, Any]:
        """The facts for JSON."""
        return self.facts().to_json()


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [a / b if b > 0 else math.inf for a, b in zip(ours, theirs, strict=True)]


def _standard_error(values: Sequence[float]) -> float:
    """Of the median, from the quartiles: single slow rounds do not count."""
    if len(values) < 4:
        return math.inf
    low, _, high = statistics.quantiles(values, n=4)
    return _MEDIAN_ERROR * (high - low) / math.sqrt(len(values))


def interleave(
    replays: Mapping[str, Replay],
    baseline: str,
    rounds: int = ROUNDS,
    most: int = MOST_ROUNDS,
    spread: float = SPREAD,
    seconds: float = math.inf,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Each side once a round, the baseline twice, in an order that turns round by round.

    At least `rounds` rounds, then until the spread is at most `spread`, `most` rounds are done or `seconds` are over
    (then `settled` is False). The first `warm_up` replays of each side are thrown away.
    """
    start = clock()
    sides = {**replays, AGAIN: replays[baseline]}
    timing = Timing(baseline, {name: [] for name in sides}, spread)
    for replay in replays.values():
        for _ in range(warm_up):
            replay()
    order = list(sides)
    for n in range(most):
        if n >= rounds and (timing.settled or clock() - start > seconds):
            break
        turned = order[n % len(order) :] + order[: n % len(order)]
        for name in turned if n % 2 == 0 else turned[::-1]:
            timing.times[name].append(sides[name]())
    return timing


def geomean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


@dataclass(frozen=True)
class Rotation:
    """How many sets of buffers a graph goes through, and how many calls it holds (a multiple of `sets`)."""

    sets: int
    calls: int


def cold_rotation(set_bytes: int, l2: int, free: int, calls: int = CALLS, once: bool = False) -> Rotation:
    """Sets of `held` bytes each that make twice the L2 cache, within the free memory.

    `once`: a set serves one call a replay (kernels that use their counters up): as many sets as calls.
    """
    set_bytes = max(set_bytes, 1)
    room = max(2, int(free * MEMORY_SHARE) // set_bytes)
    sets = max(2, min(COLD_SETS, math.ceil(2 * l2 / set_bytes)))
    if once:
        sets = min(max(sets, calls), room)
        return Rotation(sets, sets)
    sets = min(sets, room)
    return Rotation(sets, sets * math.ceil(calls / sets))


def warm_calls(us: float, calls: int = CALLS) -> int:
    """Calls that make a replay long enough to be timed well, from the microseconds that one takes."""
    return max(calls, min(10 * calls, math.ceil(LONG_ENOUGH / max(us, 0.1))))
