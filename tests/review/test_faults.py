"""What may be wrong while the app is open: a clear message, and no decision is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("textual")
from rich.color import Color
from rich.style import Style
from textual.color import Color as Colour
from textual.pilot import Pilot
from textual.widgets import TextArea

from porter.cli import main
from porter.provenance.record import record_path
from porter.review.app import ReviewApp
from porter.review.port.actions import accept
from porter.review.port.decisions import read_draft
from porter.review.port.reviewed_port import load
from porter.review.screens import dialogs

from .conftest import with_verdicts
from .drive import LARGE, app_of, at, drive, press, said, wait_for
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
        assert screen.port.accepted == 1
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
    """The cursor's lines stay in sight on both sides, down to 40 columns; other columns of the table of ports."""
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.resize_terminal(80, 24)
        await wait_for(pilot, lambda: "sanit " in screen_text(app))
        await press(pilot, "down", "enter")
        await at(pilot, "if i < n")
        for width, height in ((120, 40), (80, 24), (40, 12), (200, 60)):
            await pilot.resize_terminal(width, height)
            await wait_for(pilot, lambda height=height: len(screen_text(app).splitlines()) == height)
            await wait_for(pilot, lambda: "> 29 ·     if" in screen_text(app) and ">  9 ·" in screen_text(app))
        await press(pilot, "escape")
        await wait_for(pilot, lambda: "sanitizer" in screen_text(app))

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


def test_a_port_without_a_record_is_shown_and_not_decided(port: Path, capsys: pytest.CaptureFixture[str]):
    """It says which file is missing and what makes it; nothing is written. `--check` says the same."""
    record_path(port).unlink()
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        assert "PRT955" in screen_text(app) and "has no scale.port.json" in screen_text(app)
        await press(pilot, "a", "c", *"x", "enter", "i", "escape", "w", "escape", "d", "escape", "t", "escape")
        assert not record_path(port).exists() and any(m.startswith("PRT955") for m in said(app))

    drive(app, steps)
    assert main(["review", str(port), "--check"]) == 1
    assert "has no scale.port.json" in capsys.readouterr().out


def test_a_missing_source_shows_what_was_ported(folder: Path, port: Path):
    """The record has the old text: it is shown as what it is. Accepting is refused, comments are not."""
    accept(load(port), load(port).regions[0])
    (folder / "scale.cu").unlink()
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        text = screen_text(app)
        assert "PRT961" in text and "if (i < n) {" in text and "as it was ported" in text
        await press(pilot, "a")
        assert any("cannot be read" in m for m in said(app))
        await press(pilot, "c", *"gone", "enter")
        assert load(port).decisions[screen.here.name].comment == "gone" and load(port).accepted == 1

    drive(app, steps)


def test_a_decision_that_cannot_be_written_is_said(port: Path, monkeypatch: pytest.MonkeyPatch):
    """The disk is full: the region stays open on the screen too, and the next try is kept."""
    app = app_of(port)

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    async def steps(pilot: Pilot[int]) -> None:
        with monkeypatch.context() as broken:
            broken.setattr("porter.provenance.store.write_atomic", full)
            broken.setattr("porter.review.port.decisions.write_atomic", full)
            await press(pilot, "a")
            assert any("no space left" in m for m in said(app)), said(app)
            assert "0 of 10 regions accepted" in screen_text(app)
            await press(pilot, "i", *"x", "escape")
            assert sum("no space left" in m for m in said(app)) == 2
        await press(pilot, "a")
        assert load(port).accepted == 1

    drive(app, steps)


def test_two_people_decide_at_once(port: Path):
    """Both apps are open; what one decides is there when the other decides about another region, and is shown."""
    app, other = app_of(port), app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        async with other.run_test(size=LARGE) as second:
            await second.pause()
            await press(pilot, "a")
            await at(second, "if i < n")
            await press(second, "a")
            assert load(port).accepted == 2
            app.look_at_files()
            await pilot.pause()
            assert "2 of 10 regions accepted" in screen_text(app)

    drive(app, steps)


def test_the_record_is_damaged_while_a_port_is_verified(port: Path):
    """The verification ends, says what it cannot read, and the screen shows the fault."""

    async def verifier(path: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        record_path(port).write_text("half a rec")
        return False, "cannot read the provenance of the port"

    app = app_of(port, verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "a", "v")
        await wait_for(pilot, lambda: not app.running)
        await pilot.pause()
        assert "PRT955" in screen_text(app) and any("not verified" in m for m in said(app))
        await press(pilot, "a")
        assert record_path(port).read_text() == "half a rec"

    drive(app, steps)


SURFACE = Color.parse("#1e1e1e")  # what is behind a line of code


def test_without_colours_everything_is_grey_and_can_be_read(port: Path):
    """NO_COLOR: every colour that is drawn is a grey, and differs enough from what is behind it."""
    with_verdicts(port)
    drawn: list[list[Style]] = []
    for value in ("", "1"):
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("NO_COLOR", value) if value else environment.delenv("NO_COLOR", raising=False)
            app = app_of(port)

            async def steps(pilot: Pilot[int], app: ReviewApp = app) -> None:
                await press(pilot, "down", "home")
                strips = app.screen._compositor.render_strips(app.size)
                drawn.append([s.style for strip in strips for s in strip if s.style and re.search(r"\w", s.text)])

            drive(app, steps)
    with_colours, without = ([(s.color, s.bgcolor or SURFACE) for s in styles if s.color] for styles in drawn)
    assert any(len(set(c.get_truecolor())) > 1 for c, _ in with_colours)
    assert without and not any(len(set(c.get_truecolor())) > 1 for pair in without for c in pair)
    assert min(contrast(*pair) for pair in without) > 2.0


def contrast(one: Color, other: Color) -> float:
    """The ratio of two luminances as WCAG 2 defines it."""
    low, high = sorted(Colour.from_rich_color(c).brightness ** 2.2 + 0.05 for c in (one, other))
    return high / low
