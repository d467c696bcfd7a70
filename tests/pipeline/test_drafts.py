"""Messages about a draft name the port that it is to be, in every field, and places in the port become CUDA places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from porter.model import Diagnostic, LineMapEntry, Severity, Status, Verdict
from porter.pipeline.drafts import Draft, at_source, drafted
from porter.source import Span

MAP = (LineMapEntry(3, Span("k.cu", 10, 5, 10, 9)), LineMapEntry(7, Span("k.cu", 20, 1)))


def test_a_draft_is_gone_afterwards_and_lies_where_it_was_asked_for(tmp_path: Path) -> None:
    with drafted("x = 1\n", "out/k.py", tmp_path) as draft:
        assert draft.path.read_text() == "x = 1\n" and draft.path.name == "k.py" and draft.name == "out/k.py"
        assert tmp_path in draft.path.parents
    assert not draft.path.exists() and not any(tmp_path.iterdir())


@pytest.mark.parametrize("linked", [False, True])
def test_no_field_of_a_verdict_names_the_draft(tmp_path: Path, linked: bool) -> None:
    """Also where the draft's folder is reached through a link, and messages have the real path."""
    folder = tmp_path / "real"
    folder.mkdir()
    if linked:
        (tmp_path / "link").symlink_to(folder)
    path = (tmp_path / "link" if linked else folder) / "k.py"
    path.write_text("")
    draft = Draft(path, "out/k.py")
    for spelled in (str(path), os.path.realpath(path)):
        at = Span(spelled, 3)
        told = Diagnostic("PRT811", f"in {spelled}:3", at, Severity.ERROR, f"see {spelled}", (spelled,))
        found = draft.verdict(Verdict("compile", Status.FAIL, f"{spelled} fails", (told,)))
        assert "real/" not in repr(found) and "link/" not in repr(found)
        assert found.detail == "out/k.py fails"
        assert found.diagnostics == (
            Diagnostic("PRT811", "in out/k.py:3", Span("out/k.py", 3), Severity.ERROR, "see out/k.py", ("out/k.py",)),
        )


@pytest.mark.parametrize(
    ("file", "line", "span", "note", "port_line"),
    [
        ("out/k.py", 3, MAP[0].span, "port: out/k.py:3", 3),
        ("./out/../out/k.py", 8, MAP[1].span, "port: out/k.py:8", 8),
        ("out/k.py", 0, Span("", 0, 0), "port: out/k.py", 0),
        ("k.py", 3, Span("k.py", 3), "", 0),  # another file of that name
        ("/tmp/porter-run-1/k.py", 3, Span("/tmp/porter-run-1/k.py", 3), "", 0),
        ("k.cu", 3, Span("k.cu", 3), "", 0),
        ("", 0, Span("", 0), "", 0),
    ],
)
def test_places_in_the_port_become_places_in_the_source(
    file: str, line: int, span: Span, note: str, port_line: int
) -> None:
    verdict = Verdict("numerics", Status.FAIL, "", (Diagnostic("PRT840", "wrong", Span(file, line), notes=("n",)),))
    (found,) = at_source(verdict, Path("out/k.py"), MAP).diagnostics
    assert (found.span, found.port_line) == (span, port_line)
    assert found.notes == ((note, "n") if note else ("n",))


def test_what_the_agent_names_without_a_folder_is_the_port_as_well() -> None:
    verdict = Verdict("numerics", Status.FAIL, "", (Diagnostic("PRT840", "wrong", Span("k.py", 7)),))
    (found,) = at_source(verdict, Path("out/k.py"), MAP, "k.py").diagnostics
    assert found.span == MAP[1].span and found.notes == ("port: out/k.py:7",)


def test_what_entry_says_stays_in_the_port() -> None:
    verdict = Verdict("entry", Status.FAIL, "", (Diagnostic("PRT831", "wrong", Span("k.py", 7)),))
    (found,) = at_source(verdict, Path("out/k.py"), MAP, "k.py").diagnostics
    assert found.span == Span("out/k.py", 7) and not found.notes
