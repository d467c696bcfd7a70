"""One port beside its CUDA: both panes scroll together through the line map, a region is decided on with one key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Horizontal
from textual.widgets import Static

from porter.model import PorterError
from porter.review.descriptions import SIGN, describe_region, summarise_checks
from porter.review.editor import open_in_editor
from porter.review.plain import explained
from porter.review.port import actions
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort
from porter.review.screens.bindings import bindings
from porter.review.screens.code_pane import CodePane
from porter.review.screens.dialogs import EditRegion, LineDialog, Page
from porter.review.screens.evidence import EvidenceScreen
from porter.review.screens.port_screens import KeyLine, OnePortScreen
from porter.review.screens.three_way import ThreeWayScreen
from porter.source import lines_of
from porter.wording import plural


class ReviewScreen(OnePortScreen):
    """The cursor of the pane that has the focus says which region is meant."""

    WHERE = ("review", "deeper", "pane")
    BINDINGS = bindings("review", "deeper")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.search_text = ""
        self.file = ""  # what the left pane shows: the source, or a file that it includes
        self.single_pane = False  # whether only the pane with the cursor is shown

    def compose(self) -> ComposeResult:
        yield Static(id="faults")
        with Horizontal():
            yield CodePane("CUDA", id="cuda")
            yield CodePane("CuTeDSL", id="port")
        yield Static(id="about")
        yield KeyLine(*self.WHERE)

    def on_mount(self) -> None:
        self.cuda_pane.sign = self.cuda_sign
        self.port_pane.sign = self.port_sign
        self.cuda_pane.moved = self.port_pane.moved = self.sync_panes
        self.fill()
        first = next((r for r in self.port.regions if self.port.state(r) != "accepted"), None)
        self.port_pane.focus()
        self.call_after_refresh(self.go_to, first)

    @property
    def cuda_pane(self) -> CodePane:
        return self.query_one("#cuda", CodePane)

    @property
    def port_pane(self) -> CodePane:
        return self.query_one("#port", CodePane)

    @property
    def here(self) -> Region | None:
        return self.port.region_at(self.port_pane.cursor)

    # ---- what is shown

    def port_changed(self, path: Path) -> None:
        if path == self.path and self.is_mounted:
            self.fill()

    def fill(self) -> None:
        p = self.port
        self.signs = {n: SIGN[p.state(r)] for r in p.regions for n in (r.first,)}
        self.states = {r.name: p.state(r) for r in p.regions}
        if self.port_pane.plain != p.port_lines:
            self.port_pane.show(p.text, "python")
        self.show_file(self.file if self.file in p.headers else "")
        self.port_pane.border_title = f"CuTeDSL  {p.path.name}"
        self.port_pane.refresh()  # signs of regions may be others now
        self.cuda_pane.refresh()
        faults = self.query_one("#faults", Static)
        faults.display = bool(p.faults)
        faults.update(Text("\n".join(f"! {d.code} {d.message}. {d.help}" for d in p.faults)))
        self.sync_panes(self.port_pane)

    def show_file(self, file: str) -> None:
        """Have the left pane show the source (""), or a file that it includes."""
        p, self.file = self.port, file
        text = p.text_of(file)
        if self.cuda_pane.plain != lines_of(text):
            self.cuda_pane.show(text, "cuda")
        gone = not file and p.cuda is None and p.ported_cuda is not None
        name = Path(file).name if file else p.cuda_path.name
        self.cuda_pane.border_title = f"CUDA  {name}" + ("  as it was ported: the file cannot be read" if gone else "")

    def cuda_sign(self, line: int) -> str:
        region = self.port.region_of_cuda(line, self.file)
        return SIGN[self.states[region.name]] if region is not None else " "

    def port_sign(self, line: int) -> str:
        return self.signs.get(line, " ")

    def sync_panes(self, pane: CodePane) -> None:
        """Bring the other pane to the lines that belong to the cursor, on the same row of the screen."""
        p = self.port
        if pane is self.cuda_pane:
            region = p.region_of_cuda(pane.cursor, self.file)
            if region is not None:
                self.port_pane.put_cursor(self.port_line(region, pane.cursor), pane.row)
        region = self.here
        if region is not None:
            if pane is self.port_pane and (region.cuda or region.elsewhere):
                file = "" if region.cuda else region.elsewhere[0][0]
                if file != self.file:
                    self.show_file(file)
            lines = p.lines_in(region, self.file)
            if pane is self.port_pane and lines:
                self.cuda_pane.put_cursor(self.cuda_line(region, pane.cursor), pane.row)
            self.cuda_pane.mark(set(lines))
            self.port_pane.mark(range(region.first, region.last + 1))
        self.update_about(region)

    def cuda_line(self, region: Region, port_line: int) -> int:
        for cuda, port in self.port.pairs(region, self.file):
            if port_line in port and cuda:
                return cuda[0]
        return self.port.lines_in(region, self.file)[0]

    def port_line(self, region: Region, cuda_line: int) -> int:
        found = [
            port[0] for cuda, port in self.port.pairs(region, self.file) if cuda and cuda[0] <= cuda_line <= cuda[-1]
        ]
        return found[-1] if found else region.first

    def update_about(self, region: Region | None) -> None:
        p = self.port
        about = self.query_one("#about", Static)
        about.border_title = f"{p.accepted} of {plural(len(p.regions), 'region')} accepted"
        running = self.review.running.get(self.path)
        checks = summarise_checks(p.verdicts) if p.verdicts else "not verified"
        if running:
            checks = f"verifying: {running}"
        elif p.verdicts and not p.verified:
            checks = f"before the last edit: {checks}"
        about.border_subtitle = checks.replace("[", "\\[")  # or it would be markup
        rows = describe_region(p, region) if region else ["the port is empty"]
        room = about.size
        if room.width and sum(-(-len(row) // room.width) for row in rows) > room.height:
            about.border_title += "   enter: all of it"
        about.update(Text("\n".join(rows)), layout=False)

    def go_to(self, region: Region | None) -> None:
        if region is not None:
            self.port_pane.display = True
            self.port_pane.focus()
            self.cuda_pane.display = not self.single_pane
            self.port_pane.reveal(region.first, region.last)
            self.sync_panes(self.port_pane)

    # ---- decisions

    def decide(self, change: Callable[[ReviewedPort, Region], ReviewedPort], then_next: bool = False) -> None:
        region = self.here
        if region is None:
            return
        text = self.port.text
        try:
            changed = change(self.port, region)
        except PorterError as error:
            for d in error.diagnostics:
                self.notify(f"{d.message}. {d.help}", title=d.code, severity="error", timeout=10, markup=False)
            self.review.reload(self.path)
            return
        self.review.update_port(changed)
        if changed.text != text and not changed.holes:
            self.review.start_verifying(self.path)
        if then_next:
            self.action_next_open()

    def action_accept(self) -> None:
        self.decide(actions.accept, then_next=True)

    def action_withdraw(self) -> None:
        self.decide(actions.withdraw)

    def action_reject(self) -> None:
        def answered(comment: str | None) -> None:
            if comment is not None:
                self.decide(lambda p, r: actions.reject(p, r, comment.strip(), self.review.porter_config))

        self.app.push_screen(LineDialog("reject: why? (may be empty)"), answered)

    def action_comment(self) -> None:
        region = self.here
        previous = self.port.decisions.get(region.name) if region else None

        def answered(comment: str | None) -> None:
            if comment is not None:
                self.decide(lambda p, r: actions.add_comment(p, r, comment.strip()))

        self.app.push_screen(LineDialog("comment", previous.comment if previous else ""), answered)

    def action_edit(self) -> None:
        region = self.here
        if region is None:
            return

        def edited(text: str | None) -> None:
            if text is not None:
                self.decide(lambda p, r: actions.edit(p, region, text))

        self.app.push_screen(EditRegion(self.port, region), edited)

    def action_editor(self) -> None:
        try:
            with self.app.suspend():
                open_in_editor(self.path, self.port_pane.cursor)
        except SuspendNotSupported:
            self.notify("this terminal cannot be handed to an editor: edit in place (i)", severity="error")
            return
        except PorterError as error:
            self.notify(str(error), title=error.diagnostics[0].code, severity="error", markup=False)
        before = self.port.text
        self.review.reload(self.path)
        if self.port.text != before and not self.port.holes:
            self.review.start_verifying(self.path)

    # ---- moving and reading

    def action_next_open(self) -> None:
        self._go_open(1)

    def action_previous_open(self) -> None:
        self._go_open(-1)

    def _go_open(self, step: int) -> None:
        regions, here = self.port.regions, self.here
        if here is None:
            return
        at = regions.index(here)
        order = [regions[(at + step * k) % len(regions)] for k in range(1, len(regions) + 1)]
        found = next((r for r in order if self.port.state(r) != "accepted"), None)
        if found is None:
            self.notify("every region is accepted")
        self.go_to(found)

    def action_other_pane(self) -> None:
        here, other = self.panes
        other.display = True
        other.focus()
        here.display = not self.single_pane

    def action_alone(self) -> None:
        self.single_pane = not self.single_pane
        here, other = self.panes
        here.focus()
        other.display = not self.single_pane

    @property
    def panes(self) -> tuple[CodePane, CodePane]:
        """The pane with the cursor, and the other one."""
        both = (self.port_pane, self.cuda_pane)
        return both[::-1] if self.cuda_pane.has_focus else both

    def action_about(self) -> None:
        if self.here is not None:
            self.app.push_screen(Page("about", "\n".join(describe_region(self.port, self.here))))

    def action_search(self) -> None:
        def answered(text: str | None) -> None:
            if text:
                self.search_text = text
                self.action_search_next()

        self.app.push_screen(LineDialog("search", self.search_text), answered)

    def action_search_next(self) -> None:
        pane = self.cuda_pane if self.cuda_pane.has_focus else self.port_pane
        line = pane.find(self.search_text) if self.search_text else 0
        if line:
            pane.go(line)
        else:
            self.notify(f'"{self.search_text}" was not found', markup=False)

    def action_explain(self) -> None:
        if self.here is not None:
            self.app.push_screen(Page("codes", explained(self.port, self.here)))

    def action_why(self) -> None:
        region = self.here
        if region is None:
            return
        page = Page(f"why {region.name}")
        self.app.push_screen(page)
        port, config = self.port, self.review.porter_config

        def work() -> None:
            from porter.review.port.why import why

            for part in why(port, region, config):
                self.app.call_from_thread(page.add, part)

        self.run_worker(work, thread=True, group="why", exclusive=True)

    def action_verify(self) -> None:
        self.review.start_verifying(self.path)

    def action_evidence(self) -> None:
        self.app.push_screen(EvidenceScreen(self.path))

    def action_attempts(self) -> None:
        from porter.review.screens.attempts import AttemptsScreen

        self.app.push_screen(AttemptsScreen(self.path))

    def action_three_way(self) -> None:
        if not self.port.source_changed:
            self.notify("the CUDA has not changed since it was ported: there are only two texts")
            return
        self.app.push_screen(ThreeWayScreen(self.path))
