"""The app: ports that are loaded, verifications that run, and the screens over them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from rich.segment import Segment
from textual.app import App, SystemCommand
from textual.color import Color
from textual.filter import LineFilter
from textual.screen import Screen

from porter.config import PortConfig
from porter.pipeline.open_ports import find_ports
from porter.provenance.record import record_path
from porter.report.terminal import visible
from porter.review.port.reviewed_port import ReviewedPort, load
from porter.review.port.verifying import Verifier, end_all, verify
from porter.review.screens.bindings import KEYS, bindings, help_rows
from porter.review.screens.dialogs import Page
from porter.review.screens.port_screens import PortScreen
from porter.review.screens.ports import PortsScreen
from porter.review.screens.review import ReviewScreen

POLL_SECONDS = 2.0  # how often the files of the ports are looked at for changes by others


class Visible(LineFilter):
    """The last thing that happens to a line of the screen: nothing in its text steers the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [s if s.control else Segment(visible(s.text), s.style) for s in segments]


class ReviewApp(App[int]):
    """`verifier` runs the checks; tests give another one."""

    TITLE = "porter review"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (Textual's)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012 (Textual's)
    BINDINGS = bindings("app")
    CSS = """
    CodePane { border: round $foreground 40%; width: 1fr; height: 1fr; }
    CodePane:focus { border: heavy $accent; }
    #about { height: 7; border: round $foreground 40%; padding: 0 1; overflow-y: hidden; }
    .-low #about { height: 6; }
    #three { grid-size: 3 1; }
    .-narrow #three { grid-size: 2 2; }
    .-narrow #three #port { column-span: 2; }
    #tree-and-text { layout: horizontal; }
    .-narrow #tree-and-text { layout: vertical; }
    #tree-and-text > * { width: 1fr; height: 1fr; border: round $foreground 40%; scrollbar-size: 1 1; }
    #tree-and-text > *:focus { border: heavy $accent; }
    VerticalScroll { scrollbar-size: 1 1; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; }
    TabPane Static { padding: 0 1; }
    .keys { dock: bottom; height: 1; padding: 0 1; background: $panel; }
    #faults { height: auto; padding: 0 1; text-style: bold; }
    .dialog { width: 70%; height: auto; border: round $accent; padding: 1 2; background: $surface; }
    .page { width: 92%; height: 88%; border: round $accent; padding: 0 1; background: $surface; }
    .faint { text-style: dim; }
    .dialog Input { border: none; height: 1; padding: 0; margin: 1 0; background: $boost; }
    .page TextArea { border: none; padding: 0; }
    ModalScreen { align: center middle; }
    """

    def __init__(self, paths: Sequence[Path], config: PortConfig, verifier: Verifier | None = None) -> None:
        super().__init__()
        self.animation_level = "none"  # frames between two states are only lag over ssh
        self.paths, self.porter_config = list(paths), config
        self.verifier: Verifier = verifier or partial(verify, config=config)
        self.ports: dict[Path, ReviewedPort] = {p: load(p, config) for p in find_ports(paths)}
        self.running: dict[Path, str] = {}  # ports that are being verified: what is going on
        self.seen = {p: self.stamps(p) for p in self.ports}

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), Visible()]

    def on_mount(self) -> None:
        self.push_screen(PortsScreen())
        if len(self.ports) == 1:
            self.push_screen(ReviewScreen(next(iter(self.ports))))
        self.set_interval(POLL_SECONDS, self.look_at_files)
        if not self.is_headless and hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.handle_hangup)

    def handle_hangup(self) -> None:
        self.leaving = asyncio.get_running_loop().create_task(self.terminal_gone())

    async def terminal_gone(self) -> None:
        """End at once: decisions and what was typed are on disk, and there is no screen to restore."""
        await end_all()
        os._exit(128 + signal.SIGHUP)

    # ---- ports

    def stamps(self, path: Path) -> tuple[int, ...]:
        """When the files of a port were written."""
        files = (path, record_path(path), self.ports[path].cuda_path if path in self.ports else path)
        return tuple(f.stat().st_mtime_ns if f.is_file() else 0 for f in files)

    def look_at_files(self) -> None:
        """Load what other programs have changed."""
        for path in self.ports:
            if self.stamps(path) != self.seen[path]:
                self.reload(path)

    def reload(self, path: Path) -> None:
        self.update_port(load(path, self.porter_config))

    def update_port(self, port: ReviewedPort) -> None:
        """A port as it is now; every screen that shows it follows."""
        self.ports[port.path] = port
        self.seen[port.path] = self.stamps(port.path)
        self.refresh_screens(port.path)

    def refresh_screens(self, path: Path) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, PortScreen):
                screen.port_changed(path)

    # ---- verification

    def start_verifying(self, path: Path) -> None:
        """Verify a port in the background; one at a time, the others wait."""
        if path in self.running:
            self.notify(f"{path.name} is being verified already")
            return
        self.running[path] = "waiting"
        self.refresh_screens(path)
        if len(self.running) == 1:
            self.run_worker(self.verify_waiting(), group="verify")

    async def verify_waiting(self) -> None:
        while self.running:
            path = next(iter(self.running))
            self.running[path] = "starting"
            try:
                passed, message = await self.verifier(path, partial(self.progress, path))
            except OSError as error:
                passed, message = False, f"the verification cannot be run: {error}"
            self.running.pop(path, None)
            self.reload(path)
            self.notify(message, title=f"{path.name}: {'verified' if passed else 'not verified'}",
                        severity="information" if passed else "error", timeout=10, markup=False)  # fmt: skip

    def progress(self, path: Path, message: str) -> None:
        self.running[path] = message.removeprefix(f"{path.stem}: ").removeprefix(f"{self.ports[path].name}: ")
        self.refresh_screens(path)

    # ---- help and palette

    def action_help_page(self) -> None:
        where = getattr(self.screen, "WHERE", ())
        rows = [*help_rows(*where, "app"), ("ctrl+p", "the palette: all of these by name")]
        self.push_screen(Page("keys", table=rows))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the table of keys declares for the screen."""
        for key in KEYS:
            if key.where in (*getattr(screen, "WHERE", ()), "app") and key.where != "pane":
                yield SystemCommand(key.label, key.about, partial(self.run_key, screen, key.action))

    async def run_key(self, screen: Screen[object], action: str) -> None:
        await self.run_action(action, self if action in ("quit", "help_page") else screen)
