"""A pane of source text with line numbers, a cursor and marked lines. Draws only the lines that are seen."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pygments.lexers import get_lexer_by_name
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from textual.geometry import Region as Rectangle
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from porter.review.bindings import bindings

CURSOR = Style(bold=True, reverse=True)
MARKED = Style(bold=True)
PLAIN = Style()
FAINT = Style(dim=True)
Row = list[tuple[str, Style]]  # pieces of a line, each of one style


def highlighted(text: str, language: str) -> list[Row]:
    """The lines of a text in the colours of its language ("python", "cuda")."""
    theme = Syntax.get_theme("ansi_dark")
    rows: list[Row] = [[]]
    for kind, value in get_lexer_by_name(language, stripnl=False, tabsize=4).get_tokens(text):
        style = theme.get_style_for_token(kind)
        for number, piece in enumerate(value.split("\n")):
            if number:
                rows.append([])
            if piece:
                rows[-1].append((piece, style))
    lines = text.splitlines()
    # Form feeds and the like end a line for Python and for the line map, but not for the lexer: then without colours.
    return (
        rows[: len(lines)]
        if text.count("\n") + (not text.endswith("\n")) == len(lines)
        else [[(x, PLAIN)] for x in lines]
    )


class CodePane(ScrollView, can_focus=True):
    """Lines from 1. `sign` gives the character before a line; marked lines have a bar there."""

    BINDINGS = bindings("pane")

    class Moved(Message):
        """The person moved the cursor of a pane."""

        def __init__(self, pane: CodePane) -> None:
            super().__init__()
            self.pane = pane

        @property
        def control(self) -> CodePane:
            return self.pane

    def __init__(self, name: str, **arguments: str) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.border_title = name
        self.rows: list[Row] = []
        self.plain: list[str] = []
        self.cursor = 1
        self.marked: Collection[int] = ()
        self.sign: Callable[[int], str] = lambda line: " "

    def show(self, text: str, language: str) -> None:
        """Another text; the cursor stays on its line as far as there is one."""
        self.rows = highlighted(text, language)
        self.plain = text.splitlines()
        width = max((len(line) for line in self.plain), default=0)
        self.virtual_size = Size(width + 9, len(self.rows))
        self.cursor = min(max(self.cursor, 1), max(len(self.rows), 1))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        line = y + top + 1
        if line > len(self.rows):
            return Strip.blank(self.size.width, PLAIN)
        marked = line in self.marked
        style = CURSOR if line == self.cursor and self.has_focus else MARKED if marked or line == self.cursor else PLAIN
        edge = ">" if line == self.cursor else "▌" if marked else " "
        head = [Segment(edge, MARKED), Segment(f"{line:5} ", FAINT), Segment(self.sign(line)[:1] + " ", MARKED)]
        body = Strip([Segment(text, own + style) for text, own in self.rows[line - 1]])
        room = max(self.size.width - 9, 0)
        return Strip([*head, *body.crop_extend(left, left + room, PLAIN)]).crop_extend(0, self.size.width, PLAIN)

    def put_cursor(self, line: int, row: int | None = None) -> None:
        """Move the cursor without telling anybody; `row` is where on the screen its line should be."""
        self.cursor = min(max(line, 1), max(len(self.rows), 1))
        if row is not None:
            self.scroll_to(y=self.cursor - 1 - row, animate=False, immediate=True)
        elif self.size.height:
            target = Rectangle(self.scroll_offset.x, self.cursor - 1, 1, 1)
            self.scroll_to_region(target, animate=False, immediate=True)
        self.refresh()

    @property
    def row(self) -> int:
        """The row of the screen that the cursor is in."""
        return self.cursor - 1 - self.scroll_offset.y

    def go(self, line: int) -> None:
        """Move the cursor as a person does."""
        self.put_cursor(line)
        self.post_message(self.Moved(self))

    def find(self, text: str) -> int:
        """The next line after the cursor, around the end, that has the text in any case; 0 when none has."""
        wanted = text.lower()
        order = [*range(self.cursor + 1, len(self.plain) + 1), *range(1, self.cursor + 1)]
        return next((n for n in order if wanted in self.plain[n - 1].lower()), 0)

    def action_move(self, lines: int) -> None:
        self.go(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        self.go(self.cursor + pages * max(self.size.height - 1, 1))

    def action_edge(self, end: int) -> None:
        self.go(len(self.rows) if end else 1)

    def action_aside(self, columns: int) -> None:
        self.scroll_relative(x=columns, animate=False)
