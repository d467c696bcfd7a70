"""A pane of source text with line numbers, a cursor and marked lines. Draws only the lines that are seen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import ClassVar

from pygments.lexers import get_lexer_by_name
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from textual.geometry import Region as Rectangle
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from porter.report.terminal import visible
from porter.review.screens.bindings import bindings
from porter.source import lines_of

MARKED = Style(bold=True)
PLAIN = Style()
FAINT = Style(dim=True)
CUT = "›"  # at the end of a line that goes on to the right
Row = list[Segment]  # pieces of a line, each of one style


@lru_cache(maxsize=16)  # the left pane goes from file to file
def highlighted(text: str, language: str, colours: bool = True) -> list[Row]:
    """The lines of a text in the colours of its language ("python", "cuda"); without them, bold and dim are left."""
    theme = Syntax.get_theme("ansi_dark")
    rows: list[Row] = [[]]
    for kind, value in get_lexer_by_name(language, stripnl=False, tabsize=4).get_tokens(visible(text)):
        style = theme.get_style_for_token(kind)
        style = style if colours else style.without_color  # as greys some could not be read
        for number, piece in enumerate(value.split("\n")):
            if number:
                rows.append([])
            if piece:
                rows[-1].append(Segment(piece, style))
    return rows[: len(lines_of(text))]


class CodePane(ScrollView, can_focus=True):
    """Lines from 1. `sign` gives the character before a line; marked lines have a bar there."""

    BINDINGS = bindings("pane")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"code-pane--cursor", "code-pane--marked"}
    DEFAULT_CSS = """
    CodePane { scrollbar-size: 0 1; }
    CodePane .code-pane--cursor { background: $accent 45%; text-style: bold; }
    CodePane .code-pane--marked { background: $surface-lighten-2; }
    """

    def __init__(self, name: str, **arguments: str) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.border_title = name
        self.rows: list[Row] = []
        self.digits = 3
        self.plain: list[str] = []
        self.cursor = 1
        self.marked: Collection[int] = ()
        self.sign: Callable[[int], str] = lambda line: " "
        self.moved: Callable[[CodePane], None] = lambda pane: None  # called when the person has moved the cursor

    def show(self, text: str, language: str) -> None:
        """Another text; the cursor stays on its line as far as there is one."""
        self.rows = highlighted(text, language, not self.app.no_color)
        self.plain = lines_of(text)
        self.digits = max(len(str(len(self.rows))), 3)
        width = max((len(line) for line in self.plain), default=0)
        self.virtual_size = Size(width + self.head_width, len(self.rows))
        self.cursor = min(max(self.cursor, 1), max(len(self.rows), 1))
        self.refresh()

    @property
    def head_width(self) -> int:
        """Columns before the text: edge, number, sign."""
        return self.digits + 4

    @property
    def columns(self) -> int:
        """Columns that a line may take: the scrollbar takes one."""
        return self.size.width - self.scrollbar_size_vertical

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        line = y + top + 1
        if line > len(self.rows):
            return Strip.blank(self.columns, PLAIN)
        marked = line in self.marked
        back = PLAIN
        if line == self.cursor and self.has_focus:
            back = self.ground("code-pane--cursor") + MARKED
        elif marked:
            back = self.ground("code-pane--marked")
        weight = MARKED if marked or line == self.cursor else PLAIN
        edge = ">" if line == self.cursor else "▌" if marked else " "
        head = [
            Segment(edge, MARKED + back),
            Segment(f"{line:{self.digits}} ", FAINT + back),
            Segment(f"{self.sign(line)[:1]} ", MARKED + back),
        ]
        row = self.rows[line - 1]
        if weight or back:
            row = [Segment(text, (own or PLAIN) + weight + back) for text, own, _ in row]
        body = Strip(row)
        room = max(self.columns - self.head_width, 1)
        if body.cell_length > left + room:
            shown = [*body.crop_extend(left, left + room - 1, back), Segment(CUT, FAINT + back)]
        else:
            shown = list(body.crop_extend(left, left + room, back))
        return Strip([*head, *shown]).crop_extend(0, self.columns, back)

    def ground(self, name: str) -> Style:
        """The background that the style sheet gives to a component."""
        return Style(bgcolor=self.get_component_rich_style(name).bgcolor)

    def put_cursor(self, line: int, row: int | None = None) -> None:
        """Move the cursor without telling anybody; `row` is where on the screen its line should be."""
        before, self.cursor = self.cursor, min(max(line, 1), max(len(self.rows), 1))
        if row is not None:
            self.scroll_to(y=self.cursor - 1 - row, animate=False, immediate=True)
        elif self.size.height:
            target = Rectangle(self.scroll_offset.x, self.cursor - 1, 1, 1)
            self.scroll_to_region(target, animate=False, immediate=True)
        self.refresh_lines(before - 1)  # scrolling draws all lines anew, but a step inside the pane only these two
        self.refresh_lines(self.cursor - 1)

    def on_resize(self) -> None:
        self.put_cursor(self.cursor)  # which stays in sight in a smaller pane

    def mark(self, lines: Collection[int]) -> None:
        """Mark other lines than before."""
        changed = sorted(set(lines) ^ set(self.marked))
        self.marked = lines
        if changed:
            self.refresh_lines(changed[0] - 1, changed[-1] - changed[0] + 1)

    def reveal(self, first: int, last: int) -> None:
        """Put the cursor on `first`, with the lines up to `last` in sight as far as they fit."""
        self.put_cursor(first)
        height = self.size.height
        top = self.scroll_offset.y
        if height and last > top + height:
            above = max(min(height // 4, height - (last - first + 1)), 0)
            self.put_cursor(first, above)

    @property
    def row(self) -> int:
        """The row of the screen that the cursor is in."""
        return self.cursor - 1 - self.scroll_offset.y

    def go(self, line: int) -> None:
        """Move the cursor as a person does."""
        self.put_cursor(line)
        self.moved(self)  # at once, not by a message: all panes are then drawn together

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
