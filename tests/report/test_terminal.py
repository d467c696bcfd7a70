"""Other people's text on stdout and stderr: whatever is in it, the terminal obeys none of it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from porter.cli import main
from porter.model import Diagnostic, KernelReport, Report, Status, Verdict
from porter.regression.github import github
from porter.regression.junit import junit
from porter.regression.sarif import sarif
from porter.report.console import console, print_json, print_report
from porter.report.render import render
from porter.report.terminal import escaped, visible, visible_output
from porter.source import Source, Span

HOSTILE = "a\x1b[2J\x1b]0;t\x07 b\x9b31m c\u202ed\u2066 e\rf\x00\x7f\u2028g"
STEERING = set("\x1b\x07\x9b\u202e\u2066\r\x00\x7f\u2028\x9d\x85")


def report() -> Report:
    """Hostile text in every place that a report has."""
    at = Span(f"{HOSTILE}.cu", 1, 1)
    found = Diagnostic("PRT801", HOSTILE, at, help=HOSTILE, notes=(HOSTILE,))
    verdict = Verdict("numerics", Status.FAIL, HOSTILE, (found,), {})
    return Report(
        (KernelReport(HOSTILE, Source(Path(at.file), HOSTILE), (), f"{HOSTILE}.py", (), (verdict,)),), (found,)
    )


@pytest.mark.parametrize("color", ["never", "always"])
def test_a_console_colours_and_its_text_does_not(color: str) -> None:
    out = io.StringIO()
    print_report(report(), console(out, color))
    console(out, color).print(render(report().diagnostics[0]))
    text = out.getvalue()
    if color == "always":
        assert "\x1b[1m" in text
        text = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert not STEERING & set(text)
    assert "a␛[2J␛]0;t" in text


def test_a_source_line_is_underlined_where_it_was(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("x\x1b[1m = y;\n")
    out = io.StringIO()
    console(out, "never").print(render(Diagnostic("PRT004", "m", Span(str(source), 1, 9, 1, 10))))
    row, marks = out.getvalue().splitlines()[-2:]
    assert row[marks.index("^")] == "y" and "␛" in row


def test_what_programs_read_keeps_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    with visible_output():
        print_json({HOSTILE: HOSTILE})
        sys.stdout.write(sarif(report()) + "\n")
        print(HOSTILE, file=sys.stderr)
    printed = capsys.readouterr()
    assert not STEERING & set(printed.out + printed.err)
    first, rest = printed.out.split("\n}\n", 1)
    assert json.loads(first + "}") == {HOSTILE: HOSTILE}
    assert HOSTILE in json.loads(rest)["runs"][0]["results"][0]["message"]["text"]


def test_junit_and_github_stay_valid(capsys: pytest.CaptureFixture[str]) -> None:
    with visible_output():
        print(junit(report()))
    text = capsys.readouterr().out
    assert not STEERING & set(text) and ElementTree.fromstring(text.encode()) is not None
    with visible_output():
        print(github(report()))
    text = capsys.readouterr().out
    assert not STEERING & set(text)
    assert all(row.startswith("::") for row in text.strip().splitlines()[:-1])


@pytest.mark.parametrize("argv", [["explain", HOSTILE], ["port", f"{HOSTILE}.cu"], [HOSTILE], ["patterns", HOSTILE]])
def test_commands(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        main([a.replace("\0", "") for a in argv])
    printed = capsys.readouterr()
    assert not STEERING & set(printed.out + printed.err)
    assert "[2J" in printed.err


def test_plain_text_is_left_alone() -> None:
    for text in ("", "plain\ttext\n", "größe 数 ✓ é"):
        assert escaped(text) == visible(text) == text
    assert escaped("a\r\nb\x1b") == "a\nb\\u001b"


def test_stdout_is_what_it_was_afterwards() -> None:
    before = sys.stdout, sys.stderr
    with visible_output(), visible_output():
        assert sys.stdout is not before[0]
        sys.stdout.flush()
    assert (sys.stdout, sys.stderr) == before
