"""What checks measured goes to JSON and comes back, whoever wrote it."""

from __future__ import annotations

import json
import math
from dataclasses import fields

import pytest

from porter.model import Status, Verdict, facts_of
from porter.model.facts import (
    OF_CHECK,
    EntryFacts,
    Facts,
    NumericsFacts,
    OutputErrors,
    PerformanceFacts,
    ResourcesFacts,
    SmallestLaunch,
    TimedPoint,
    TimingFacts,
    facts_from_json,
)
from porter.provenance.json import verdict_from_json, verdict_to_json
from tests.agents.recorded_verifier import FILE

RECORDED = [v for k in json.loads(FILE.read_text())["kernels"].values() for v in k["verdicts"]]


def test_recorded_verdicts_come_back_to_the_letter():
    """Keys in their order too: an unchanged record is written as it was."""
    for value in RECORDED:
        assert json.dumps(verdict_to_json(verdict_from_json(value))) == json.dumps(value)
    kinds = {type(verdict_from_json(v).facts) for v in RECORDED}
    assert {NumericsFacts, ResourcesFacts, PerformanceFacts} <= kinds
    assert not any(verdict_from_json(v).facts.rest for v in RECORDED)


@pytest.mark.parametrize("check", OF_CHECK)
def test_keys_of_another_release_are_kept(check: str):
    facts = facts_from_json(check, {"new_figure": [1, {"a": None}]})
    assert type(facts) is OF_CHECK[check] and facts.rest == {"new_figure": [1, {"a": None}]}
    assert facts.to_json().items() >= {"new_figure": [1, {"a": None}]}.items()


@pytest.mark.parametrize(
    ("check", "data"),
    [
        ("numerics", {"seed": "seven", "launches": 4}),
        ("numerics", {"seed": 7, "buffers": {"": {"out": {"elements": [1]}}}}),
        ("numerics", {"seed": True}),
        ("sanitizer", {"launches": 1, "checked": "shared-race"}),
        ("performance", {"rows": {"sizes": {}}}),
        ("performance", {"rows": [{"graph_cold": {"us": {"port": "fast"}}}]}),
        ("resources", {"<8>": {"port": {"registers": None}}}),
    ],
)
def test_data_that_do_not_fit_are_kept_and_read_by_nobody(check: str, data: dict[str, object]):
    facts = facts_from_json(check, data)
    assert type(facts) is Facts and facts.to_json() == data
    assert facts_of([Verdict(check, Status.PASS, facts=facts)], OF_CHECK[check]) is None


def test_seconds_are_of_the_verdict():
    verdict = Verdict("entry", Status.PASS, facts=EntryFacts(3), seconds=0.25)
    value = json.loads(json.dumps(verdict_to_json(verdict)))
    assert value["data"] == {"calls": 3, "seconds": 0.25} and verdict_from_json(value) == verdict
    value["data"]["seconds"] = "long"
    assert verdict_from_json(value).seconds is None and verdict_to_json(verdict_from_json(value)) == value


def test_a_check_that_was_not_run_has_no_data():
    assert verdict_to_json(Verdict("performance", Status.SKIP))["data"] == {} and not facts_from_json("numerics", {})


def test_what_is_not_finite_comes_back_as_a_number():
    row = TimedPoint("<8>", {"n": 4}, timings={"graph_cold": TimingFacts(us={"port": 1.0}, a_vs_a=math.inf)})
    verdict = Verdict("performance", Status.PASS, facts=PerformanceFacts("a GPU", (row,), math.nan))
    value = json.loads(json.dumps(verdict_to_json(verdict), allow_nan=False))
    assert value["data"]["rows"][0]["graph_cold"]["a_vs_a"] == "inf" and value["data"]["geomean"] == "nan"
    back = facts_of([verdict_from_json(value)], PerformanceFacts)
    assert back.rows == (row,) and math.isnan(back.geomean)


def test_the_histogram_has_every_element_once():
    counts, rest = OutputErrors(elements=100, different=30, ulps=(2, 20, 5)).histogram
    assert counts == [72, 20, 5] and rest == 3 and sum(counts) + rest == 100
    assert OutputErrors(elements=9).histogram == ([9], 0)


@pytest.mark.parametrize("kind", [*OF_CHECK.values(), OutputErrors, SmallestLaunch, TimedPoint, TimingFacts])
def test_every_field_has_a_default_since_older_records_lack_keys(kind: type[Facts]):
    assert kind().to_json().keys() <= {f.name for f in fields(kind)} and kind.from_json(kind().to_json()) == kind()
