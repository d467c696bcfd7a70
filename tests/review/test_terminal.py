"""The command in a real terminal (a pty): keys as bytes, $EDITOR on the whole screen, a window that is closed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("textual")

from bench.terminal import Terminal
from porter.review.port.decisions import draft_path, read_draft
from porter.review.port.reviewed_port import load

ROOT = Path(__file__).resolve().parents[2]


def opened(folder: Path, *arguments: str, size: tuple[int, int] = (120, 40), **environment: str) -> Terminal:
    command = [sys.executable, "-m", "porter.cli", "review", *arguments]
    return Terminal(command, folder, size, {**os.environ, "PYTHONPATH": str(ROOT), **environment})


def region(port: Path, text: str) -> str:
    loaded = load(port)
    return next(r.name for r in loaded.regions if text in loaded.port_text(r))


def to(terminal: Terminal, text: str) -> None:
    """Put the cursor on the line with this text, by searching."""
    terminal.press("/")
    terminal.wait_for("search")
    terminal.press(*text, "enter")


def test_decide_edit_and_leave(folder: Path, port: Path):
    """Open from the table, accept, edit with $EDITOR on the whole terminal, make the window smaller, quit: exit code 0,
    and all of it is in the files."""
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/sh\necho "an editor has the terminal: $1"\nsed -i "s/i < n/n > i/" "$2"\n')
    editor.chmod(0o755)
    with opened(folder, "out", EDITOR=str(editor), VISUAL="") as terminal:
        terminal.wait_for("2 of 2 ports")
        terminal.press("down", "enter")
        terminal.wait_for("0 of 10 regions accepted")
        terminal.press("a")
        terminal.wait_for("1 of 10 regions accepted")
        assert load(port).accepted == 1
        terminal.forget()
        to(terminal, "i < n")
        terminal.wait_for("scale_kernel/3")
        terminal.press("e")
        terminal.wait_for("an editor has the terminal: +29")
        terminal.wait_for("by person")
        assert "if n > i" in port.read_text() and load(port).accepted == 1
        terminal.forget()
        terminal.resize(80, 24)
        terminal.wait_for("esc Back  ? Help")
        terminal.press("q")
        assert terminal.wait() == 0


def test_a_window_closed_in_the_middle_of_an_edit_loses_nothing(folder: Path, port: Path):
    with opened(folder, str(port)) as terminal:
        terminal.wait_for("0 of 10 regions accepted")
        terminal.press("a")
        terminal.wait_for("1 of 10 regions accepted")
        to(terminal, "i < n")
        terminal.wait_for("scale_kernel/3")
        terminal.forget()
        terminal.press("i")
        terminal.wait_for("edit scale_kernel/3")
        terminal.press(*"pass#")
        for _ in range(100):
            terminal.read(0.05)
            if "pass#" in (read_draft(port, region(port, "i < n")) or ""):
                break
        terminal.close()
        assert terminal.wait() == 129, "the review goes on without a terminal"
    assert load(port).accepted == 1 and draft_path(port).is_file()
    typed = read_draft(port, region(port, "i < n"))
    assert typed is not None and typed.startswith("pass#    if i < n:")


def test_a_window_closed_while_a_port_is_verified_ends_that_too(folder: Path, port: Path):
    """The verification is a process of its own: without the review nobody reads what it says."""
    marker = folder / "verifying.pid"
    stand_in = folder / "sitecustomize.py"  # every Python started here: `porter verify` says its number and stays
    stand_in.write_text(
        "import os, sys, time\n"
        "if 'verify' in sys.orig_argv:\n"
        f"    open({str(marker)!r} + '.tmp', 'w').write(str(os.getpid()))\n"
        f"    os.replace({str(marker)!r} + '.tmp', {str(marker)!r})\n"
        "    time.sleep(60)\n"
    )
    with opened(folder, str(port), PYTHONPATH=f"{folder}{os.pathsep}{ROOT}") as terminal:
        terminal.wait_for("0 of 10 regions accepted")
        terminal.press("v")
        for _ in range(200):
            terminal.read(0.05)
            if marker.is_file():
                break
        process = int(marker.read_text())
        terminal.close()
        assert terminal.wait() == 129
    for _ in range(100):
        if not alive(process):
            return
        time.sleep(0.05)
    raise AssertionError("the verification goes on")


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
