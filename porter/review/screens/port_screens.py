"""A screen that shows one or more ports of the app, and follows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.screen import Screen
from textual.widgets import Static

from porter.review.port.reviewed_port import ReviewedPort
from porter.review.screens.bindings import KEYS, Key, footer_key

if TYPE_CHECKING:
    from porter.review.app import ReviewApp


class KeyLine(Static):
    """The keys of a screen at its bottom, as the table declares them. (Textual's footer is built anew with every
    change of the focus, which costs more than the change.)"""

    auto_links = False

    def __init__(self, *where: str) -> None:
        rows = [k for k in KEYS if k.where in (*where, "app") and k.footer]
        labels = [f"[@click={scope(k)}.{k.action}][b $accent]{footer_key(k)}[/] {k.label}[/]" for k in rows]
        super().__init__("  ".join(labels), classes="keys")


def scope(key: Key) -> str:
    """Whose action a key runs, as Textual names it."""
    return "app" if key.where == "app" else "screen"


class PortScreen(Screen[None]):
    """`WHERE` names the parts of the table of keys that hold here."""

    WHERE: tuple[str, ...] = ()

    @property
    def review(self) -> ReviewApp:
        return cast("ReviewApp", self.app)

    def port_changed(self, path: Path) -> None:
        """A port, or its verification, is another one now."""

    def action_back(self) -> None:
        self.app.pop_screen()


class OnePortScreen(PortScreen):
    """A screen about one port."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    @property
    def port(self) -> ReviewedPort:
        return self.review.ports[self.path]
