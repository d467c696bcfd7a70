"""The app verifies ports for real: progress, what it finds by region, edits verified again, and its failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("textual")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
from textual.pilot import Pilot
from textual.widgets import TextArea

from porter.provenance.record import record_path
from porter.review.port.reviewed_port import load
from porter.review.port.verifying import conclusion, end_all, verify

from .drive import app_of, at, drive, press, said, wait_for
from .screens import screen_text


def test_verify_edit_and_verify_again(port: Path):
    """PASS in the table; a wrong edit in place is verified at once: numerics fails, and the tab and the region say with
    which element. Rejecting the edit gives the emitted lines back, which are verified too."""
    before = port.read_text()
    progress: list[str] = []

    async def verifier(path: Path, say):  # type: ignore[no-untyped-def]
        def heard(words: str) -> None:
            progress.append(words)
            say(words)

        return await verify(path, heard)

    app = app_of("out", verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "slash", *"scale", "enter", "v")
        await wait_for(pilot, lambda: not app.running, 60)
        await pilot.pause()
        row = next(line for line in screen_text(app).splitlines() if "scale" in line and "PASS" in line)
        assert row.count("PASS") >= 3 and "SKIP" in row and load(port).verified
        assert any("compile" in words for words in progress) and any("numerics" in words for words in progress)
        assert any("every check passed" in m for m in said(app))
        await press(pilot, "enter")
        screen = await at(pilot, "if i < n")
        assert "verified; no message about these lines" in screen_text(app)
        await press(pilot, "i")
        app.screen.query_one(TextArea).text = screen.port.port_text(screen.here).replace("* factor", "* factor * 2.0")
        await press(pilot, "ctrl+s")
        await wait_for(pilot, lambda: not app.running and load(port).verified, 60)
        await pilot.pause()
        assert "✗ numerics" in screen_text(app) and any("numerics FAIL" in m for m in said(app))
        await press(pilot, "d", "n")
        text = screen_text(app)
        assert "✗ FAIL" in text and "elements are not bit-equal" in text and "first divergence: CUDA line 10" in text
        await press(pilot, "end")
        assert "At [0] the original has" in " ".join(screen_text(app).split())
        await press(pilot, "escape")
        await at(pilot, "factor * 2.0")
        await press(pilot, "r", "enter")
        assert port.read_text() == before and app.running, "what is there again is verified again"
        await end_all()
        await wait_for(pilot, lambda: not app.running, 10)
        assert any("not verified the verification ended with" in m for m in said(app))

    drive(app, steps)


def test_a_port_that_does_not_compile_is_said_with_its_line(port: Path):
    port.write_text(port.read_text().replace("* factor", "* factr"))
    app = app_of(port, verifier=verify)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "v")
        await wait_for(pilot, lambda: not app.running, 60)
        await pilot.pause()
        await press(pilot, "d")
        assert "✗ compile" in screen_text(app) and "factr" in screen_text(app)
        assert "in scale_kernel/3, port lines 29-30" in screen_text(app)

    drive(app, steps)


def test_a_verification_that_cannot_be_done_is_a_message(port: Path):
    """The record is damaged meanwhile: porter ends with 2 and its message, not with a trace."""
    before = record_path(port).read_text()
    record_path(port).write_text("{")
    good, words = asyncio.run(verify(port, lambda text: None))
    assert not good and "cannot read the provenance" in words
    record_path(port).write_text(before)


@pytest.mark.parametrize(
    ("code", "output", "last", "words"),
    [
        (-9, "", "", "ended with -9: without a message"),
        (-11, '{"kernels": [', "scale: numerics", "ended with -11: scale: numerics"),
        (2, "[]", "", "ended with 2"),
        (0, "null", "", "ended with 0"),
    ],
)
def test_how_a_verification_ended(code: int, output: str, last: str, words: str):
    good, said_ = conclusion(code, output, last)
    assert not good and words in said_
