"""What was timed on a GPU, in words; and the floor, a copy of as many bytes, at which nothing is left to gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from porter.model import Verdict

CLOSE = 1.02  # times the copy's time: less is noise


def at_floor(verdicts: Sequence[Verdict]) -> str:
    """What was measured, when every point that was timed (cold L2) is as fast as the copy of its bytes; else "".

    Counts of the emulator are no times: they never say that a floor is reached.
    """
    data = next((v.data for v in verdicts if v.check == "performance"), {})
    ratios = [copy_ratio(row) for row in data.get("rows") or []]
    if not ratios or any(r is None or r > CLOSE for r in ratios):
        return ""
    worst = max(r for r in ratios if r is not None)
    device = f" on {data['device']}" if data.get("device") else ""
    return f"{worst:.3f} times the time of a copy of the same bytes, at most, over {len(ratios)} points{device}"


def times_of(data: Mapping[str, Any]) -> list[str]:
    """A line for each point of a performance verdict: microseconds of original, port and copy, cold and warm."""
    return [_times(row) for row in data.get("rows") or []]


def _times(row: Mapping[str, Any]) -> str:
    at = " ".join([*([str(row["instance"])] if row.get("instance") else []), *_named(row.get("sizes") or {})])
    cold, warm = ((row.get(kind) or {}).get("us") or {} for kind in ("graph_cold", "graph_warm"))
    if not cold.get("port"):
        return f"{at}: not timed: {row.get('error') or 'no reason is known'}"
    parts = [f"{name} {cold[name]:.3f}" for name in ("original", "port", "copy") if cold.get(name)]
    spread = (row.get("graph_cold") or {}).get("a_vs_a")
    if spread is not None:
        parts.append(f"noise {100 * float(spread):.1f} %")
    if row.get("bytes"):
        parts.append(f"{row['bytes']} bytes, {row['bytes'] / float(cold['port']) / 1e6:.3f} TB/s")
    if warm.get("port"):
        parts.append("warm " + ", ".join(f"{n} {warm[n]:.3f}" for n in ("original", "port", "empty") if warm.get(n)))
    return f"{at}: {'; '.join(parts)}"


def _named(sizes: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in sizes.items()]


def copy_ratio(row: Mapping[str, Any]) -> float | None:
    """The port's time over the copy's at one point; None when one of them was not timed."""
    times = (row.get("graph_cold") or {}).get("us") or {}
    return float(times["port"]) / float(times["copy"]) if times.get("port") and times.get("copy") else None
