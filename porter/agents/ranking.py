"""How good a candidate is, and what made it better. Only a strictly higher rank is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from porter.model import Status, Verdict

ORDER = ("honesty", "names", "holes", "compile", "numerics", "sanitizer", "determinism", "resources", "performance")
MARGIN = 0.02  # of a time: less is noise
COUNTS = ("instructions", "sectors", "bank_conflicts", "barriers")


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
    for v in verdicts:
        if v.check != "performance":
            continue
        if isinstance(v.data.get("geomean"), int | float) and v.data["geomean"] > 0:
            return 1.0 / float(v.data["geomean"])
        return _speed_of_counts(v.data)
    return 0.0


def _speed_of_counts(data: dict[str, Any]) -> float:
    rows = data.get("counts") or data.get("rows") or []
    for row in rows if isinstance(rows, list) else []:
        port, original = row.get("port"), row.get("original")
        if not isinstance(port, dict) or not isinstance(original, dict):
            continue
        ratios = [
            float(original[k]) / float(port[k])
            for k in COUNTS
            if isinstance(port.get(k), int | float)
            and isinstance(original.get(k), int | float)
            and port[k]
            and original[k]
        ]
        if ratios:
            product = 1.0
            for ratio in ratios:
                product *= ratio
            return product ** (1 / len(ratios))
    return 0.0
