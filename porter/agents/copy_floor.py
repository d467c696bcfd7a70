"""What was timed on a GPU, in words; and the floor, a copy of as many bytes, at which nothing is left to gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from porter.model import Verdict, facts_of
from porter.model.facts import PerformanceFacts, TimedPoint, TimingFacts
from porter.wording import plural

CLOSE = 1.02  # times the copy's time: less is noise


def at_copy_floor(verdicts: Sequence[Verdict]) -> str:
    """What was measured, when every point that was timed (cold L2) is as fast as the copy of its bytes; else "".

    Counts of the emulator are no times: they never say that a floor is reached.
    """
    facts = facts_of(verdicts, PerformanceFacts) or PerformanceFacts()
    ratios = [copy_ratio(row) for row in facts.rows or ()]
    if not ratios or any(r is None or r > CLOSE for r in ratios):
        return ""
    worst = max(r for r in ratios if r is not None)
    device = f" on {facts.device}" if facts.device else ""
    points = plural(len(ratios), "point")
    return f"{worst:.3f} times the time of a copy of the same bytes, at most, over {points}{device}"


def times_of(facts: PerformanceFacts) -> list[str]:
    """A line for each point of a performance verdict: microseconds of original, port and copy, cold and warm."""
    return [_times(row) for row in facts.rows or ()]


def _times(row: TimedPoint) -> str:
    at = " ".join([*([row.instance] if row.instance else []), *_named(row.sizes)])
    cold, warm = _us(row, "graph_cold"), _us(row, "graph_warm")
    if not cold.get("port"):
        return f"{at}: not timed: {row.error or 'no reason is known'}"
    parts = [f"{name} {cold[name]:.3f}" for name in ("original", "port", "copy") if cold.get(name)]
    spread = row.timings["graph_cold"].a_vs_a
    if spread is not None:
        parts.append(f"noise {100 * spread:.1f} %")
    if row.bytes:
        parts.append(f"{row.bytes} bytes, {row.bytes / cold['port'] / 1e6:.3f} TB/s")
    if warm.get("port"):
        parts.append("warm " + ", ".join(f"{n} {warm[n]:.3f}" for n in ("original", "port", "empty") if warm.get(n)))
    return f"{at}: {'; '.join(parts)}"


def _us(row: TimedPoint, kind: str) -> Mapping[str, float]:
    return row.timings.get(kind, TimingFacts()).us


def _named(sizes: Mapping[str, int]) -> list[str]:
    return [f"{name}={value}" for name, value in sizes.items()]


def copy_ratio(row: TimedPoint) -> float | None:
    """The port's time over the copy's at one point; None when one of them was not timed."""
    times = _us(row, "graph_cold")
    return times["port"] / times["copy"] if times.get("port") and times.get("copy") else None
