"""The rules by which a run is worse than a baseline, and the baseline in `.port.json`: checked, and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from porter.model import Status, Verdict
from porter.model.facts import PerformanceFacts, ResourcesFacts, UsedResources, facts_from_json
from porter.provenance.baseline import (
    BaselineRun,
    baseline_run,
    check_baseline,
    compare,
    is_good,
    regression_verdict,
    run_of,
    with_run,
)
from porter.provenance.schema import DamagedRecord, check_record
from porter.verify.backends.gpu_timing import TimingAnswer
from porter.verify.backends.timing import Timing
from porter.verify.checks.performance import TimedRow

USED = {"registers": 40, "spills": 0, "local_bytes": 0, "shared_bytes": 1024, "barriers": 2}
USED |= {"loads": 4, "stores": 4, "loads_128": 4, "stores_128": 4}
OUT = {"verdict": "within-bound", "elements": 10_000, "different": 10, "max_ulp": 1, "excused": 0, "rms_port": 0.4}
WAS = BaselineRun(
    "emulator",
    "2026-01-02T03:04:05Z",
    "ab" * 32,
    seed=7,
    arches=("sm_90a",),
    checks={"compile": "PASS", "numerics": "PASS", "performance": "PASS"},
    errors={"<8>": {"out": OUT}},
    resources={"<8>": USED},
    counts={"original": {"instructions": 1000, "sectors": 64}, "port": {"instructions": 900, "sectors": 64}},
    times={"T=64 graph_cold": {"port_us": 10.0, "original_us": 10.0, "ratio": 1.0, "spread": 0.01}},
    device="NVIDIA H200",
)


def changed(part: str, **values: Any) -> BaselineRun:
    rows = {"errors": {"<8>": {"out": OUT | values}}, "resources": {"<8>": USED | values}}
    rows["times"] = {"T=64 graph_cold": WAS.times["T=64 graph_cold"] | values}  # type: ignore[dict-item]
    return replace(WAS, **{part: rows[part]})


def test_the_same_run_is_no_worse() -> None:
    assert compare(WAS, WAS) == []
    assert regression_verdict([], WAS.name, "p.py").status is Status.PASS


@pytest.mark.parametrize(
    ("part", "values", "what"),
    [
        ("resources", {"registers": 45}, "registers"),
        ("resources", {"spills": 8}, "spills"),
        ("resources", {"local_bytes": 24}, "local_bytes"),
        ("resources", {"shared_bytes": 2048}, "shared_bytes"),
        ("resources", {"barriers": 3}, "barriers"),
        ("resources", {"loads": 7, "loads_128": 3}, "global loads"),
        ("resources", {"stores": 16, "stores_128": 0}, "global stores"),
        ("errors", {"verdict": "worse"}, "agreement"),
        ("errors", {"max_ulp": 2}, "max_ulp"),
        ("errors", {"different": 20}, "not bit-equal"),
        ("errors", {"rms_port": 0.5}, "RMS"),
        ("times", {"ratio": 1.03}, "time"),
    ],
)
def test_what_is_worse_is_named(part: str, values: dict[str, Any], what: str) -> None:
    (worse,) = compare(WAS, changed(part, **values))
    assert worse.kind == part and what in worse.what
    verdict = regression_verdict([worse], WAS.name, "p.py")
    assert verdict.status is Status.FAIL
    assert what in verdict.detail and worse.was in verdict.detail and "baseline of 2026-01-02" in verdict.detail
    assert verdict.diagnostics[0].code in ("PRT882", "PRT883", "PRT884")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("resources", {"registers": 44}),  # within 1.10 times
        ("resources", {"local_bytes": 16}),
        ("resources", {"loads": 3, "loads_128": 3}),  # fewer, and none of them narrow
        ("errors", {"different": 11}),
        ("errors", {"verdict": "bit-equal", "rms_port": 0.9}),  # the original's errors
        ("times", {"ratio": 1.015}),  # within twice the spread
        ("times", {"port_us": 20.0, "original_us": 20.0, "ratio": 1.0}),  # the device is slower, the port is not
    ],
)
def test_what_is_within_the_rule_is_no_regression(part: str, values: dict[str, Any]) -> None:
    assert compare(WAS, changed(part, **values)) == []


def test_few_registers_never_matter() -> None:
    few = replace(WAS, resources={"<8>": USED | {"registers": 12}})
    assert compare(few, replace(WAS, resources={"<8>": USED | {"registers": 32}})) == []


def test_checks_that_do_not_pass_any_more() -> None:
    for now in ("FAIL", "ERROR", "SKIP"):
        (worse,) = compare(WAS, replace(WAS, checks=WAS.checks | {"numerics": now}))
        assert (worse.kind, worse.what, worse.was, worse.now) == ("check", "numerics", "PASS", now)
    missing = {k: v for k, v in WAS.checks.items() if k != "compile"}
    assert [w.now for w in compare(WAS, replace(WAS, checks=missing))] == ["not run"]
    assert compare(WAS, replace(WAS, checks=WAS.checks | {"performance": "SKIP"})) == []
    assert compare(WAS, replace(WAS, checks=WAS.checks | {"performance": "FAIL"})) != []


def test_counts_are_compared_as_multiples_of_the_original() -> None:
    def counted(instructions: int, original: int = 1000, conflicts: int = 0) -> BaselineRun:
        port = {"instructions": instructions, "sectors": 64, "bank_conflicts": conflicts}
        return replace(WAS, counts={"original": {"instructions": original, "sectors": 64}, "port": port})

    assert compare(WAS, counted(980)) == [] and compare(WAS, counted(1900, 2000)) == []
    (worse,) = compare(WAS, counted(1000))
    assert worse.kind == "counts" and worse.was == "0.90x the original's (900)" and "1.00x" in worse.now
    (worse,) = compare(WAS, counted(900, conflicts=7))
    assert "bank conflicts" in worse.what
    assert compare(WAS, replace(WAS, counts={})) == []


def test_times_of_another_device_are_not_compared() -> None:
    assert compare(WAS, replace(changed("times", ratio=9.0), device="NVIDIA B200")) == []


def verdicts() -> list[Verdict]:
    numerics = facts_from_json("numerics", {"seed": 11, "buffers": {"<8>": {"out": OUT}}})
    both = UsedResources(USED, USED | {"registers": 41})
    cold, warm = (Timing("original", {"original": [10.0] * n, "again": [10.0] * n, "port": [9.0] * n}) for n in (12, 1))
    row = TimedRow("<8>", {"T": 64}, (1,), 4096, TimingAnswer(timings={"graph_cold": cold, "graph_warm": warm}))
    return [
        Verdict("numerics", Status.PASS, facts=numerics, seconds=1.5),
        Verdict("resources", Status.PASS, facts=ResourcesFacts({"<8>": both}), seconds=0.1),
        Verdict("performance", Status.PASS, facts=PerformanceFacts("NVIDIA H200", (row.facts(),))),
    ]


def test_a_run_is_read_from_verdicts_and_comes_back_from_json() -> None:
    run = baseline_run(verdicts(), WAS)
    assert run.seed == 11 and run.resources["<8>"]["registers"] == 41 and run.device == "NVIDIA H200"
    (label, times), *none = run.times.items()
    assert label == "<8> T=64 graph_cold" and not none
    assert (times["port_us"], times["original_us"], times["ratio"]) == (9.0, 10.0, 0.9)
    kept = json.loads(json.dumps(with_run({}, run)))
    check_baseline(kept)
    assert run_of(kept, "emulator") == run and run_of(kept, "gpu") is None
    both = with_run(kept, replace(run, backend="gpu", seed=12))
    assert run_of(both, "emulator") == run and run_of(both, "gpu").seed == 12  # type: ignore[union-attr]


def test_only_good_answers_become_a_baseline() -> None:
    assert is_good(verdicts())
    assert not is_good([*verdicts(), Verdict("sanitizer", Status.FAIL)])
    assert not is_good(verdicts()[1:])  # nothing numeric was found out
    assert not is_good([])


@pytest.mark.parametrize(
    ("damage", "key"),
    [
        (lambda b: b["runs"]["emulator"]["resources"]["<8>"].update(registers=255), "baseline.sha256"),
        (lambda b: b["runs"]["emulator"].pop("checks"), "checks"),
        (lambda b: b["runs"]["emulator"].update(surprise=1), "surprise"),
        (lambda b: b.update(schema=9), "baseline.schema"),
        (lambda b: b.update(runs=[]), "baseline.runs"),
        (lambda b: b["runs"].update(gpu=3), "baseline.runs.gpu"),
    ],
)
def test_a_damaged_baseline_is_refused_by_its_key(damage: Any, key: str) -> None:
    kept = json.loads(json.dumps(with_run({}, WAS)))
    damage(kept)
    with pytest.raises(ValueError, match=key.replace(".", r"\.")):
        check_baseline(kept)


@pytest.mark.parametrize(
    ("damage", "key", "message"),
    [
        ({"kernel": 3}, "kernel", "`kernel` is 3, not a string"),
        ({"verdicts": [{"check": "compile", "status": "PAS"}]}, "verdicts[0].status", "is 'PAS', not one of PASS"),
        ({"source": {"path": 3}}, "source.path", "`source.path` is 3, not a string"),
        ({"line_map": {"rows": [[1, 2]]}}, "line_map.rows[0]", "`line_map.rows[0]` is [1, 2]"),
        ({"holes": [{"cuda": "", "reason": ""}]}, "holes[0].code", "`holes[0].code` is missing"),
        ({"versions": "`port`"}, "versions", "not an object"),
    ],
)
def test_a_damaged_record_is_refused_by_its_key(damage: dict[str, Any], key: str, message: str) -> None:
    good = {"kernel": "k", "verdicts": [{"check": "compile", "status": "PASS"}], "line_map": {"rows": [[1] * 7]}}
    check_record(good)
    with pytest.raises(DamagedRecord) as caught:
        check_record(good | damage)
    assert caught.value.key == key and message in str(caught.value)


def test_a_missing_key_of_a_record_is_named() -> None:
    with pytest.raises(DamagedRecord, match=r"^`kernel` is missing$"):
        check_record({})
