"""How good a candidate is, and what made it better. Only a strictly higher rank is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from porter.model import Status, Verdict, facts_of
from porter.model.facts import PerformanceFacts

ORDER = (
    "honesty", "names", "holes", "compile", "numerics", "sanitizer", "determinism", "entry", "resources", "performance",
)  # fmt: skip
MARGIN = 0.02  # of a time: less is noise
# What counts weigh where nothing can be timed, in warp instructions: rough, so that no count can be traded for many.
WEIGHTS = {"instructions": 1 / 32, "sectors": 4.0, "bank_conflicts": 1.0, "barriers": 16.0}


@dataclass(frozen=True)
class Rank:
    """Steps reached, in ORDER, each compared only when those before are equal. `speed`: higher is faster, 0 unknown."""

    steps: tuple[int, ...]
    speed: float = 0.0

    def above(self, other: Rank) -> bool:
        if self.steps != other.steps:
            return self.steps > other.steps
        return self.speed > 0 and other.speed > 0 and self.speed > other.speed * (1 + MARGIN)


def rank(verdicts: Sequence[Verdict], open_holes: int) -> Rank:
    """The rank of a port with these verdicts. A check that an earlier failure kept from being run failed."""
    by_check = {v.check: v for v in verdicts}
    steps = []
    for check in ORDER:
        if check == "holes":
            steps.append(-open_holes)
        else:
            steps.append(_step(by_check.get(check), by_check))
    return Rank(tuple(steps), speed_of(verdicts))


def _step(verdict: Verdict | None, by_check: dict[str, Verdict]) -> int:
    if verdict is None:
        return 0
    if verdict.status is Status.SKIP:
        numerics = by_check.get("numerics")
        return int(numerics is not None and numerics.status is Status.PASS)
    return int(verdict.status is Status.PASS)


def all_good(verdicts: Sequence[Verdict], open_holes: int) -> bool:
    """Verified: numerics was run and passed, nothing failed, nothing is open."""
    good = all(v.status in (Status.PASS, Status.SKIP) for v in verdicts)
    return good and not open_holes and any(v.check == "numerics" and v.status is Status.PASS for v in verdicts)


def what_improved(old: Rank, new: Rank) -> str:
    """The check that the new one passes, or passes further, and the old one did not."""
    for check, before, after in zip(ORDER, old.steps, new.steps, strict=True):
        if after > before:
            return check
    return "performance"


def speed_of(verdicts: Sequence[Verdict]) -> float:
    """How fast the port is against its original: measured times on a GPU, else the fewest instructions and sectors.

    0 when nothing was measured or counted.
    """
    facts = facts_of(verdicts, PerformanceFacts)
    if facts is None:
        return 0.0
    return 1.0 / facts.geomean if facts.geomean is not None and facts.geomean > 0 else _speed_of_counts(facts)


def _speed_of_counts(facts: PerformanceFacts) -> float:
    """The original's counted cost over the port's. A ranking of candidates, and no time."""
    sides = [(r.original, r.port) for r in facts.counts or () if r.original is not None and r.port is not None]
    original, port = (sum(_cost(side[n]) for side in sides) for n in (0, 1))
    return original / port if original and port else 0.0


def _cost(counts: Mapping[str, int]) -> float:
    return sum(weight * float(counts.get(name, 0)) for name, weight in WEIGHTS.items())
