"""The table of ports: regions, holes, checks, how much is reviewed."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import DataTable, Static

from porter.review.port.reviewed_port import ReviewedPort, status_text
from porter.review.screens.bindings import bindings
from porter.review.screens.dialogs import LineDialog
from porter.review.screens.port_screens import KeyLine, PortScreen
from porter.review.screens.review import ReviewScreen
from porter.wording import plural

CHECKS = ("compile", "numerics", "sanitizer", "performance")
COLUMNS = ("port", "regions", "holes", *CHECKS, "reviewed")
NARROW = ("port", "reg", "holes", "compile", "num", "sanit", "perf", "reviewed")  # below 100 columns
NAME = 20  # of a port, there


class PortsScreen(PortScreen):
    """A row a port. `wanted` filters, `order` is the column that sorts."""

    WHERE = ("ports",)
    BINDINGS = bindings("ports")

    def __init__(self) -> None:
        super().__init__()
        self.filter_text = ""
        self.sort_column = 0

    def compose(self) -> ComposeResult:
        yield Static(id="faults")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield KeyLine(*self.WHERE)

    def on_mount(self) -> None:
        self.fill()
        self.query_one(DataTable).focus()

    def on_resize(self) -> None:
        self.fill()

    def port_changed(self, path: Path) -> None:
        if self.is_mounted:
            self.fill()

    def fill(self) -> None:
        """The table anew; the cursor stays on its port."""
        table = self.query_one(DataTable)
        at = self.under_cursor()
        table.clear(columns=True)
        narrow = self.size.width < 100
        rows = [(self.cells(p), p.path) for p in self.review.ports.values()]
        rows = [(cells, path) for cells, path in rows if self.filter_text in " ".join((str(path), *cells)).lower()]
        rows.sort(key=lambda row: _key(row[0][self.sort_column]))
        cells_shown = [[_shortened(cells[0], NAME if narrow else 60), *cells[1:]] for cells, _ in rows]
        for n, name in enumerate(NARROW if narrow else COLUMNS):
            title = f"{name} ▼" if n == self.sort_column else name
            table.add_column(
                title, key=name, width=max(cell_len(text) for text in (title, *(row[n] for row in cells_shown)))
            )
        for cells, (_, path) in zip(cells_shown, rows, strict=True):
            table.add_row(*(Text(cell) for cell in cells), key=str(path))
        if at is not None and str(at) in [str(path) for _, path in rows]:
            table.move_cursor(row=table.get_row_index(str(at)))
        complete = sum(p.complete for p in self.review.ports.values())
        summary = f"{len(rows)} of {plural(len(self.review.ports), 'port')}, {complete} reviewed in full"
        self.query_one("#faults", Static).update(
            Text(summary + (f'; filter "{self.filter_text}"' if self.filter_text else ""))
        )

    def cells(self, p: ReviewedPort) -> list[str]:
        running = self.review.running.get(p.path)
        checks = [status_text(p, c) for c in CHECKS]
        if running:
            checks = [f"… {running}"[:24], *checks[1:]]
        if not p.readable:
            return [self.name_of(p), "-", "-", *("-" for _ in CHECKS), f"! {p.faults[0].code}"]
        stale = sum(p.state(r) == "stale" for r in p.regions)
        reviewed = f"{'✓ ' if p.complete else ''}{p.accepted}/{len(p.regions)}" + (f", {stale} stale" if stale else "")
        note = "".join(f" ! {d.code}" for d in p.faults)
        return [self.name_of(p), str(len(p.regions)), str(len(p.holes)), *checks, reviewed + note]

    def name_of(self, p: ReviewedPort) -> str:
        """The port's name, with its folder where another one has the same."""
        alike = sum(other.name == p.path.name for other in self.review.ports) > 1
        return f"{p.path.parent.name}/{p.path.stem}" if alike else p.path.stem

    def under_cursor(self) -> Path | None:
        table = self.query_one(DataTable)
        if not table.row_count:
            return None
        value = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return Path(value) if value else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.action_open()

    def action_open(self) -> None:
        path = self.under_cursor()
        if path is not None:
            self.app.push_screen(ReviewScreen(path))

    def action_verify(self) -> None:
        path = self.under_cursor()
        if path is not None:
            self.review.start_verifying(path)

    def action_verify_all(self) -> None:
        for path in self.review.ports:
            if path not in self.review.running:
                self.review.start_verifying(path)

    def action_sort(self) -> None:
        self.sort_column = (self.sort_column + 1) % len(COLUMNS)
        self.fill()

    def action_filter(self) -> None:
        def filtered(text: str | None) -> None:
            if text is not None:
                self.filter_text = text.strip().lower()
                self.fill()

        self.app.push_screen(LineDialog("show ports with", self.filter_text), filtered)


def _shortened(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"


def _key(cell: str) -> tuple[int, float, str]:
    """Numbers before words, numbers by value."""
    number = cell.removeprefix("✓ ").partition("/")[0]
    return (0, float(number), cell) if number.isdigit() else (1, 0.0, cell)
