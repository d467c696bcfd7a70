"""The CUDA as it was ported, the CUDA as it is now, and the port: what changed upstream, and what came from it."""

from __future__ import annotations

import difflib

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Footer, Static

from porter.review.bindings import bindings
from porter.review.code_pane import CodePane
from porter.review.loaded import Loaded
from porter.review.shown import OnePortScreen


def changed_lines(old: list[str], new: list[str]) -> tuple[set[int], set[int]]:
    """The lines (from 1) of each text that the other does not have."""
    gone: set[int] = set()
    fresh: set[int] = set()
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone |= set(range(a0 + 1, a1 + 1))
            fresh |= set(range(b0 + 1, b1 + 1))
    return gone, fresh


def affected(loaded: Loaded, gone: set[int]) -> set[int]:
    """Port lines that came from CUDA lines which have changed."""
    return {
        e.line
        for e in loaded.line_map
        if gone & set(range(e.span.line, max(e.span.end_line, e.span.line) + 1)) and e.span.end_line - e.span.line < 12
    }


class ThreeWayScreen(OnePortScreen):
    """`-` before lines that are gone, `+` before new ones, `~` before port lines that came from changed CUDA."""

    WHERE = ("deeper", "pane")
    BINDINGS = bindings("deeper")

    def compose(self) -> ComposeResult:
        yield Static(id="faults")
        with Horizontal():
            yield CodePane("CUDA as ported", id="old")
            yield CodePane("CUDA now", id="new")
            yield CodePane("CuTeDSL", id="port")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        p = self.loaded
        old, new, port = (self.query_one(f"#{name}", CodePane) for name in ("old", "new", "port"))
        words = "- gone   + new   ~ port lines that came from changed CUDA"
        if p.ported_cuda is None:
            words = "the ported text is neither in the record nor in git: only the CUDA as it is now is shown"
        gone, fresh = (
            changed_lines((p.ported_cuda or "").splitlines(), p.cuda_lines) if p.ported_cuda else (set(), set())
        )
        stale = affected(p, gone)
        old.sign = lambda line: "-" if line in gone else " "
        new.sign = lambda line: "+" if line in fresh else " "
        port.sign = lambda line: "~" if line in stale else " "
        old.show(p.ported_cuda or "", "cuda")
        new.show(p.cuda or "", "cuda")
        port.show(p.text, "python")
        self.query_one("#faults", Static).update(words)
        new.focus()
        first = min(fresh or {1})
        self.call_after_refresh(new.go, first)

    def on_code_pane_moved(self, event: CodePane.Moved) -> None:
        p = self.loaded
        old, new, port = (self.query_one(f"#{name}", CodePane) for name in ("old", "new", "port"))
        back = {b: a for a, b in p.moved_lines.items()}
        row = event.pane.row
        if event.pane is new:
            before = next((back[n] for n in range(new.cursor, 0, -1) if n in back), 1)
        elif event.pane is port:
            before = next((e.span.line for e in reversed(p.line_map) if e.line <= port.cursor), 1)
        else:
            before = old.cursor
        if event.pane is not old:
            old.put_cursor(before, row)
        if event.pane is not new:
            new.put_cursor(next((p.moved_lines[n] for n in range(before, 0, -1) if n in p.moved_lines), 1), row)
        if event.pane is not port:
            port.put_cursor(next((e.line for e in p.line_map if e.span.line == before), port.cursor), row)
