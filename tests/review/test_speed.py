"""Files of 2,000 lines scroll without lag: milliseconds a key (bench/review_keys.py, results in bench/results/)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("textual")

from bench.review_keys import LINES, OUTPUT, in_process, in_terminal, large_port, summary
from porter.review.port.reviewed_port import load

BOUND = 50.0  # ms a key
WHOLE = {"tab", "n"}  # scroll nothing, but draw the whole screen anew (`n` where it comes from the CUDA)


def test_a_key_takes_less_than_fifty_milliseconds_of_the_processor(tmp_path: Path):
    """The median of each key in a large terminal; CPU time, so that what else runs here does not count."""
    port = large_port(tmp_path)
    loaded = load(port)
    assert len(loaded.port_lines) == len(loaded.cuda_lines) == LINES and not loaded.faults
    times = summary(asyncio.run(in_process(port, (120, 40), 1)))
    assert {"down", "up", "pagedown", "pageup", "home", "end", "n", "tab"} == set(times)
    slow = {key: t for key, t in times.items() if t["median"] >= BOUND}
    assert not slow, times


@pytest.mark.slow
def test_a_key_that_scrolls_is_drawn_within_fifty_milliseconds(tmp_path: Path):
    """From the key to the last byte on a real terminal, in the median. Wants a machine that does nothing else, or
    priority over it (`chrt -f 10`)."""
    times = summary(in_terminal(large_port(tmp_path), (120, 40), 4))
    slow = {key: t for key, t in times.items() if t["median"] >= BOUND and key not in WHOLE}
    assert not slow, times


def test_the_result_on_record_keeps_the_bound():
    result = json.loads(OUTPUT.read_text(encoding="utf-8"))
    assert result["lines"] == LINES and {tuple(row["size"]) for row in result["rows"]} == {(120, 40), (80, 24)}
    assert all(t["p95"] < BOUND for row in result["rows"] for t in row["cpu_ms"].values())
    drawn = [(key, t["median"]) for row in result["rows"] for key, t in row["wall_ms"].items()]
    assert all(t < (BOUND if key not in WHOLE else 1.2 * BOUND) for key, t in drawn)
