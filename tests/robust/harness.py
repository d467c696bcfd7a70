"""Runs `porter` on an input as the shell would, from a warm process that forks: what it said, took and left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.robust.inputs import Input

CPU_SECONDS = 20.0
MOST_TICKS = 10 * int(CPU_SECONDS) * os.sysconf("SC_CLK_TCK")  # behind which a run is ended
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `faults` is what it must not have done."""

    code: int
    cpu: float
    text: str
    faults: tuple[str, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(sorted(set(re.findall(r"\bPRT\d{3}\b", self.text))))


def warm() -> None:
    """Import what every run needs, so that a run costs what its input costs."""
    import porter.cli
    import porter.pipeline.stages
    import porter.report.render
    import porter.verify.emulate_case
    from porter.frontend.parse import clang_compat

    porter.cli.build_parser()
    clang_compat.cindex.Index.create()


def run(given: Input, seconds: float = 300.0) -> Outcome:
    """One input in a folder of its own. `seconds` is wall time without any use of the CPU; what uses it has its own
    limits, however long they take on a busy machine."""
    folder = Path(tempfile.mkdtemp(prefix="robust-"))  # no TemporaryDirectory: the fork would delete it at its end
    others = _children()  # of other tests in this process
    _adopt_orphans(True)
    try:
        (folder / "work").mkdir()
        (folder / "tmp").mkdir()
        given.write(folder / "work")
        pid = os.fork()
        if not pid:
            _child(folder, given.command)
        status, cpu, late = _wait(pid, seconds)
        text = (folder / "said").read_text(encoding="utf-8", errors="replace")
        faults = _faults(status, cpu, late, text, folder) + _orphans(others)
    finally:
        _adopt_orphans(False)
        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code, cpu, text, tuple(faults))


def _child(folder: Path, command: tuple[str, ...]) -> None:
    try:
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder / "work")
        os.environ["TMPDIR"] = str(folder / "tmp")
        tempfile.tempdir = None
        sys.argv = ["porter", *command]
        from porter.cli import main

        try:
            code = main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        _at_exit()
        os._exit(code)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _at_exit() -> None:
    """What the interpreter does at the end of a process, which this one leaves by _exit."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def _wait(pid: int, seconds: float) -> tuple[int, float, bool]:
    deadline, looked, used = time.monotonic() + seconds, 0.0, 0
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage.ru_utime + usage.ru_stime, False
        if time.monotonic() > looked + seconds / 10:
            looked, before, used = time.monotonic(), used, _ticks(pid)
            deadline = deadline if used == before else looked + seconds
        if time.monotonic() > deadline or used > MOST_TICKS:
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage.ru_utime + usage.ru_stime, True
        time.sleep(0.01)


def _ticks(session: int) -> int:
    """CPU time that the processes of a session have used, in ticks of the system's clock."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            if int(words[3]) == session:
                found += sum(int(n) for n in words[11:15])
    return found


def _faults(status: int, cpu: float, late: bool, text: str, folder: Path) -> list[str]:
    found = []
    code = os.waitstatus_to_exitcode(status)
    if late:
        found.append("no answer")
    elif code not in (0, 1, 2):
        found.append(f"exit code {code}")
    if "Traceback (most recent call last)" in text or "Exception ignored" in text:
        found.append("traceback")
    if "PRT950" in text:
        found.append("internal error")
    if code == 2 and not re.search(r"PRT\d{3}|usage:", text):
        found.append("no message")
    if cpu > CPU_SECONDS:
        found.append(f"{cpu:.1f} s of CPU time")
    left = sorted(p.name for p in (folder / "tmp").iterdir())
    left += sorted(p.name for p in (folder / "work").rglob("*.tmp"))
    if left:
        found.append(f"left behind: {', '.join(left)}")
    return found


def _adopt_orphans(adopt: bool) -> None:
    """Become the parent of processes whose own parent ends, or leave them to init again."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)


def _children() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def _orphans(others: set[int]) -> list[str]:
    """Processes of the run that are still there, by now children of this one."""
    deadline = time.monotonic() + 30.0  # a busy machine takes its time
    while left := {pid for pid in _children() - others if os.waitpid(pid, os.WNOHANG) == (0, 0)}:
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return [f"{len(left)} processes left behind"]
        time.sleep(0.02)
    return []


def crashes(folder: Path) -> None:
    """Drop the tracebacks that runs have kept."""
    shutil.rmtree(folder / "crashes", ignore_errors=True)
