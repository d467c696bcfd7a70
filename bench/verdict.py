"""The verdict of one row of bench.corpus_vs_peers: met by one of three rules, or missed, and by how much. No torch."""

from __future__ import annotations

from typing import Any

from porter.verify.backends.timing import AGAIN, Timing

OURS, EMPTY = "porter", "empty"
PEER, FLOOR, NOTHING = 0.97, 1.02, 1.10


def judge(timing: Timing, floor_us: float) -> dict[str, Any]:
    """Which rule the row meets: "peer", "floor", "empty"; "" and by how much it misses each where it meets none.

    peer: at most 0.97 of the best peer's time, and further from it than twice the spread. floor: at most 1.02 of the
    time that the bytes take at copy speed. empty: at most 1.10 of an empty kernel in the same grid.
    """
    if OURS not in timing.times:
        return {"met": False, "rule": "", "text": "porter has no such kernel here"}
    ours = timing.median(OURS)
    peers = [s for s in timing.times if s not in (OURS, EMPTY, AGAIN)]
    found: dict[str, Any] = {"floor_ratio": round(ours / floor_us, 4) if floor_us else None}
    rules: dict[str, tuple[float, bool]] = {}
    if peers:
        best = min(peers, key=timing.median)
        ratio = timing.ratio(OURS, best)
        found |= {"best": best, "ratio": round(ratio, 4)}
        rules["peer"] = (ratio / PEER, ratio <= PEER and abs(ratio - 1.0) > 2.0 * timing.spread)
    if floor_us:
        rules["floor"] = (ours / floor_us / FLOOR, ours <= FLOOR * floor_us)
    if EMPTY in timing.times:
        ratio = timing.ratio(OURS, EMPTY)
        found["empty_ratio"] = round(ratio, 4)
        rules["empty"] = (ratio / NOTHING, ratio <= NOTHING)
    rule = next((name for name, (_, met) in rules.items() if met), "")
    missed = {name: round(by, 3) for name, (by, _) in rules.items()}
    if rule:
        text = f"met: {rule}"
        if "ratio" in found:
            text += f" ({found['ratio']:.2f}x {found['best']})"
    else:
        near = min(missed.items(), key=lambda m: m[1], default=("", 1.0))
        text = f"MISS by {100 * (near[1] - 1):.1f} % ({near[0]})"
        if "ratio" in found:
            text += f", {found['ratio']:.2f}x {found['best']}"
    return {"met": bool(rule), "rule": rule, "text": text, "missed_by": {} if rule else missed, **found}
