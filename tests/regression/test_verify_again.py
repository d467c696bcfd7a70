"""`porter verify` as a regression tool: baselines compared, kept and updated; revisions; limits; damaged records."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from porter.config import PortConfig
from porter.model import KernelReport, Severity, Status, Verdict
from porter.model.facts import NumericsFacts, OutputErrors
from porter.provenance.baseline import run_of, with_run
from porter.provenance.record import record_path
from porter.provenance.store import read_record, update_record
from porter.regression.all_ports import required, verify_ports
from porter.regression.one_port import verify_file
from porter.regression.settings import Settings

from .conftest import edit


def baseline(port: Path) -> dict[str, Any]:
    record = read_record(port)
    assert record is not None
    return record.baseline


def regression(kernel: KernelReport) -> Verdict:
    return next(v for v in kernel.verdicts if v.check == "regression")


def verify(port: Path, seed: int | None = None, **settings: Any) -> KernelReport:
    return verify_file(port, PortConfig(arch=("sm_90a",), seed=seed), Settings(**settings))


def test_porting_records_the_first_baseline_and_verify_keeps_the_file_as_it_is(ports: Path) -> None:
    port = ports / "first.py"
    run = run_of(baseline(port), "emulator")
    assert run is not None and run.seed == 7 and run.checks["numerics"] == "PASS"
    assert run.errors[""]["out"]["verdict"] == "bit-equal" and run.resources[""]["registers"] > 0
    before = record_path(port).read_bytes()
    found = regression(verify(port, seed=8))
    assert found.status is Status.PASS and "seed 7" in found.detail
    assert record_path(port).read_bytes() == before  # nothing new: nothing for version control


def test_a_worse_port_is_a_regression_and_does_not_become_the_baseline(ports: Path) -> None:
    port = ports / "first.py"
    before = baseline(port)
    edit(port, "* factor", "* factor * 1.0000001")
    kernel = verify(port)
    found = regression(kernel)
    assert not kernel.ok and found.status is Status.FAIL
    assert "numerics: FAIL, was PASS" in found.detail and "baseline of" in found.detail
    assert {"PRT881", "PRT882"} <= {d.code for d in found.diagnostics}
    assert baseline(port) == before
    record = read_record(port)
    assert record is not None and any(v.status is Status.FAIL for v in record.verdicts)  # the answer is kept
    tried = verify(port, update=True)
    assert "PRT876" in {d.code for d in tried.diagnostics} and baseline(port) == before


def test_resources_beyond_the_rule_are_a_regression_until_updated(ports: Path) -> None:
    port = ports / "first.py"
    run = run_of(baseline(port), "emulator")
    assert run is not None
    leaner = {"": run.resources[""] | {"loads": 1, "loads_128": 1, "barriers": -1}}
    update_record(port, lambda r: _with_resources(r, leaner))
    found = regression(verify(port))
    assert found.status is Status.FAIL
    assert {w.what for w in found.facts.worse} == {"barriers", "global loads of 128 bits or more"}
    assert {d.code for d in found.diagnostics} == {"PRT883"}
    assert regression(verify(port, update=True)).status is Status.SKIP
    assert run_of(baseline(port), "emulator").resources == run.resources  # type: ignore[union-attr]
    assert regression(verify(port)).status is Status.PASS


def _with_resources(record: Any, resources: dict[str, dict[str, int]]) -> Any:
    from dataclasses import replace

    run = run_of(record.baseline, "emulator")
    assert run is not None
    return replace(record, baseline=with_run(record.baseline, replace(run, resources=resources)))


def test_errors_that_other_inputs_explain_are_a_note(ports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier's figures are replaced here: what counts is which seed they are compared at."""
    from porter.regression import one_port

    port = ports / "first.py"
    figures = {7: 0, 8: 5}
    asked: list[int | None] = []
    made_by = "this porter"

    def answers(port: Any, config: PortConfig, run: Any) -> tuple[Verdict, ...]:
        asked.append(config.seed)
        ulp = figures[config.seed or 0]
        row = OutputErrors("within-bound", elements=9, different=3, max_ulp=ulp, rms_port=0.1)
        seed, inputs = config.seed or 0, f"{made_by} {config.seed}"
        facts = NumericsFacts(seed, buffers={"": {"out": row}}, inputs=inputs, backend="emulator")
        return (Verdict("numerics", Status.PASS, facts=facts),)

    monkeypatch.setattr(one_port, "answers", answers)
    verify(port, seed=7, update=True)
    kernel = verify(port, seed=8)
    found = regression(kernel)
    assert asked == [7, 8, 7] and found.status is Status.PASS
    assert [d.code for d in found.diagnostics] == ["PRT882"] and "seed 8 shows more" in found.diagnostics[0].message
    figures[7] = 4  # now the port itself is worse
    found = regression(verify(port, seed=8))
    assert found.status is Status.FAIL and "max_ulp: 4, was 0" in found.detail
    made_by = "another porter"
    found = regression(verify(port, seed=8))
    assert found.status is Status.PASS and found.diagnostics[0].severity is Severity.WARNING
    assert "porter now generates other inputs" in found.diagnostics[0].message


def test_against_original_compares_nothing_and_against_recorded_needs_a_baseline(ports: Path) -> None:
    from dataclasses import replace

    port = ports / "first.py"
    assert not any(v.check == "regression" for v in verify(port, against="original").verdicts)
    update_record(port, lambda r: replace(r, baseline={}))
    missing = verify(port, against="recorded", record=False)
    assert regression(missing).status is Status.ERROR and regression(missing).diagnostics[0].code == "PRT876"
    assert baseline(port) == {}
    assert regression(verify(port)).status is Status.SKIP
    assert run_of(baseline(port), "emulator") is not None  # plain verify records the first one


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_against_a_revision(ports: Path) -> None:
    git(ports.parent, "init", "-q")
    git(ports.parent, "add", ".")
    git(ports.parent, "commit", "-qm", "ports")
    port = ports / "first.py"
    same = regression(verify(port, against="HEAD"))
    assert same.status is Status.PASS and "the same text" in same.detail
    port.write_text(port.read_text() + "\n# a remark\n")
    assert regression(verify(port, against="HEAD")).status is Status.PASS
    edit(port, "* factor", "* factor * 1.0000001")
    found = regression(verify(port, against="HEAD"))
    assert found.status is Status.FAIL
    assert {"PRT881", "PRT879"} <= {d.code for d in found.diagnostics} and "HEAD" in found.detail
    assert "PRT877" in {d.code for d in verify(port, against="no-such-branch").diagnostics}
    new = ports / "new.py"
    new.write_text((ports / "second.py").read_text())
    record_path(new).write_text(record_path(ports / "second.py").read_text())
    assert regression(verify(new, against="HEAD")).status is Status.SKIP


def test_a_required_check_that_is_skipped_fails(porter, ports: Path) -> None:
    done = porter("verify", "out", "--require", "performance")
    assert done.returncode == 1 and done.stderr.count("PRT875") == 2 and "needs a GPU" in done.stdout
    assert porter("verify", "out/first.py", "--require", "numerics,regression").returncode == 0
    assert porter("verify", "out", "--require", "nonsense").returncode == 2
    kernel = verify(ports / "first.py")
    assert not required(kernel, ("unheard-of",)).ok and required(kernel, ("numerics",)) == kernel


def test_a_port_that_takes_too_long_is_ended(ports: Path) -> None:
    report = verify_ports([ports], PortConfig(arch=("sm_90a",), jobs=2), Settings(timeout=0.01))
    assert len(report.kernels) == 2 and report.exit_code == 1
    for kernel in report.kernels:
        (verdict,) = kernel.verdicts
        assert verdict.status is Status.ERROR and verdict.diagnostics[0].code == "PRT874"
    assert baseline(ports / "first.py") != {}


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda t: t[: len(t) // 2], "Expecting|Unterminated"),
        (lambda t: t.replace('"status": "PASS"', '"status": "PAS"', 1), r"verdicts\[0\]\.status"),
        (lambda t: '"registers": 9'.join(t.rsplit('"registers": ', 1)), "`baseline.sha256` does not fit"),
        (lambda t: t.replace('"kernel":', '"kernal":', 1), "`kernel` is missing"),
    ],
)
def test_a_corrupted_record_is_refused_by_key_and_left_alone(porter, ports: Path, damage: Any, named: str) -> None:
    path = record_path(ports / "first.py")
    damaged = damage(path.read_text())
    assert damaged != path.read_text()
    path.write_text(damaged)
    done = porter("verify", "out", "--output-format", "json", "--update")
    assert done.returncode == 2
    found = json.loads(done.stdout)
    (message,) = found["diagnostics"]
    assert re.search(named, message["message"]), message
    assert message["code"] == "PRT955" and message["help"] and message["span"]["file"].endswith("first.port.json")
    assert [k["kernel"] for k in found["kernels"]] == ["second_kernel"]  # the others are verified
    assert path.read_text() == damaged


def test_porting_again_keeps_the_baseline(porter, ports: Path) -> None:
    before = baseline(ports / "first.py")
    edit(ports.parent / "first.cu", "* factor", "* (factor + 1.0f)")
    done = porter("port", "first.cu", "-o", "out", "--arch", "sm_90a")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1.0" in (ports / "first.py").read_text() and baseline(ports / "first.py") == before
