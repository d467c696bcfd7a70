"""`porter port` of one kernel takes no more than three times what bench/results/latency.json says, cold and warm."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bench.latency import RESULTS, RMS_NORM, Run, measure

FACTOR = 3.0
QUIET = 1.5  # load average up to which wall times were measured on an idle machine


def idle_seconds(record: dict[str, float]) -> float:
    """The wall time of a record; that of one made on a busy machine is its CPU time, which an idle one stays below."""
    return record["wall"] if record["load"] <= QUIET else min(record["wall"], record["cpu"])


def check(run: Run, record: dict[str, float], what: str) -> None:
    assert run.cpu <= FACTOR * record["cpu"], f"{what}: {run.cpu} s of CPU time, the record is {record['cpu']}"
    if max(run.load, os.getloadavg()[0]) <= len(os.sched_getaffinity(0)):  # else wall time says nothing
        limit = FACTOR * idle_seconds(record)
        assert run.wall <= limit, f"{what}: {run.wall} s, the record is {idle_seconds(record)} (load {run.load})"
    assert {"parse", "plan", "emit", "original", "compile", "numerics", "determinism", "total"} <= set(run.stages)
    assert run.stages["total"] <= run.wall


def test_cold_and_warm(tmp_path: Path) -> None:
    record = json.loads(RESULTS.read_text())["rms_norm"]
    cold = measure(RMS_NORM, tmp_path / "cache")
    warm = measure(RMS_NORM, tmp_path / "cache")
    check(cold, record["cold"], "cold")
    check(warm, record["warm"], "warm")
    assert warm.stages["compile"] < cold.stages["compile"]


def test_the_record_meets_the_goals() -> None:
    """On two cores: 10 s cold and 4 s warm for one kernel, 3 minutes cold for all of them. Warm it was 3 s until the
    verifier tried the values of `launches/scalars`, `tails` and `far_rows` as well."""
    found = json.loads(RESULTS.read_text())
    assert idle_seconds(found["rms_norm"]["cold"]) <= 10
    assert idle_seconds(found["rms_norm"]["warm"]) <= 4
    assert idle_seconds(found["whole_set"]["cold"]) <= 180
    assert found["whole_set"]["cold"]["kernels"] >= found["whole_set"]["files"] >= 16
