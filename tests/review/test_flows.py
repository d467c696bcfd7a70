"""Every flow of the app, by keys: ports, deciding, reading."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("textual")
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, TabbedContent, TextArea

from porter.provenance.record import record_path
from porter.review.port.actions import accept
from porter.review.port.reviewed_port import load
from porter.review.screens import dialogs
from porter.review.screens.bindings import KEYS
from porter.review.screens.evidence import EvidenceScreen
from porter.review.screens.ports import PortsScreen
from porter.review.screens.three_way import ThreeWayScreen

from .agent_run import with_run
from .conftest import KERNEL, with_verdicts
from .drive import SMALL, app_of, at, drive, press, review, said, wait_for
from .gpu_rows import with_recorded
from .screens import screen_text

# ---------------------------------------------------------------- ports


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
        await wait_for(pilot, lambda: isinstance(app.screen, PortsScreen) and app.screen.sort_column == 1)

    drive(app, steps)


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


def test_the_table_sorts_by_every_column_and_forgets_a_filter(folder: Path):
    """Numbers by value, names by letter; a filter that nothing fits leaves an empty table, and an empty one ends it."""
    with_verdicts(folder / "out" / "scale.py")
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        table = app.screen.query_one(DataTable)
        for column in ("regions", "holes", "compile", "numerics", "sanitizer", "performance", "reviewed", "port"):
            await press(pilot, "s")
            assert f"{column} ▼" in screen_text(app)
            assert str(table.get_row_at(0)[0]) == "other", "dashes come before words, and names by letter"
        await press(pilot, "slash", *"fail", "enter")
        assert table.row_count == 1 and str(table.get_row_at(0)[0]) == "scale"
        await press(pilot, "slash", "ctrl+u", *"zzz", "enter")
        assert table.row_count == 0 and "0 of 2 ports" in screen_text(app)
        await press(pilot, "enter", "v", "slash", "ctrl+u", "enter")
        assert table.row_count == 2 and isinstance(app.screen, PortsScreen)

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
        await pilot.pause()
        assert "FAIL" in screen_text(app)
        assert any("not verified" in m for m in said(app))

    drive(app, steps)


# ---------------------------------------------------------------- deciding


def test_accept_goes_on_to_the_next_open_region(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        names = [r.name for r in load(port).regions]
        for _ in names:
            await press(pilot, "a")
        assert load(port).complete and "every region is accepted" in said(app)[-1]
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
        assert any("nothing is translated there" in m for m in said(app))
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
        assert "comment by Ada, 2026-01-05T09:00:00Z: why" in screen_text(app)

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
        assert screen.port.state(screen.here) == "stale" and "by person" in screen_text(app)

    drive(app, steps)


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


def test_edit_in_place_starts_over(port: Path):
    """What was typed is gone with ctrl+r; a text that is not changed is not verified; leaving keeps what was typed."""
    app = app_of(port)
    before = port.read_text()

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "i", *"junk", "ctrl+r")
        assert "junk" not in app.screen.query_one(TextArea).text
        await press(pilot, "ctrl+s")
        assert port.read_text() == before and not app.running
        await press(pilot, "i", "end", "tab", "number_sign", "escape", "i")
        assert "continues an edit" in screen_text(app)
        assert "#" in app.screen.query_one(TextArea).text.splitlines()[0]

    drive(app, steps)


def test_a_decision_on_changed_text_is_stale_on_the_screen(folder: Path, port: Path):
    """~ before a region whose CUDA has changed since, who decided, that it was about another text; `n` goes to it."""
    for name in [r.name for r in load(port).regions]:
        accept(load(port), next(r for r in load(port).regions if r.name == name))
    (folder / "scale.cu").write_text("\n" + KERNEL.replace("* factor", "* factor * factor"))
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "home", "n", "n")
        text = screen_text(app)
        assert "~ scale_kernel/3  port 29-30 <- CUDA 10, 12  statements, stale" in text
        assert "accepted about another text by Ada" in text and "8 of 10 regions accepted" in text
        assert "PRT958" in text
        await press(pilot, "a", "a")
        assert load(port).complete

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
        assert any("was not found" in m for m in said(app))

    drive(app, steps)


def test_search_in_the_cuda(port: Path):
    """The pane with the cursor is searched, in any case of letters; the other pane follows."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = review(app)
        await press(pilot, "tab", "slash", *"FLOAT", "space", "w", "enter")
        assert screen.cuda_pane.cursor == 3 and "w = v * 2.0" in screen.port_pane.plain[screen.port_pane.cursor - 1]

    drive(app, steps)


def test_one_pane_and_all_that_is_known(port: Path):
    """`z` gives a pane the whole width, `tab` the other one; `enter` shows what does not fit below the panes."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "if i < n")
        assert "enter: all of it" in screen_text(app)
        await press(pilot, "z")
        assert not screen.cuda_pane.display and "out[i] = twice(lib.ldg(in_ + i)) * factor" in screen_text(app)
        await press(pilot, "tab")
        assert screen.cuda_pane.display and not screen.port_pane.display and screen.cuda_pane.has_focus
        await press(pilot, "n")
        assert screen.port_pane.display and not screen.cuda_pane.display and screen.port_pane.has_focus
        await press(pilot, "z")
        assert screen.port_pane.display and screen.cuda_pane.display
        await at(pilot, "if i < n")
        await press(pilot, "enter")
        text = screen_text(app)
        assert "pattern readonly_load" in text and "readonly_load assumes" in text and "lib.ldg: " in text

    drive(app, steps, SMALL)


def test_why_goes_from_cuda_to_ptx(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "w")
        page = app.screen
        assert isinstance(page, dialogs.Page)
        for _ in range(600):
            if "\n\nSASS" in page.text:
                break
            await pilot.pause(0.1)
        assert "CUDA\n    9   if (i < n) {" in page.text and "IR (first instance)\nif (" in page.text
        assert "rewrite\nby translator" in page.text and "mul" in page.text and "\n\nSASS" in page.text

    drive(app, steps)


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


def test_long_evidence_scrolls_with_the_keys_and_every_check_has_a_tab(port: Path):
    """At 80x24 the last rows of the performance table are below the edge: `end` shows them. Checks beyond the usual
    ones (honesty, names, determinism) have tabs too."""
    with_recorded(port, "qk_norm")
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d", "p", "p", "p", "p")
        assert isinstance(app.screen, EvidenceScreen)
        assert app.screen.query_one(TabbedContent).active == "performance"
        assert "11.10      11.10" not in screen_text(app)
        await press(pilot, "end")
        text = screen_text(app)
        assert "between a producer and a consumer" in text and "11.10      11.10   1.001=   ±0.2%" in text
        await press(pilot, "n")
        assert "a launched CuTeDSL kernel" in screen_text(app)
        await press(pilot, "n", "n", "n")
        assert app.screen.query_one(TabbedContent).active == "compile"

    drive(app, steps, SMALL)


def test_evidence_follows_a_verification(port: Path):
    """Open before anything is known; afterwards the tabs are those of the checks that were run, and the one that was
    read is still shown."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d", "n")
        assert "numerics was not run" in screen_text(app)
        with_recorded(port, "qk_norm")
        app.look_at_files()
        await wait_for(pilot, lambda: "✓ determinism" in screen_text(app))
        await wait_for(pilot, lambda: "bit-equal" in screen_text(app))
        await press(pilot, "n")
        assert "registers" in screen_text(app)

    drive(app, steps)


def test_without_verdicts_the_evidence_says_what_to_do(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d")
        assert "compile was not run: press v" in screen_text(app)

    drive(app, steps)


def test_three_texts_move_together(folder: Path, port: Path):
    """Without git: the record has the old text. The cursor of each text takes those of the other two along."""
    (folder / "scale.cu").write_text("// upstream\n" + KERNEL.replace("v * 2.0f", "v + v"))
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3")
        screen = app.screen
        assert isinstance(screen, ThreeWayScreen)
        old, new, ported = screen.panes
        assert new.has_focus and new.cursor == 1
        await press(pilot, "tab", "tab")  # from the new text to the port, to the old text
        assert old.has_focus
        await press(pilot, "home", *["down"] * 8)
        assert (old.cursor, new.cursor) == (9, 10) and "if i < n" in ported.plain[ported.cursor - 1]
        await press(pilot, "tab", "tab", "up")
        assert ported.has_focus and "thread" in old.plain[old.cursor - 1] and new.cursor == old.cursor + 1
        await press(pilot, "escape")
        review(app)

    drive(app, steps)


def test_three_texts_need_a_changed_source(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3")
        assert any("only two texts" in m for m in said(app))

    drive(app, steps)


def test_no_agent_run(port: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t")
        assert "no agent run is recorded for this port" in screen_text(app)

    drive(app, steps)


def test_agent_runs_are_a_tree_with_cost(port: Path):
    """The run under the cursor with model, cost and tokens; an attempt with its edit and what each tool answered."""
    with_run(port.parent)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t")
        text = screen_text(app)
        assert "verified (done): every check passes" in text and "3 attempts, 2 kept" in text
        assert "cost $0.0" in text and "tokens 3,000 input, 600 output" in text
        await press(pilot, "down")
        assert "attempt 1, rolled back" in screen_text(app) and "return v" in screen_text(app)
        await press(pilot, "space")
        assert "replace_region: replaced; 0 holes open" in screen_text(app)
        await press(pilot, "tab")
        assert app.focused is app.screen.query_one(VerticalScroll)
        await press(pilot, "tab", "escape")
        review(app)

    drive(app, steps)


def test_any_two_attempts_are_compared(port: Path):
    """Kept ones by their text, with one that was rolled back by what each wrote into the region."""
    with_run(port.parent)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t", "d")
        assert "put the cursor on an attempt" in said(app)
        await press(pilot, "down", "down", "d", "down", "d")
        assert "-w = v * 2.0" in screen_text(app) and "+return v + v" in screen_text(app)
        await press(pilot, "d", "up", "up", "d")
        text = screen_text(app)
        assert "--- hole-1, attempt 3, kept" in text and "+++ hole-1, attempt 1, rolled back" in text
        assert "-return v + v" in text and "+return v" in text

    drive(app, steps)
