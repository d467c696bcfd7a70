"""Seeded inputs: no traceback, no crash, no internal error, nothing above 20 s of CPU, nothing left behind."""

from __future__ import annotations

import json

import pytest

from tests.robust.campaign import RESULTS, campaign

IN_CI = 25
WHOLE = 2000


def test_some_seeds() -> None:
    assert campaign(100_000, IN_CI)["faults"] == {}


@pytest.mark.slow
def test_all_seeds() -> None:
    assert campaign(0, WHOLE)["faults"] == {}


@pytest.mark.skipif(not RESULTS.is_file(), reason="no campaign is recorded")
def test_the_recorded_campaign_found_nothing() -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert found["count"] > IN_CI and found["faults"] == {}
    assert max(found["most_cpu_seconds"].values()) < 20
