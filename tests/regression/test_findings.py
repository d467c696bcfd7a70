"""One fault is one finding, at the port's line; two faults are two."""

from __future__ import annotations

import json
from pathlib import Path

from porter.model import Diagnostic, KernelReport, Report, Severity, Status, Verdict
from porter.provenance.baseline import BaselineRun, Worse, regression_verdict, what_changed
from porter.regression.findings import findings
from porter.regression.github import github
from porter.regression.sarif import sarif
from porter.report.console import worth_saying
from porter.source import Source, Span

CASE, CUDA = Span("k.case.toml", 9), Span("k.cu", 40, 3)


def at(line: int, kind: str = "out-of-bounds", code: str = "PRT840") -> Diagnostic:
    """An access in a line of the port that is forbidden, placed as a run places it."""
    message = f"the port: {kind}: 4-byte read at offset 64 of x"
    return Diagnostic(code, message, CUDA, notes=(f"port: out/k.py:{line}", "<8>"))


def differs(buffer: str, code: str = "PRT801") -> Diagnostic:
    return Diagnostic(code, f"<8> {buffer}: differ", CASE, notes=("at n=1",))


PARTS = Diagnostic("PRT805", "first part at line 40", CUDA, Severity.NOTE, notes=("port: out/k.py:23",))
SMALLEST = Diagnostic("PRT843", "the smallest launch found that fails: n=1", CASE, Severity.NOTE)
GONE = Diagnostic("PRT881", "numerics: FAIL, was PASS, in the baseline", Span("out/k.py", 0))


def report(**checks: tuple[Diagnostic, ...]) -> Report:
    verdicts = tuple(
        Verdict(name, Status.FAIL if any(d.severity is Severity.ERROR for d in ds) else Status.PASS, name, ds)
        for name, ds in checks.items()
    )
    return Report((KernelReport("k", Source(Path("k.cu"), ""), (), "out/k.py", (), verdicts),))


def places(of: Report) -> list[tuple[str, str, int]]:
    return [(f.diagnostic.code, f.diagnostic.span.file, f.diagnostic.span.line) for f in findings(of)]


def test_a_wrong_index_in_every_instance_and_buffer_is_one_finding() -> None:
    wrong = report(
        numerics=(differs("a"), differs("b"), differs("c", "PRT804"), SMALLEST, PARTS),
        sanitizer=(at(17), at(17), SMALLEST),
        determinism=(differs("a", "PRT850"),),
        regression=(GONE, Diagnostic("PRT882", "max ulp of a: 9, was 0, in the baseline", Span("out/k.py", 0))),
    )
    assert places(wrong) == [("PRT840", "out/k.py", 17)]
    (finding,) = findings(wrong)
    for told in ("numerics: <8> a: differ", "determinism: ", "the smallest launch", "first part at line 40"):
        assert told in finding.text
    assert [line.split(",line=")[1].split(",")[0] for line in github(wrong).splitlines()[:-1]] == ["17"]
    (result,) = json.loads(sarif(wrong))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 17
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.cu"


def test_wrong_values_are_one_finding_where_the_port_parts_from_the_original() -> None:
    assert places(report(numerics=(differs("a"), differs("b"), PARTS, SMALLEST))) == [("PRT801", "out/k.py", 23)]
    assert places(report(numerics=(differs("a"), differs("b")))) == [("PRT801", "out/k.py", 0)]


def test_two_lines_are_two_findings() -> None:
    found = places(report(numerics=(differs("a"),), sanitizer=(at(17), at(19, "shared-race"), at(17, "misaligned"))))
    assert found == [("PRT840", "out/k.py", 17), ("PRT840", "out/k.py", 19)]


def test_what_is_no_fault_of_the_port_s_text_stays_beside_it() -> None:
    launch = Diagnostic("PRT844", "the launch takes a way", Span("out/k.py", 70))
    original = Diagnostic("PRT841", "the original: out-of-bounds: x", CUDA)
    found = places(report(numerics=(launch, differs("a"), PARTS), sanitizer=(original,), resources=(GONE,)))
    assert sorted(code for code, _, _ in found) == ["PRT801", "PRT841", "PRT844", "PRT881"]


def test_the_next_step_of_a_regression_fits_what_has_changed() -> None:
    was = BaselineRun("emulator", "2026-01-01", "a", "s", "c", versions={"porter": "1"})
    now = BaselineRun("emulator", "2026-01-02", "a", "s", "d", versions={"porter": "2"})
    worse = [Worse("check", "numerics", "PASS", "FAIL")]

    def step(changed: tuple[str, ...] | None) -> str:
        return regression_verdict(worse, "w", "k.py", changed=changed).diagnostics[0].help

    assert what_changed(was, now) == ("case", "porter")
    assert step(what_changed(was, now)) == "the port is unchanged; what changed: the case, porter"
    assert step(("port", "case")) == step(None) == "undo what broke it"
    assert "are unchanged" in step(()) and "undo" not in step(())


def test_faults_that_no_kernel_needs_are_silent_where_all_is_verified() -> None:
    needless = Diagnostic("PRT004", "unknown type name 'at'", CUDA, Severity.WARNING)
    good = Verdict("numerics", Status.PASS, "bit-equal", ())
    kernel = KernelReport("k", Source(Path("k.cu"), ""), (), "out/k.py", (), (good,), (needless,))
    assert worth_saying(Report((kernel,), (needless,))) == ()
    bad = Report((kernel, KernelReport("j", kernel.source, (), "out/j.py", (), (), ())), (needless,))
    assert needless in worth_saying(bad)
    fatal = Diagnostic("PRT004", "does not parse", CUDA)
    assert worth_saying(Report((kernel,), (needless, fatal))) == (fatal,)
