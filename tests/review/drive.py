"""Drive the app as a person does, with keys alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from porter.config import PortConfig
from porter.review.app import ReviewApp
from porter.review.screens.review import ReviewScreen

LARGE, SMALL = (120, 40), (80, 24)


def app_of(*paths: Path | str, verifier: Callable[..., Awaitable[tuple[bool, str]]] | None = None) -> ReviewApp:
    """The app on some ports; without a verifier nothing is verified."""

    async def none(port: Path, say: Callable[[str], None]) -> tuple[bool, str]:
        return True, "not run in this test"

    return ReviewApp([Path(p) for p in paths], PortConfig(), verifier or none)


def drive(app: ReviewApp, steps: Callable[[Pilot[int]], Awaitable[None]], size: tuple[int, int] = LARGE) -> None:
    """Run the app without a terminal, and `steps` on it."""

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(main())


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await pilot.pause()


async def type_line(pilot: Pilot[int], text: str) -> None:
    """Fill the question that is asked, and press enter."""
    await press(pilot, *(("space" if c == " " else c) for c in text), "enter")


async def wait_for(pilot: Pilot[int], condition: Callable[[], bool], seconds: float = 4.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"it did not happen within {seconds:.0f} seconds")


def review(app: App[int]) -> ReviewScreen:
    assert isinstance(app.screen, ReviewScreen)
    return app.screen


async def at(pilot: Pilot[int], text: str) -> ReviewScreen:
    """Put the cursor on the first region with this text."""
    screen = review(pilot.app)
    screen.go_to(next(r for r in screen.port.regions if text in screen.port.port_text(r)))
    await pilot.pause()
    return screen


def said(app: App[int]) -> list[str]:
    """The messages that the app has shown: title and text of each."""
    return [f"{n.title} {n.message}".strip() for n in app._notifications]
