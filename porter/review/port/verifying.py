"""Verify a port in a process of its own while the app is open; ending the app ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from porter.config import PortConfig
from porter.wording import plural

Say = Callable[[str], None]
Verifier = Callable[[Path, Say], Awaitable[tuple[bool, str]]]  # (port, progress) -> (all checks passed, what to tell)


PATIENCE = 3.0  # seconds that a verification may take to end
running: set[int] = set()  # process groups
starting: set[Path] = set()  # ports whose process is being made, so that its group is not known yet


async def end_all() -> None:
    """End the verifications that run or start."""
    patience = PATIENCE
    while starting and patience > 0:
        await asyncio.sleep(0.02)
        patience -= 0.02
    for group in tuple(running):
        _end(group)


def _end(group: int, how: signal.Signals = signal.SIGTERM) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, how)


async def verify(port: Path, say: Say, config: PortConfig | None = None) -> tuple[bool, str]:
    """Run `porter verify` for one port, which keeps its answers in `.port.json`. Progress is a line of a few words.
    `config`: what the review was given to read the original with."""
    command = [sys.executable, "-m", "porter.cli", "verify", str(port), "--output-format", "json", "--color", "never"]
    command += _flags(config) if config else []
    starting.add(port)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=1 << 24,
        )
        running.add(process.pid)
    finally:
        starting.discard(port)
    try:
        output, last = await asyncio.gather(_read(process.stdout), _follow(process.stderr, say))
        code = await process.wait()
    except asyncio.CancelledError:
        _end(process.pid)
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            _end(process.pid, signal.SIGKILL)
        raise
    finally:
        running.discard(process.pid)
    return conclusion(code, output, last)


def conclusion(code: int, output: str, last: str) -> tuple[bool, str]:
    """What the end of a verification says."""
    try:
        report = json.loads(output)
        kernels = report["kernels"]
        found = [*(d for k in kernels for d in k["diagnostics"]), *report["diagnostics"]]
        bad = [
            f"{v['check']} {v['status']}" for k in kernels for v in k["verdicts"] if v["status"] in ("FAIL", "ERROR")
        ]
        holes = sum(len(k["holes"]) for k in kernels)
        errors = [d["message"] for d in found if d["severity"] == "error"]
    except (ValueError, KeyError, TypeError):
        kernels, bad, holes, errors = [], [], 0, []
    if bad or errors:
        return False, ", ".join([*bad, *errors])
    if holes:
        return False, f"not verified: {plural(holes, 'hole')} left"
    if not kernels or code:
        return False, f"the verification ended with {code}: {last or 'without a message'}"
    return True, "every check passed or was skipped"


def _flags(config: PortConfig) -> list[str]:
    repeated = {"-I": config.include, "-D": config.define, "--instantiate": config.instantiate}
    flags = [f"{flag}={value}" if flag[1] == "-" else flag + value for flag, vs in repeated.items() for value in vs]
    return [*flags, "-std", config.std, "--arch", ",".join(config.arch)]


async def _read(stream: asyncio.StreamReader | None) -> str:
    return (await stream.read()).decode(errors="replace") if stream else ""


async def _follow(stream: asyncio.StreamReader | None, say: Say) -> str:
    """Pass the lines of progress on; returns the last one."""
    last = ""
    while stream and (line := await stream.readline()):
        text = line.decode(errors="replace").strip()
        if text:
            last = text
            say(text)
    return last
