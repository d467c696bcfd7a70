"""What is laid over a screen: a line to type, a page to read, a region to edit."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static, TextArea

from porter.model import PorterError
from porter.review.bindings import bindings
from porter.review.decisions import drop_draft, read_draft, save_draft
from porter.review.loaded import Loaded
from porter.review.regions import Region


class Line(ModalScreen[str | None]):
    """Asks for a line of text; None when the person changed their mind."""

    BINDINGS = bindings("line")

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self.question, self.value = question, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self.question)
            yield Input(self.value)
            yield Label("enter: done   escape: cancel", classes="faint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Page(ModalScreen[None]):
    """Text to read; it may grow while it is shown."""

    BINDINGS = bindings("page")

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__()
        self.heading, self.text = title, text

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="page") as page:
            page.border_title = self.heading
            page.border_subtitle = "escape: close"
            yield Static(Text(self.text), id="text")

    def add(self, text: str) -> None:
        """Append a paragraph."""
        self.text = f"{self.text}\n\n{text}".strip("\n")
        if self.is_mounted:
            self.query_one("#text", Static).update(Text(self.text))


class EditRegion(ModalScreen[str | None]):
    """The lines of a region to edit. What is typed is on disk until it is saved: no terminal takes it along."""

    BINDINGS = bindings("edit")

    def __init__(self, loaded: Loaded, region: Region) -> None:
        super().__init__()
        self.loaded, self.part = loaded, region
        self.kept = read_draft(loaded.path, region.name)

    def compose(self) -> ComposeResult:
        with Vertical(classes="page") as page:
            page.border_title = f"edit {self.part.name}"
            page.border_subtitle = "ctrl+s: save   escape: leave, what is typed is kept   ctrl+r: start over"
            if self.kept is not None:
                yield Label("continues an edit that was not finished")
            text = self.loaded.port_text(self.part) if self.kept is None else self.kept
            yield TextArea(text, show_line_numbers=True)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text != self.loaded.port_text(self.part):
            try:
                save_draft(self.loaded.path, self.part.name, event.text_area.text)
            except PorterError as error:
                self.notify(str(error), severity="error", markup=False)

    def action_save(self) -> None:
        self.dismiss(self.query_one(TextArea).text)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_reset(self) -> None:
        drop_draft(self.loaded.path)
        self.query_one(TextArea).load_text(self.loaded.port_text(self.part))
