"""What the verifier found: a tab a check."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static, TabbedContent, TabPane

from porter.review.bindings import bindings
from porter.review.evidence import TABS, evidence
from porter.review.shown import OnePortScreen
from porter.review.words import CHECK_SIGN


class EvidenceScreen(OnePortScreen):
    """The tabs follow when the port is verified again."""

    WHERE = ("evidence", "deeper")
    BINDINGS = bindings("evidence", "deeper")

    def compose(self) -> ComposeResult:
        with TabbedContent(initial=TABS[0]):
            for check in TABS:
                with TabPane(self.label(check), id=check), VerticalScroll():
                    yield Static(Text(evidence(self.loaded, check)), id=f"{check}-text")
        yield Footer(show_command_palette=False)

    def label(self, check: str) -> str:
        verdict = self.loaded.verdict(check)
        return f"{CHECK_SIGN[verdict.status]} {check}" if verdict else check

    def port_changed(self, path: Path) -> None:
        if path == self.path and self.is_mounted:
            for check in TABS:
                self.query_one(f"#{check}-text", Static).update(Text(evidence(self.loaded, check)))
                self.query_one(TabbedContent).get_tab(check).label = Text(self.label(check))  # type: ignore[assignment]

    def action_next_tab(self) -> None:
        self._turn(1)

    def action_previous_tab(self) -> None:
        self._turn(-1)

    def _turn(self, step: int) -> None:
        tabs = self.query_one(TabbedContent)
        tabs.active = TABS[(TABS.index(tabs.active) + step) % len(TABS)]
