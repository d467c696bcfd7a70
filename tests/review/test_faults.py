"""What may be wrong while the app is open: a clear message, and no decision is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("textual")
from textual.pilot import Pilot
from textual.widgets import TextArea

from porter.provenance import record_path
from porter.review import dialogs
from porter.review.app import ReviewApp
from porter.review.decisions import read_draft
from porter.review.loaded import load

from .conftest import with_verdicts
from .drive import app_of, at, drive, press, said, wait_for
from .screens import screen_text


def test_a_verification_that_breaks_is_a_message(port: Path):
    async def verifier(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        raise OSError("no process left")

    app = app_of(port, verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "v")
        await wait_for(pilot, lambda: not app.running)
        assert any("no process left" in m for m in said(app))
        await press(pilot, "a")
        assert load(port).accepted == 1

    drive(app, steps)


def test_what_was_typed_survives_the_terminal(port: Path):
    """The app is gone in the middle of an edit; the next one goes on with what was typed, and decisions are there."""
    app = app_of(port)

    async def type_and_vanish(pilot: Pilot[int]) -> None:
        await press(pilot, "a")
        await at(pilot, "if i < n")
        await press(pilot, "i")
        app.screen.query_one(TextArea).text = "    if i < n  # half an"
        await pilot.pause()

    drive(app, type_and_vanish)
    again = app_of(port)

    async def go_on(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        assert screen.loaded.accepted == 1
        await press(pilot, "i")
        assert isinstance(again.screen, dialogs.EditRegion)
        assert again.screen.query_one(TextArea).text == "    if i < n  # half an"
        await press(pilot, "ctrl+s")
        assert any("not Python" in m for m in said(again))
        assert read_draft(port, screen.here.name) == "    if i < n  # half an"
        await press(pilot, "i", "ctrl+r", "ctrl+s")
        assert read_draft(port, screen.here.name) is None

    drive(again, go_on)


def test_a_terminal_that_cannot_be_handed_over_is_said(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "e")
        assert any("edit in place" in m for m in said(app))

    drive(app, steps)


def test_a_broken_record_is_shown_with_what_to_do(folder: Path, port: Path):
    record_path(port).write_text("{")
    app = app_of("out/scale.py", "out/other.py")

    async def steps(pilot: Pilot[int]) -> None:
        assert "! PRT955" in screen_text(app)
        await press(pilot, "down", "enter")
        assert "cannot read the provenance" in screen_text(app)
        await press(pilot, "a")
        assert record_path(port).read_text() == "{" and any(m.startswith("PRT955") for m in said(app))

    drive(app, steps)


def test_changes_by_others_are_seen_and_decided_on_anew(folder: Path, port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        port.write_text(port.read_text().replace("i < n", "n > i"))
        await press(pilot, "a")
        assert any(m.startswith("PRT964") for m in said(app)) and load(port).accepted == 0
        assert "n > i" in screen_text(app)
        (folder / "scale.cu").unlink()
        app.look_at_files()
        await pilot.pause()
        assert "PRT961" in screen_text(app)
        await press(pilot, "a")
        assert load(port).accepted == 0

    drive(app, steps)


def test_a_record_that_is_removed_while_it_is_open(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        record_path(port).unlink()
        app.look_at_files()
        await pilot.pause()
        assert "PRT955" in screen_text(app)
        await press(pilot, "a", "n", "d", "escape", "t")

    drive(app, steps)


def test_resize(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        for width, height in ((80, 24), (40, 12), (200, 60)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert len(screen_text(app).splitlines()) == height
        assert "if (i < n)" in screen_text(app)

    drive(app, steps)


def test_nothing_is_said_by_colour_alone(port: Path, monkeypatch: pytest.MonkeyPatch):
    """With NO_COLOR there are only greys, and the characters are the same."""
    with_verdicts(port)
    texts = []
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value) if value else monkeypatch.delenv("NO_COLOR", raising=False)
        app = app_of(port)

        async def steps(pilot: Pilot[int], app: ReviewApp = app, value: str = value) -> None:
            await at(pilot, "if i < n")
            texts.append(screen_text(app))
            assert app.no_color == bool(value)

        drive(app, steps)
    assert texts[0] == texts[1]
