"""The CUDA as it was ported, the CUDA as it is now, and the port: what changed upstream, and what came from it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Grid
from textual.widgets import Static

from porter.model import LineMapEntry
from porter.review.screens.bindings import bindings
from porter.review.screens.code_pane import CodePane
from porter.review.screens.port_screens import KeyLine, OnePortScreen
from porter.source import lines_of


def changed_lines(old: list[str], new: list[str]) -> tuple[set[int], set[int]]:
    """The lines (from 1) of each text that the other does not have."""
    gone: set[int] = set()
    fresh: set[int] = set()
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone |= set(range(a0 + 1, a1 + 1))
            fresh |= set(range(b0 + 1, b1 + 1))
    return gone, fresh


def affected(line_map: Sequence[LineMapEntry], gone: Collection[int]) -> set[int]:
    """Port lines that came from CUDA lines which have changed: of the spans around such a line, the shortest."""
    found: set[int] = set()
    for line in gone:
        around = [e for e in line_map if e.span.line <= line <= _last(e)]
        shortest = min((_last(e) - e.span.line for e in around), default=0)
        found |= {e.line for e in around if _last(e) - e.span.line == shortest}
    return found


def counterparts(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """The line of the old text beside which each line of the new one stands, both from 1; replaced lines in order."""
    beside: dict[int, int] = {}
    for _, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        beside |= {b + 1: max(min(a0 + b - b0, a1 - 1), 0) + 1 for b in range(b0, b1)}
    return beside


def _last(entry: LineMapEntry) -> int:
    return max(entry.span.end_line, entry.span.line)


class ThreeWayScreen(OnePortScreen):
    """`-` before lines that are gone, `+` before new ones, `~` before port lines that came from changed CUDA."""

    WHERE = ("three", "deeper", "pane")
    BINDINGS = bindings("three", "deeper")

    def compose(self) -> ComposeResult:
        yield Static(id="faults")
        with Grid(id="three"):
            yield CodePane("CUDA as ported", id="old")
            yield CodePane("CUDA now", id="new")
            yield CodePane("CuTeDSL", id="port")
        yield KeyLine(*self.WHERE)

    @property
    def panes(self) -> tuple[CodePane, CodePane, CodePane]:
        """The CUDA as ported, the CUDA now, the port."""
        return (self.query_one("#old", CodePane), self.query_one("#new", CodePane), self.query_one("#port", CodePane))

    def on_mount(self) -> None:
        new = self.panes[1]
        for pane in self.panes:
            pane.moved = self.sync_panes
        self.fill()
        new.focus()
        first = min(self.fresh or {1})
        self.call_after_refresh(new.go, first)

    def port_changed(self, path: Path) -> None:
        if path == self.path and self.is_mounted:
            self.fill()

    def fill(self) -> None:
        p = self.port
        old, new, port = self.panes
        before = lines_of(p.ported_cuda or "")
        legend = "- gone   + new   ~ port lines that came from changed CUDA   tab: the next text"
        if p.ported_cuda is None:
            legend = "the ported text is neither in the record nor in git: only the current CUDA is shown"
        gone, self.fresh = changed_lines(before, p.cuda_lines) if p.ported_cuda is not None else (set(), set())
        self.beside = counterparts(before, p.cuda_lines)
        stale = affected([e for e in p.line_map if p.is_source(e.span)], gone)
        old.sign = lambda line: "-" if line in gone else " "
        new.sign = lambda line: "+" if line in self.fresh else " "
        port.sign = lambda line: "~" if line in stale else " "
        old.show(p.ported_cuda or "", "cuda")
        new.show(p.shown_cuda, "cuda")
        port.show(p.text, "python")
        self.query_one("#faults", Static).update(legend)

    def sync_panes(self, pane: CodePane) -> None:
        """Bring the other two texts to what belongs to the line under the cursor."""
        line_map = [e for e in self.port.line_map if self.port.is_source(e.span)]
        old, new, port = self.panes
        row = pane.row
        if pane is new:
            before = self.beside.get(new.cursor, 1)
        elif pane is port:
            before = next((e.span.line for e in reversed(line_map) if e.line <= port.cursor), 1)
        else:
            before = old.cursor
        if pane is not old:
            old.put_cursor(before, row)
        if pane is not new:
            new.put_cursor(next((n for n, o in self.beside.items() if o >= before), 1), row)
        if pane is not port:
            around = [e for e in line_map if e.span.line <= before <= _last(e)]
            nearest = min(around, key=lambda e: (_last(e) - e.span.line, e.line), default=None)
            port.put_cursor(nearest.line if nearest else port.cursor, row)

    def action_next_text(self) -> None:
        panes = self.panes
        at = next((n for n, pane in enumerate(panes) if pane.has_focus), 0)
        panes[(at + 1) % len(panes)].focus()
