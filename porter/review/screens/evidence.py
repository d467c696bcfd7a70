"""What the verifier found: a tab a check."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static, TabbedContent, TabPane, Tabs

from porter.review.descriptions import CHECK_SIGN
from porter.review.port.evidence import checks_of, evidence
from porter.review.screens.bindings import bindings
from porter.review.screens.port_screens import KeyLine, OnePortScreen


class EvidenceScreen(OnePortScreen):
    """The tabs follow when the port is verified again."""

    WHERE = ("evidence", "deeper")
    BINDINGS = bindings("evidence", "deeper")

    def compose(self) -> ComposeResult:
        self.checks = checks_of(self.port)
        with TabbedContent(initial=self.checks[0]):
            for check in self.checks:
                with TabPane(self.label(check), id=check), VerticalScroll():
                    yield Static(Text(evidence(self.port, check)), id=f"{check}-text")
        yield KeyLine(*self.WHERE)

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False  # the arrow keys turn tabs and scroll: nothing else needs the focus
        self.read()

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        self.read()

    def read(self) -> None:
        """Give the focus to the page that is seen, so that the keys scroll it."""
        active = self.query_one(TabbedContent).active
        self.query_one(f"#{active} VerticalScroll", VerticalScroll).focus()

    def label(self, check: str) -> str:
        verdict = self.port.verdict(check)
        return f"{CHECK_SIGN[verdict.status]} {check}" if verdict else check

    def port_changed(self, path: Path) -> None:
        if path != self.path or not self.is_mounted:
            return
        if checks_of(self.port) != self.checks:
            self.call_later(self.anew)
            return
        for check in self.checks:
            self.query_one(f"#{check}-text", Static).update(Text(evidence(self.port, check)))
            self.query_one(TabbedContent).get_tab(check).label = Text(self.label(check))  # type: ignore[assignment]

    async def anew(self) -> None:
        """Other checks have been run: other tabs. The one that is read stays."""
        active = self.query_one(TabbedContent).active
        await self.recompose()
        if active in self.checks:
            self.query_one(TabbedContent).active = active
        self.query_one(Tabs).can_focus = False
        self.read()

    def action_next_tab(self) -> None:
        self._turn(1)

    def action_previous_tab(self) -> None:
        self._turn(-1)

    def _turn(self, step: int) -> None:
        tabs = self.query_one(TabbedContent)
        tabs.active = self.checks[(self.checks.index(tabs.active) + step) % len(self.checks)]
