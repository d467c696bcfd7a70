"""Pictures of every screen in a large and a small terminal. The docstrings say what a person sees in them.

A screen that looks different on purpose: PORTER_UPDATE_SCREENS=1, then look at the pictures in screens/.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("textual")
from textual.pilot import Pilot

from porter.review.port.actions import accept
from porter.review.port.reviewed_port import load

from .agent_run import with_run
from .conftest import KERNEL, with_verdicts
from .drive import LARGE, SMALL, app_of, at, drive, press
from .gpu_rows import with_recorded
from .screens import cells, difference, picture, same_as_kept, screen_text, text_of

sizes = pytest.mark.parametrize("size", [LARGE, SMALL], ids=["120x40", "80x24"])


def named(name: str, size: tuple[int, int]) -> str:
    return f"{name}-{size[0]}x{size[1]}"


@sizes
def test_ports(folder: Path, size: tuple[int, int]):
    """A table of two ports, the cursor on the first. `other.py` is not verified: dashes, 0 of its regions accepted.
    `scale.py` was: compile and sanitizer PASS, numerics FAIL, performance SKIP. The column `port` sorts (▼). Above, how
    many ports there are and are reviewed in full; below, the keys."""
    with_verdicts(folder / "out" / "scale.py")
    app = app_of("out")

    async def steps(pilot: Pilot[int]) -> None:
        await same_as_kept(pilot, named("ports", size))

    drive(app, steps, size)


@sizes
def test_review(port: Path, size: tuple[int, int]):
    """CUDA on the left, CuTeDSL on the right, in the colours of their languages. The right pane has a heavy border: its
    cursor (`>`, a coloured line) is on `if i < n`, and the left one's on the `if` that it came from. Both lines of the
    region are in sight, with a bar; `✓` before the region that is accepted, `·` before open ones, on both sides. Below:
    the region's place, its author, who accepted nothing yet, what compile and numerics say about it, the library
    function that it calls; in the border how many regions are accepted, and that numerics failed."""
    with_verdicts(port)
    loaded = load(port)
    accept(loaded, next(r for r in loaded.regions if "w = v" in loaded.port_text(r)))
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await same_as_kept(pilot, named("review", size))

    drive(app, steps, size)


@sizes
def test_numerics(port: Path, size: tuple[int, int]):
    """A tab a check, its sign before its name: `✓ compile ✗ numerics ✓ resources ✓ sanitizer – performance`; numerics
    is underlined. The verdict, the seed; elements by distance as bars with counts: 94 equal, 3 at 1 ulp, 4 at 2 to 3;
    the line at which port and original first part; the message with the CUDA line and the region of the port."""
    with_verdicts(port)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d", "right")
        await same_as_kept(pilot, named("numerics", size))

    drive(app, steps, size)


@sizes
def test_performance(port: Path, size: tuple[int, int]):
    """What was measured of qk_norm on an H200: in each table a row a size with microseconds of original and port, their
    ratio, the spread (`=` where the ratio is within it), the floor. The cold table is the first; at 80x24 the others
    are below the edge."""
    with_recorded(port, "qk_norm")
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "d", "right", "right", "right", "right")
        await same_as_kept(pilot, named("performance", size))

    drive(app, steps, size)


@sizes
def test_attempts(port: Path, size: tuple[int, int]):
    """The agent's runs as a tree: the run with its model, three attempts, cost and tokens; attempt 1 rolled back (✗),
    2 and 3 kept (✓) with the check that each mended, and the tools that each called. Beside it (below it in a narrow
    terminal) the difference of attempts 2 and 3: lines with - and +."""
    with_run(port.parent)
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "t", "down", "down", "d", "down", "d")
        await same_as_kept(pilot, named("attempts", size))

    drive(app, steps, size)


@sizes
def test_three_way(folder: Path, port: Path, size: tuple[int, int]):
    """Three texts: the CUDA as ported with - before the line that is gone, the CUDA now with + before new lines, the
    port with ~ before the line that came from it. The three cursors are on that line. In a narrow terminal the port is
    below the other two."""
    (folder / "scale.cu").write_text("// upstream\n" + KERNEL.replace("v * 2.0f", "v + v"))
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "down", "down", "down")
        await same_as_kept(pilot, named("three-way", size))

    drive(app, steps, size)


@sizes
def test_edit_in_place(port: Path, size: tuple[int, int]):
    """The region's lines in an editor over the screen, with line numbers; its border has the region's name, and the
    keys that save, leave and start over."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "i")
        await same_as_kept(pilot, named("edit", size))

    drive(app, steps, size)


@sizes
def test_a_question(port: Path, size: tuple[int, int]):
    """`r` asks why in a box over the screen: a line to type in, `enter: done   escape: cancel`."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await at(pilot, "if i < n")
        await press(pilot, "r", *"guard")
        await same_as_kept(pilot, named("question", size))

    drive(app, steps, size)


@sizes
def test_keys(port: Path, size: tuple[int, int]):
    """`?`: every key of the screen with a sentence. In a small terminal it scrolls."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "question_mark")
        await same_as_kept(pilot, named("keys", size))

    drive(app, steps, size)


# ---------------------------------------------------------------- the pictures themselves


def test_a_picture_has_the_text_of_the_screen_and_nothing_of_the_machine(port: Path, tmp_path: Path):
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        svg = picture(app)
        assert text_of(svg).split() == screen_text(app).split()
        assert str(tmp_path) not in svg and "url(" not in re.sub(r"url\(#[\w-]+\)", "", svg)

    drive(app, steps, SMALL)


def test_a_difference_is_shown_as_text_or_as_colours(port: Path):
    app = app_of(port)
    kept: list[str] = []

    async def steps(pilot: Pilot[int]) -> None:
        kept.append(picture(app))
        await press(pilot, "a")
        kept.append(picture(app))

    drive(app, steps, SMALL)
    before, after = kept
    assert difference(before, before) == ""
    lines = difference(before, after).splitlines()
    assert any(line.startswith("-") and "0 of 10" in line for line in lines)
    assert any(line.startswith("+") and "1 of 10" in line for line in lines)
    style = next(style for _, style in cells(before).values() if style.startswith("fill: #"))
    other = difference(before, before.replace(style.split(";")[0], "fill: #123456"))
    assert "in other colours" in other and "#123456" in other
