"""The printed form of a diagnostic, to the letter of the design, and where colour goes."""

from __future__ import annotations

import io
from pathlib import Path

from porter.model import Diagnostic, Severity
from porter.report.console import console, print_diagnostics
from porter.report.render import excerpt, render, source_line
from porter.source import Span


def test_the_whole_form(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.cu").write_text("\n" * 30 + "    extern __shared__ float buf[];\n")
    d = Diagnostic(
        "PRT204",
        "size of the dynamic shared array is unknown",
        Span("softmax.cu", 31, 5, 31, 35),
        help="give `smem_bytes` in softmax.case.toml, or port with a launch in the file",
        notes=("port: ported/softmax.py:44 (hole 2)",),
    )
    assert render(d).plain == (
        "PRT204 size of the dynamic shared array is unknown\n"
        "  --> softmax.cu:31:5\n"
        "   |\n"
        "31 |     extern __shared__ float buf[];\n"
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = port: ported/softmax.py:44 (hole 2)\n"
        "   = help: give `smem_bytes` in softmax.case.toml, or port with a launch in the file"
    )


def test_without_a_file_or_with_one_that_is_gone() -> None:
    assert render(Diagnostic("PRT952", "no")).plain == "PRT952 no"
    assert render(Diagnostic("PRT010", "gone", Span("nowhere.cu", 3, 1))).plain == "PRT010 gone\n --> nowhere.cu:3:1"


def test_underlines_follow_tabs_words_and_long_spans() -> None:
    assert excerpt("\tx = y;", 1, 2, 1, 3) == ("    x = y;", "    ^")
    assert excerpt("foo(bar)", 1, 5, 0, 0) == ("foo(bar)", "    ^^^")
    assert excerpt("for (;;) {  ", 1, 1, 9, 2) == ("for (;;) {  ", "^^^^^^^^^^")
    assert excerpt("ab", 1, 9, 1, 12) == ("ab", "  ^")


def test_colour_is_for_terminals_and_no_color_wins(monkeypatch) -> None:
    def printed(color: str) -> str:
        out = io.StringIO()
        print_diagnostics((Diagnostic("PRT001", "x" * 300),), console(out, color))
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in printed("always")
    assert "\x1b[" not in printed("auto")
    assert printed("never") == "PRT001 " + "x" * 300 + "\n\n"  # one line, however long


def test_messages_may_hold_what_looks_like_markup() -> None:
    out = io.StringIO()
    print_diagnostics((Diagnostic("PRT001", "smem[0] [bold]"),), console(out, "never"))
    assert out.getvalue().startswith("PRT001 smem[0] [bold]")


def test_the_line_shown_is_the_one_that_stands_there_now(tmp_path: Path, monkeypatch) -> None:
    """A review stays open while the source is edited, and working folders have files of one name."""
    for folder, text in (("a", "int first;"), ("b", "int other;"), ("b", "int edited;")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "k.cu").write_text(text + "\n")
        monkeypatch.chdir(tmp_path / folder)
        assert source_line("k.cu", 1) == text
    (tmp_path / "b/k.cu").unlink()
    assert source_line("k.cu", 1) is None


def test_faults_that_no_kernel_needs_are_told_in_few_lines() -> None:
    out = io.StringIO()
    needless = [Diagnostic("PRT004", f"fault {n}", Span("k.cu", n), Severity.WARNING) for n in range(1, 40)]
    mine = Diagnostic("PRT004", "a kernel's own", Span("k.cu", 50))
    print_diagnostics((*needless, mine), console(out, "never"))
    text = out.getvalue()
    assert "fault 1\n" in text and "fault 2\n" in text and "fault 3\n" not in text
    assert "a kernel's own" in text and "37 more such errors" in text
