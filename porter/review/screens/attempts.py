"""The agent's runs about a port as a tree: runs, attempts, tool calls; the difference between two attempts."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widgets import Static, Tree

from porter.review.port.attempts import AgentRun, Attempt, difference, edits_of, runs_about
from porter.review.screens.bindings import bindings
from porter.review.screens.port_screens import KeyLine, OnePortScreen

SIGN = {"kept": "✓", "rolled back": "✗", "unfinished": "…"}


class AttemptsScreen(OnePortScreen):
    """The attempt under the cursor is shown on the right; `d` marks one, and again compares another with it."""

    WHERE = ("attempts", "deeper")
    BINDINGS = bindings("attempts", "deeper")

    def compose(self) -> ComposeResult:
        self.marked: Attempt | None = None
        with Container(id="tree-and-text"):
            yield Tree[Attempt | AgentRun]("agent runs")
            with VerticalScroll():
                yield Static("", id="attempt", markup=False)
        yield KeyLine(*self.WHERE)

    def on_mount(self) -> None:
        tree = self.query_one(Tree)
        tree.show_root = False
        tree.root.expand()
        runs = runs_about(self.port)
        first = runs[0].summary if runs else "no agent run is recorded for this port"
        self.query_one("#attempt", Static).update(first)
        for run in runs:
            branch = tree.root.add(Text(run.label), data=run, expand=True)
            for attempt in run.attempts:
                why = f" for {attempt.check}" if attempt.check else ""
                label = f"{SIGN[attempt.state]} {attempt.number} {attempt.state}{why}: {', '.join(attempt.regions)}"
                text = Text(f"{label}  {attempt.tokens:,} tokens, {attempt.seconds:.1f} s")
                leaf = branch.add(text, data=attempt)
                for call in attempt.calls:
                    leaf.add_leaf(Text(call), data=attempt)
        tree.focus()

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Attempt | AgentRun]) -> None:
        data = event.node.data
        if data is not None:
            self.query_one("#attempt", Static).update(data.summary if isinstance(data, AgentRun) else edits_of(data))

    def action_other_side(self) -> None:
        tree, text = self.query_one(Tree), self.query_one(VerticalScroll)
        (text if tree.has_focus else tree).focus()

    def action_diff(self) -> None:
        node = self.query_one(Tree).cursor_node
        attempt = node.data if node is not None else None
        if not isinstance(attempt, Attempt):
            self.notify("put the cursor on an attempt")
        elif self.marked is None:
            self.marked = attempt
            self.notify(f"attempt {attempt.number} is marked: d on another one compares them")
        else:
            self.query_one("#attempt", Static).update(difference(self.marked, attempt))
            self.marked = None
