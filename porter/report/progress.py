"""Progress of a run on stderr: a live table on a terminal, one plain line per finished stage elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from porter.report.console import Progress, StageEvent
from porter.report.file_count import STAGE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

COLUMNS = ("parse", "plan", "emit", "compile", "resources", "numerics", "sanitizer", "determinism")
LOOK = {
    "done": "green", "passed": "green", "failed": "bold red", "error": "bold red", "skipped": "yellow",
    "running": "cyan",
}  # fmt: skip
# A check has the word of its verdict; a stage is done, or an error.
MARK = {"done": "ok", "passed": "PASS", "failed": "FAIL", "error": "ERROR", "skipped": "SKIP", "running": "..."}


@contextmanager
def watching(out: Console, live: bool) -> Iterator[Progress]:
    """A Progress that draws on `out` while the block runs. The live table goes at the end: the summary follows."""
    if not live:
        yield lambda event: _plain(out, event)
        return
    from rich.live import Live

    table = ProgressTable()
    with Live(table.draw(), console=out, refresh_per_second=8, transient=True) as screen:

        def show(event: StageEvent) -> None:
            table.add(event)
            screen.update(table.draw())

        yield show


def _plain(out: Console, event: StageEvent) -> None:
    if event.state == "running":
        return
    if event.stage == STAGE:
        out.print(event.note, markup=False)
        return
    note = f"  {event.note}" if event.note else ""
    out.print(f"{event.kernel}: {event.stage} {MARK[event.state]} {event.seconds:.2f} s{note}", markup=False)


class ProgressTable:
    """One row per kernel, one column per stage. Stages without a column show up only when they fail, as a note."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, StageEvent]] = {}
        self.files = ""  # how far the run is

    def add(self, event: StageEvent) -> None:
        if event.stage == STAGE:
            self.files = event.note
            return
        self.rows.setdefault(event.kernel, {})[event.stage] = event

    def draw(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, caption=self.files or None, caption_justify="left")
        table.add_column("kernel", style="bold", no_wrap=True)
        for column in COLUMNS:
            table.add_column(column, no_wrap=True)
        table.add_column("")
        for kernel, stages in self.rows.items():
            failed = [s for s in stages.values() if s.state in ("failed", "error") and s.stage not in COLUMNS]
            note = Text(", ".join(s.stage for s in failed), LOOK["failed"])
            table.add_row(kernel, *(self.cell(stages.get(c)) for c in COLUMNS), note)
        return table

    def cell(self, event: StageEvent | None) -> Text:
        from rich.text import Text

        if event is None:
            return Text("-", "dim")
        text = f"{event.seconds:.2f} s" if event.state in ("done", "passed") else MARK[event.state]
        if event.state == "running" and event.note:
            text = event.note
        return Text(text, LOOK[event.state])
