"""What a person sees on the screen of an app, as text, and pictures of it kept in tests/review/screens/."""

from __future__ import annotations

import os
from pathlib import Path

from textual.app import App

FOLDER = Path(__file__).with_name("screens")


def screen_text(app: App[int]) -> str:
    """The characters of the screen, line by line, without colours."""
    width, height = app.size
    console = app.console
    lines = app.screen._compositor.render_strips(app.size)
    rows = ["".join(segment.text for segment in strip) for strip in lines]
    assert console is not None and len(rows) == height and width
    return "\n".join(row.rstrip() for row in rows) + "\n"


def same_as_kept(app: App[int], name: str) -> None:
    """Compare the screen with screens/NAME.txt; PORTER_UPDATE_SCREENS=1 keeps it as it is now."""
    path = FOLDER / f"{name}.txt"
    text = screen_text(app)
    if os.environ.get("PORTER_UPDATE_SCREENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
