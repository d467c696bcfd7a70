"""Run the command as a user does: exit code, stdout and stderr."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Runner = Callable[..., subprocess.CompletedProcess[str]]


def default_sigint() -> None:
    """For a process that is to be interrupted: tests started in a shell's background ignore SIGINT, and so would it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def porter(tmp_path: Path) -> Runner:
    """porter(*arguments, cwd=..., env=...) in its own process, in an empty folder, with the cache of all tests."""

    def run(*arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None, timeout: float = 240):
        variables = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"} | (env or {})
        command = [sys.executable, "-m", "porter.cli", *map(str, arguments)]
        return subprocess.run(
            command, cwd=cwd or tmp_path, env=variables, capture_output=True, text=True, timeout=timeout
        )

    return run
