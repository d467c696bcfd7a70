"""What is laid over a screen: a line to type, a page to read, a region to edit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static, TextArea

from porter.model import PorterError
from porter.review.port.decisions import drop_draft, read_draft, save_draft
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort
from porter.review.screens.bindings import bindings


class LineDialog(ModalScreen[str | None]):
    """Asks for a line of text; None when the person changed their mind."""

    BINDINGS = bindings("line")

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self.question, self.value = question, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self.question)
            line = Input(self.value)
            line.cursor_blink = False  # over ssh a blinking cursor is traffic
            yield line
            yield Label("enter: done   escape: cancel", classes="faint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Page(ModalScreen[None]):
    """Text to read, which may grow while it is shown, or a table of two columns."""

    BINDINGS = bindings("page")

    def __init__(self, title: str, text: str = "", table: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.heading, self.text, self.table = title, text, table

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="page") as page:
            page.border_title = self.heading
            page.border_subtitle = "escape: close"
            yield Static(self.columns() if self.table else Text(self.text), id="text")

    def columns(self) -> Table:
        grid = Table.grid(padding=(0, 2))
        for left, right in self.table:
            grid.add_row(Text(left, "bold"), Text(right))
        return grid

    def add(self, text: str) -> None:
        """Append a paragraph."""
        self.text = f"{self.text}\n\n{text}".strip("\n")
        if self.is_mounted:
            self.query_one("#text", Static).update(Text(self.text))


class EditRegion(ModalScreen[str | None]):
    """The lines of a region to edit. What is typed is on disk until it is saved: no terminal takes it along."""

    BINDINGS = bindings("edit")

    def __init__(self, port: ReviewedPort, region: Region) -> None:
        super().__init__()
        self.port, self.part = port, region
        self.kept = read_draft(port.path, region.name)

    def compose(self) -> ComposeResult:
        with Vertical(classes="page") as page:
            page.border_title = f"edit {self.part.name}"
            page.border_subtitle = "ctrl+s: save   escape: leave, and keep it   ctrl+r: start over"
            if self.kept is not None:
                yield Label("continues an edit that was not finished")
            text = self.port.port_text(self.part) if self.kept is None else self.kept
            area = TextArea.code_editor(text, show_line_numbers=True, soft_wrap=False, tab_behavior="indent")
            area.cursor_blink = False
            yield area

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text != self.port.port_text(self.part):
            try:
                save_draft(self.port.path, self.part.name, event.text_area.text)
            except PorterError as error:
                self.notify(str(error), severity="error", markup=False)

    def action_save(self) -> None:
        self.dismiss(self.query_one(TextArea).text)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_reset(self) -> None:
        drop_draft(self.port.path)
        self.query_one(TextArea).load_text(self.port.port_text(self.part))
