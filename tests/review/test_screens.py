"""The app, driven as a person drives it. The texts in screens/ are what is on the screen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("textual")
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, TextArea, Tree

from porter.config import PortConfig
from porter.model import LineMapEntry
from porter.provenance import line_hashes, record_path, sha256_text, update_record
from porter.review import dialogs
from porter.review.app import ReviewApp
from porter.review.attempts_screen import AttemptsScreen
from porter.review.bindings import KEYS
from porter.review.code_pane import CodePane
from porter.review.decisions import read_draft
from porter.review.evidence_screen import EvidenceScreen
from porter.review.loaded import load
from porter.review.ports_screen import PortsScreen
from porter.review.review_screen import ReviewScreen
from porter.review.three_way import ThreeWayScreen
from porter.source import Span

from .conftest import KERNEL, with_verdicts
from .screens import same_as_kept, screen_text

LARGE, SMALL = (120, 40), (80, 24)


def app_of(*paths: Path | str, verifier: Callable[..., Awaitable[tuple[bool, str]]] | None = None) -> ReviewApp:
    async def none(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        return True, "not run in this test"

    return ReviewApp([Path(p) for p in paths], PortConfig(), verifier or none)


def drive(app: ReviewApp, steps: Callable[[Pilot[int]], Awaitable[None]], size: tuple[int, int] = LARGE) -> None:
    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(pilot)

    asyncio.run(main())


async def settle(pilot: Pilot[int]) -> None:
    await pilot.pause()
    await pilot.pause()


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def wait_for(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not happen within four seconds")


def review(app: App[int]) -> ReviewScreen:
    assert isinstance(app.screen, ReviewScreen)
    return app.screen


async def at(pilot: Pilot[int], text: str) -> ReviewScreen:
    """Put the cursor on the first region with this text."""
    screen = review(pilot.app)
    screen.go_to(next(r for r in screen.loaded.regions if text in screen.loaded.port_text(r)))
    await settle(pilot)
    return screen


# ---------------------------------------------------------------- what is seen


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_ports_are_a_table(folder: Path, size: tuple[int, int]):
    """Two ports, a row each: regions, holes, four checks by word, how many regions are accepted. scale.py was verified
    and numerics is FAIL; other.py was not, and has dashes. Keys at the bottom."""
    with_verdicts(folder / "out" / "scale.py")
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        same_as_kept(app, f"ports-{size[0]}x{size[1]}")

    drive(app, steps, size)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_review_is_side_by_side(port: Path, size: tuple[int, int]):
    """CUDA on the left, CuTeDSL on the right. The cursor (>) is on the guard of both, the region has a bar,
    a sign before each region says whether it is decided. Below: the region, its author, its checks."""
    with_verdicts(port)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        same_as_kept(app, f"review-{size[0]}x{size[1]}")

    drive(app, steps, size)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_numerics_have_a_histogram_and_the_first_divergence(port: Path, size: tuple[int, int]):
    """A tab for each check, its sign before its name. Numerics: the verdict, elements by distance as bars with counts,
    the line at which original and port first part, the message with its place."""
    with_verdicts(port)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d", "right")
        assert isinstance(app.screen, EvidenceScreen)
        same_as_kept(app, f"numerics-{size[0]}x{size[1]}")

    drive(app, steps, size)


def test_every_check_has_its_evidence(port: Path):
    """Messages of the compiler say in which region they are; resources and counts stand side by side."""
    with_verdicts(port)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d")
        assert "PRT811 a warning of the compiler" in screen_text(app) and "in scale_kernel/" in screen_text(app)
        await press(pilot, "right", "right")
        assert "registers" in screen_text(app) and "more" in screen_text(app)
        await press(pilot, "right")
        assert "looked for: shared-race" in screen_text(app)
        await press(pilot, "right")
        assert "say nothing about time" in screen_text(app) and "1100" in screen_text(app)
        await press(pilot, "right", "left", "escape")
        review(app)

    drive(app, steps)


def test_without_verdicts_the_evidence_says_what_to_do(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d")
        assert "compile was not run: press v" in screen_text(app)

    drive(app, steps)


def test_footer_help_and_palette_come_from_one_table(folder: Path):
    """The help page lists the keys of the screen it was asked for on; the palette finds them by name."""
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "question_mark")
        text = screen_text(app)
        assert all(k.about[:30] in text for k in KEYS if k.where in ("ports", "app"))
        await press(pilot, "escape", "ctrl+p", *"sort")
        await wait_for(pilot, lambda: "sort by the next column" in screen_text(app))
        await press(pilot, "down", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, PortsScreen) and app.screen.order == 1)

    drive(app, steps)


# ---------------------------------------------------------------- ports


def test_open_filter_and_sort(folder: Path):
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        table = app.screen.query_one(DataTable)
        await press(pilot, "slash")
        app.screen.query_one(Input).value = "scale"
        await press(pilot, "enter")
        assert table.row_count == 1 and 'filter "scale"' in screen_text(app)
        await press(pilot, "s", "s")
        assert "holes ▼" in screen_text(app)
        await press(pilot, "enter")
        assert review(app).path.name == "scale.py"
        await press(pilot, "escape")
        assert isinstance(app.screen, PortsScreen)

    drive(app, steps)


def test_verifying_shows_progress_and_the_app_stays_usable(folder: Path):
    gate = asyncio.Event()

    async def verifier(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        say(f"{port.stem}: compile ok 0.09 s")
        await gate.wait()
        with_verdicts(port)
        return False, "numerics FAIL"

    app = app_of("out/scale.py", "out/other.py", verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "v", "V")
        assert "compile ok" in screen_text(app) and "waiting" in screen_text(app)
        await press(pilot, "enter", "n", "escape")  # meanwhile
        gate.set()
        await wait_for(pilot, lambda: not app.running)
        await settle(pilot)
        assert "FAIL" in screen_text(app)
        assert any("not verified" in n.title for n in app._notifications)

    drive(app, steps)


def test_a_verification_that_breaks_is_a_message(port: Path):
    async def verifier(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        raise OSError("no process left")

    app = app_of(port, verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "v")
        await wait_for(pilot, lambda: not app.running)
        assert any("no process left" in n.message for n in app._notifications)
        await press(pilot, "a")
        assert load(port).accepted == 1

    drive(app, steps)


# ---------------------------------------------------------------- deciding


def test_accept_goes_on_to_the_next_open_region(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        names = [r.name for r in load(port).regions]
        for _ in names:
            await press(pilot, "a")
        assert load(port).complete and "every region is accepted" in [n.message for n in app._notifications][-1]
        await at(pilot, "if i < n")
        await press(pilot, "u")
        assert not load(port).complete

    drive(app, steps)


def test_moving_between_open_regions(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = review(app)
        first = screen.here
        await press(pilot, "n")
        second = screen.here
        await press(pilot, "p")
        assert screen.here == first != second
        await press(pilot, "n", "a", "p")
        assert screen.here == first

    drive(app, steps)


def test_reject_asks_why_and_leaves_a_hole(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "r", *"guard", "enter")
        assert "rejected by Ada: guard" in port.read_text()
        assert not app.running, "a port with holes is not verified"
        screen = await at(pilot, "runtime.hole")
        assert "hole 1, PRT963" in screen_text(app)
        await press(pilot, "a")
        assert any("nothing is translated there" in n.message for n in app._notifications)
        await press(pilot, "x")
        assert "a person rejected this rewrite" in screen_text(app)
        assert screen.path == port

    drive(app, steps)


def test_cancelled_questions_change_nothing(port: Path):
    app = app_of(port)
    before = (port.read_text(), record_path(port).read_text())

    async def steps(pilot: Pilot[int]) -> None:
        for key in ("r", "c", "slash", "i"):
            await press(pilot, key, "escape")
        review(app)

    drive(app, steps)
    assert (port.read_text(), record_path(port).read_text()) == before


def test_comment(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "c", *"why", "enter")
        assert "open: Ada" in screen_text(app) and ": why" in screen_text(app)

    drive(app, steps)


def test_edit_in_place_is_verified_and_stale(port: Path):
    verified: list[str] = []

    async def verifier(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        verified.append(port.read_text())
        return True, "every check passed"

    app = app_of(port, verifier=verifier)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        await press(pilot, "a")
        await at(pilot, "if i < n")
        await press(pilot, "i")
        area = app.screen.query_one(TextArea)
        area.text = area.text.replace("i < n", "i <= n")
        await press(pilot, "ctrl+s")
        assert "i <= n" in port.read_text()
        await wait_for(pilot, lambda: len(verified) == 1)
        await at(pilot, "if i <= n")
        assert screen.loaded.state(screen.here) == "stale" and "by person" in screen_text(app)

    drive(app, steps)


def test_what_was_typed_survives_the_terminal(port: Path):
    """The app is gone in the middle of an edit; the next one goes on with what was typed, and decisions are there."""
    app = app_of(port)

    async def type_and_vanish(pilot: Pilot[int]) -> None:
        await press(pilot, "a")
        await at(pilot, "if i < n")
        await press(pilot, "i")
        app.screen.query_one(TextArea).text = "    if i < n  # half an"
        await settle(pilot)

    drive(app, type_and_vanish)
    again = app_of(port)

    async def go_on(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        assert screen.loaded.accepted == 1
        await press(pilot, "i")
        assert isinstance(again.screen, dialogs.EditRegion)
        assert again.screen.query_one(TextArea).text == "    if i < n  # half an"
        await press(pilot, "ctrl+s")
        assert any("not Python" in n.message for n in again._notifications)
        assert read_draft(port, screen.here.name) == "    if i < n  # half an"
        await press(pilot, "i", "ctrl+r", "ctrl+s")
        assert read_draft(port, screen.here.name) is None

    drive(again, go_on)


def test_the_editor_gets_the_line_and_the_port_is_verified(port: Path, monkeypatch: pytest.MonkeyPatch, folder: Path):
    script = folder / "editor.sh"
    script.write_text('#!/bin/sh\necho "$@" > seen.txt\nsed -i "s/i < n/i <= n/" "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.delenv("VISUAL", raising=False)
    verified: list[Path] = []

    async def verifier(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        verified.append(port)
        return True, "every check passed"

    app = app_of(port, verifier=verifier)
    monkeypatch.setattr(app, "suspend", contextlib.nullcontext)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        line = screen.port_pane.cursor
        await press(pilot, "e")
        assert (folder / "seen.txt").read_text().split() == [f"+{line}", str(port)]
        await wait_for(pilot, lambda: verified == [port])
        assert "i <= n" in screen_text(app)

    drive(app, steps)


def test_a_terminal_that_cannot_be_handed_over_is_said(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "e")
        assert any("edit in place" in n.message for n in app._notifications)

    drive(app, steps)


# ---------------------------------------------------------------- reading


def test_the_panes_scroll_together(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        cuda, ported = screen.cuda_pane, screen.port_pane
        assert "if (i < n)" in cuda.plain[cuda.cursor - 1]
        await press(pilot, "down")
        assert "twice(in[i])" in cuda.plain[cuda.cursor - 1] and "twice(" in ported.plain[ported.cursor - 1]
        await press(pilot, "tab", "g", "j", "j")
        assert cuda.has_focus and "v * 2.0f" in cuda.plain[cuda.cursor - 1]
        assert screen.here.function == "twice"

    drive(app, steps)


def test_search_wraps_and_says_when_there_is_nothing(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        pane = review(app).port_pane
        await press(pilot, "slash", *"factor", "enter")
        first = pane.cursor
        assert "factor" in pane.plain[first - 1]
        await press(pilot, "m")
        assert pane.cursor > first and "factor" in pane.plain[pane.cursor - 1]
        await press(pilot, "slash")
        app.screen.query_one(Input).value = "nowhere at all"
        await press(pilot, "enter")
        assert any("is not there" in n.message for n in app._notifications)

    drive(app, steps)


def test_why_goes_from_cuda_to_ptx(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "w")
        page = app.screen
        assert isinstance(page, dialogs.Page)
        for _ in range(600):
            if "SASS" in page.text or "PTX" in page.text.split("\n\n")[-1]:
                break
            await pilot.pause(0.1)
        assert "CUDA\n    9   if (i < n) {" in page.text and "IR (first instance)\nif (" in page.text
        assert "rewrite\nby translator" in page.text and "mul" in page.text and "SASS\n" in page.text

    drive(app, steps)


def test_three_texts_when_the_cuda_changed(folder: Path, port: Path):
    """The old CUDA with - before what is gone, the new one with + before what is new, the port with ~ there."""
    (folder / "scale.cu").write_text("// upstream\n" + KERNEL.replace("v * 2.0f", "v + v"))
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        assert "PRT958" in screen_text(app)
        await press(pilot, "3")
        assert isinstance(app.screen, ThreeWayScreen)
        same_as_kept(app, "three-way-120x40")

    drive(app, steps)


def test_three_texts_need_a_changed_source(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3")
        assert any("only two texts" in n.message for n in app._notifications)

    drive(app, steps)


def test_no_agent_run(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t")
        assert "no agent run is recorded for this port" in screen_text(app)

    drive(app, steps)


def test_agent_runs_are_a_tree_with_cost_and_differences(folder: Path, port: Path):
    """A run with its cost, its attempts below it, what each did; d twice shows the difference of two."""
    usage = {"input": 1000, "output": 200, "cache_read": 0, "cache_write": 0}
    code = {"region": "body:scale_kernel", "code": "pass"}
    events = [
        {"event": "start", "kernel": "scale_kernel", "model": "claude-sonnet-4-5"},
        {"event": "reply", "reply": {"usage": usage}},
        {"event": "tool", "name": "replace_region", "input": code, "answer": "replaced", "error": False},
        {"event": "rolled back", "attempt": 1, "regions": ["body:scale_kernel"]},
        {"event": "kept", "attempt": 2, "regions": ["hole-1"], "check": "compile", "text": "a\nb\n"},
        {"event": "kept", "attempt": 3, "regions": ["hole-1"], "check": "numerics", "text": "a\nc\n"},
        {"event": "end", "state": "verified", "ended": "done", "message": "every check passes"},
    ]
    path = folder / "out" / ".porter" / "runs" / "one" / "events.jsonl"
    path.parent.mkdir(parents=True)
    lines = [json.dumps({"n": n, "t": n * 1.5, **event}) for n, event in enumerate(events)]
    path.write_text("\n".join(lines) + '\n{"torn')
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t")
        assert isinstance(app.screen, AttemptsScreen)
        tree = app.screen.query_one(Tree)
        labels = [str(n.label) for n in tree.root.children[0].children]
        assert "every check passes" in str(tree.root.children[0].label) and "1,000 input" in str(
            tree.root.children[0].label
        )
        assert labels[0].startswith("✗ attempt 1 rolled back") and "for numerics" in labels[2]
        await press(pilot, "down", "down")
        assert "body:scale_kernel:" in screen_text(app)
        for child in (1, 2):
            tree.move_cursor(tree.root.children[0].children[child])
            await press(pilot, "d")
        assert "-b" in screen_text(app) and "+c" in screen_text(app)

    drive(app, steps)


# ---------------------------------------------------------------- what may be wrong


def test_a_broken_record_is_shown_with_what_to_do(folder: Path, port: Path):
    record_path(port).write_text("{")
    app = app_of("out/scale.py", "out/other.py")

    async def steps(pilot: Pilot[int]) -> None:
        assert "! PRT955" in screen_text(app)
        await press(pilot, "down", "enter")
        assert "cannot read the provenance" in screen_text(app)
        await press(pilot, "a")
        assert record_path(port).read_text() == "{" and any(n.title == "PRT955" for n in app._notifications)

    drive(app, steps)


def test_changes_by_others_are_seen_and_decided_on_anew(folder: Path, port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        port.write_text(port.read_text().replace("i < n", "n > i"))
        await press(pilot, "a")
        assert any(n.title == "PRT964" for n in app._notifications) and load(port).accepted == 0
        assert "n > i" in screen_text(app)
        (folder / "scale.cu").unlink()
        app.look_at_files()
        await settle(pilot)
        assert "PRT961" in screen_text(app)
        await press(pilot, "a")
        assert load(port).accepted == 0

    drive(app, steps)


def test_a_record_that_is_removed_while_it_is_open(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        record_path(port).unlink()
        app.look_at_files()
        await settle(pilot)
        assert "PRT955" in screen_text(app)
        await press(pilot, "a", "n", "d", "escape", "t")

    drive(app, steps)


def test_resize(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        for width, height in ((80, 24), (40, 12), (200, 60)):
            await pilot.resize_terminal(width, height)
            await settle(pilot)
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


def test_two_thousand_lines_scroll_without_lag(folder: Path, port: Path):
    """Milliseconds of CPU time a key, in a port and a source of 2,000 lines each: 50 are wanted, 150 fail."""
    cuda = (
        "__global__ void scale_kernel(float* x) {\n" + "".join(f"  x[{n}] = {n} * 2.0f;\n" for n in range(2000)) + "}\n"
    )
    text = "@cute.kernel\ndef scale_kernel(x):\n" + "".join(f"    x[{n}] = Float32({n}) * 2.0\n" for n in range(2000))
    (folder / "scale.cu").write_text(cuda)
    port.write_text(text)
    rows = tuple(LineMapEntry(n + 3, Span("../scale.cu", n + 2, 3, n + 2, 20)) for n in range(2000))
    sums = {"source_sha256": sha256_text(cuda), "emitted_sha256": sha256_text(text), "line_hashes": line_hashes(text)}
    update_record(port, lambda r: replace(r, line_map=rows, **sums))
    app = app_of(port)
    taken: list[float] = []

    async def steps(pilot: Pilot[int]) -> None:
        for key in ("down", "pagedown", "down", "n", "end", "up", "pageup", "home") * 4:
            start = time.process_time()
            await pilot.press(key)
            taken.append(1000 * (time.process_time() - start))
        assert isinstance(review(app).port_pane, CodePane)

    drive(app, steps)
    middle = statistics.median(taken)
    print(f"{middle:.1f} ms a key, at most {max(taken):.1f}")
    if path := os.environ.get("PORTER_KEY_TIMES"):
        Path(path).write_text(json.dumps({"median_ms": round(middle, 1), "max_ms": round(max(taken), 1)}))
    assert middle < 150
