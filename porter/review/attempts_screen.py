"""The agent's runs about a port as a tree: runs, attempts, tool calls; the difference between two attempts."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Static, Tree

from porter.review.attempts import Attempt, difference, edits_of, runs_about
from porter.review.bindings import bindings
from porter.review.shown import OnePortScreen

SIGN = {"kept": "✓", "rolled back": "✗", "unfinished": "…"}


class AttemptsScreen(OnePortScreen):
    """The attempt under the cursor is shown on the right; `d` marks one, and again compares another with it."""

    WHERE = ("attempts", "deeper")
    BINDINGS = bindings("attempts", "deeper")

    def compose(self) -> ComposeResult:
        self.marked: Attempt | None = None
        with Horizontal():
            yield Tree("agent runs")
            with VerticalScroll():
                yield Static("", id="attempt", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        tree = self.query_one(Tree)
        tree.root.expand()
        runs = runs_about(self.loaded)
        if not runs:
            self.query_one("#attempt", Static).update("no agent run is recorded for this port")
        for run in runs:
            branch = tree.root.add(Text(run.words), expand=True)
            for attempt in run.attempts:
                why = f" for {attempt.check}" if attempt.check else ""
                label = (
                    f"{SIGN[attempt.state]} attempt {attempt.number} {attempt.state}{why}: {', '.join(attempt.regions)}"
                )
                words = Text(f"{label}  {attempt.tokens:,} tokens, {attempt.seconds:.1f} s")
                leaf = branch.add(words, data=attempt)
                for call in attempt.calls:
                    leaf.add_leaf(Text(call), data=attempt)
        tree.focus()

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Attempt]) -> None:
        if event.node.data is not None:
            self.query_one("#attempt", Static).update(edits_of(event.node.data))

    def action_diff(self) -> None:
        node = self.query_one(Tree).cursor_node
        attempt = node.data if node is not None else None
        if attempt is None:
            self.notify("put the cursor on an attempt")
        elif self.marked is None:
            self.marked = attempt
            self.notify(f"attempt {attempt.number} is marked: d on another one compares them")
        else:
            self.query_one("#attempt", Static).update(difference(self.marked, attempt))
            self.marked = None
