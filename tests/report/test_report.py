"""What a run prints: progress, summary, JSON, exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from porter.model import Diagnostic, Hole, Instance, KernelReport, Report, Severity, Status, Verdict
from porter.model.facts import Facts
from porter.report.console import StageEvent, console, print_report, report_to_json
from porter.report.progress import ProgressTable, watching
from porter.source import Source, Span

SOURCE = Source(Path("k.cu"), "")
HOLE = Hole("PRT401", Span("k.cu", 3), "wmma", "no rule")


def kernel(**values) -> KernelReport:
    return KernelReport("k", SOURCE, **({"port_path": "out/k.py"} | values))


PASS = Verdict("numerics", Status.PASS, "12 cases, bit-equal")


@pytest.mark.parametrize(
    "report, code",
    [
        (Report((kernel(verdicts=(PASS,)),)), 0),
        (Report((kernel(verdicts=(PASS, Verdict("performance", Status.SKIP, "no GPU"))),)), 0),
        (Report((kernel(verdicts=(Verdict("compile", Status.ERROR),)),)), 1),
        (Report((kernel(holes=(HOLE,)),)), 1),
        (Report((kernel(diagnostics=(Diagnostic("PRT950", "x"),)), kernel(verdicts=(PASS,)))), 2),
        (Report((), (Diagnostic("PRT010", "x"),)), 2),
        (Report((kernel(verdicts=(PASS,)),), (Diagnostic("PRT003", "x", severity=Severity.WARNING),)), 0),
    ],
)
def test_exit_codes(report: Report, code: int) -> None:
    assert report.exit_code == code == report_to_json(report)["exit_code"]


def test_the_summary() -> None:
    out = io.StringIO()
    one = kernel(
        instances=(Instance(("__half", "8")), Instance(("float", "4"))),
        verdicts=(PASS, Verdict("sanitizer", Status.FAIL, "out-of-bounds read")),
        holes=(HOLE, HOLE),
        seconds={"parse": 0.21, "numerics": 1.5, "total": 1.8},
    )
    print_report(Report((one,)), console(out, "never"))
    assert out.getvalue() == (
        "k  k.cu -> out/k.py\n"
        "  instances   <__half, 8>  <float, 4>\n"
        "  numerics    PASS  12 cases, bit-equal\n"
        "  sanitizer   FAIL  out-of-bounds read\n"
        "  2 holes: PRT401 x2\n"
        "  time        parse 0.21 s  numerics 1.50 s  total 1.80 s\n"
        "\n"
        "1 kernel, 1 ported, 0 verified, 2 holes, 1 check failed\n"
    )


def test_not_run_is_never_verified() -> None:
    assert not report_to_json(Report((kernel(),)))["kernels"][0]["verified"]
    skipped = kernel(verdicts=(Verdict("numerics", Status.SKIP, "no case"),))
    assert not report_to_json(Report((skipped,)))["kernels"][0]["verified"]


def test_json_can_always_be_written() -> None:
    numpy = pytest.importorskip("numpy")
    data = {"ulp": numpy.float32(2), "n": numpy.int64(3), "bad": float("nan"), "where": Path("x"), "set": {2, 1}}
    value = report_to_json(Report((kernel(verdicts=(Verdict("numerics", Status.PASS, facts=Facts(rest=data)),)),)))
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text)["kernels"][0]["verdicts"][0]["data"] == {
        "ulp": 2.0,
        "n": 3,
        "bad": "nan",
        "where": "x",
        "set": [1, 2],
    }


def test_progress_in_a_pipe_is_one_line_a_finished_stage() -> None:
    out = io.StringIO()
    with watching(console(out, "never"), live=False) as progress:
        progress(StageEvent("k", "parse", "running"))
        progress(StageEvent("k", "parse", "done", seconds=0.2))
        progress(StageEvent("k", "numerics", "failed", "3 of 7 [cases]", 1.0))
    assert out.getvalue() == "k: parse ok 0.20 s\nk: numerics FAIL 1.00 s  3 of 7 [cases]\n"


def test_the_live_table_has_a_row_a_kernel_and_a_column_a_stage() -> None:
    table = ProgressTable()
    table.add(StageEvent("a", "parse", "done", seconds=0.2))
    table.add(StageEvent("b", "numerics", "running", "4/12 [x]"))
    table.add(StageEvent("b", "names", "failed"))
    table.add(StageEvent("b", "performance", "skipped"))
    out = io.StringIO()
    console(out, "never").print(table.draw())
    rows = [line.split() for line in out.getvalue().splitlines()]
    assert rows[0] == [
        "kernel",
        "parse",
        "plan",
        "emit",
        "compile",
        "resources",
        "numerics",
        "sanitizer",
        "determinism",
    ]
    assert rows[1][:4] == ["a", "0.20", "s", "-"]
    assert "4/12 [x]" in out.getvalue() and rows[2][-1] == "names"


def test_the_live_table_leaves_nothing_behind() -> None:
    out = io.StringIO()
    with watching(console(out, "always"), live=True) as progress:
        progress(StageEvent("k", "parse", "running"))
    assert out.getvalue().count("\x1b[") > 2


def test_how_far_a_run_over_several_files_is() -> None:
    from porter.report.file_count import FileCount

    out, now = io.StringIO(), iter([0.0, 10.0, 30.0, 31.0])
    with watching(console(out, "never"), live=False) as progress:
        count = FileCount(5, progress, known=2, clock=lambda: next(now))
        for name in ("a.cu", "b.cu", "c.cu"):
            count.add(Path(name))
    assert out.getvalue().splitlines() == [
        "3 of 5 files, about 20 s left", "4 of 5 files, about 15 s left", "5 of 5 files",
    ]  # fmt: skip
    table = ProgressTable()
    table.add(StageEvent("k.cu", "file", "done", "3 of 5 files"))
    assert table.rows == {} and table.draw().caption == "3 of 5 files"


@pytest.mark.parametrize("seconds, text", [(0.2, "1 s"), (89, "89 s"), (170, "3 min"), (4800, "1 h 20 min")])
def test_durations(seconds: float, text: str) -> None:
    from porter.report.file_count import duration

    assert duration(seconds) == text
