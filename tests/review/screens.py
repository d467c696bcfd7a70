"""What a person sees on the screen of an app: as text, and as pictures (SVG) that are kept in tests/review/screens/.

PORTER_UPDATE_SCREENS=1 keeps the pictures as they are now.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from html import unescape
from importlib.metadata import version
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

FOLDER = Path(__file__).with_name("screens")
CELL, ROW = 12.2, 24.4  # width and height of a character in the pictures


def screen_text(app: App[int]) -> str:
    """The characters of the screen, line by line, without colours."""
    lines = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines) + "\n"


def picture(app: App[int]) -> str:
    """The screen as an SVG that depends on nothing else: no fonts from elsewhere, no numbers that change."""
    svg = app.export_screenshot(title="porter review", simplify=True)
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(r"terminal-\d+", "terminal", svg)


def cells(svg: str) -> dict[tuple[int, int], tuple[str, str]]:
    """(row, column) -> the text that starts there and its style, as a picture has them."""
    styles = dict(re.findall(r"\.terminal-(r\d+) \{ (.*?) \}", svg))
    found = {}
    for name, x, y, text in re.findall(
        r'<text class="terminal-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', svg
    ):
        found[round(float(y) / ROW), round(float(x) / CELL)] = (unescape(text).replace("\xa0", " "), styles[name])
    for colour, x, y, width in re.findall(r'<rect fill="(.*?)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', svg):
        place = (round(float(y) / ROW) + 1000, round(float(x) / CELL))  # grounds, apart from the characters
        found[place] = ("", f"{colour} {width}")
    return found


def text_of(svg: str) -> str:
    """The characters of a picture, line by line."""
    lines: dict[int, str] = {}
    for (row, column), (text, _) in sorted(cells(svg).items()):
        if row < 1000:
            lines[row] = lines.get(row, "").ljust(column) + text
    return "\n".join(lines.get(row, "").rstrip() for row in range(1, max(lines, default=0) + 1)) + "\n"


def difference(kept: str, now: str) -> str:
    """How two pictures differ, for a person: the lines of text, else where colours or weights do; "" for equal ones."""
    if kept == now:
        return ""
    rows = list(difflib.unified_diff(text_of(kept).split("\n"), text_of(now).split("\n"), "kept", "now", lineterm=""))
    if rows:
        return "\n".join(rows)
    was, is_ = cells(kept), cells(now)
    places = sorted(p for p in {**was, **is_} if was.get(p) != is_.get(p))
    return "the same characters in other colours:\n" + "\n".join(
        f"row {row % 1000}, column {column}: {was.get((row, column))} is now {is_.get((row, column))}"
        for row, column in places[:20]
    )


async def same_as_kept(pilot: Pilot[int], name: str) -> None:
    """The screen becomes screens/NAME.svg within some seconds. Another picture is left in a folder that the failure
    names."""
    path = FOLDER / f"{name}.svg"
    if os.environ.get("PORTER_UPDATE_SCREENS"):
        await pilot.pause(0.5)
        FOLDER.mkdir(exist_ok=True)
        path.write_text(picture(pilot.app), encoding="utf-8")
    assert path.is_file(), f"there is no {path.name}: PORTER_UPDATE_SCREENS=1 makes it"
    kept = path.read_text(encoding="utf-8")
    for _ in range(50):
        now = picture(pilot.app)
        if now == kept:
            return
        await pilot.pause(0.1)
    folder = Path(tempfile.mkdtemp(prefix="porter-screens-"))
    (folder / path.name).write_text(now, encoding="utf-8")
    where = (
        f"{path.name} is another one now (see {folder / path.name}; Textual {version('textual')}, kept with the one in"
    )
    where += " constraints.txt)"
    raise AssertionError(f"{where}:\n{difference(kept, now)}")
