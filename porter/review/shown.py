"""A screen that shows one or more ports of the app, and follows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from porter.review.loaded import Loaded

if TYPE_CHECKING:
    from porter.review.app import ReviewApp


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
    def loaded(self) -> Loaded:
        return self.review.ports[self.path]
