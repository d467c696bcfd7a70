"""Child processes that work on one task after the other, a thread of this process for each.

Processes, since translation and emulator are Python. A child that dies costs the task it was working on.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from porter import codes
from porter.model import Diagnostic, Report
from porter.report.internal_errors import ended_by, internal_error
from porter.source import Span

MOST = 8  # children at once unless --jobs says more: each may take half a gigabyte
STOP_SECONDS = 3.0  # for a child to end its own children before it is killed


class ChildPool:
    """The state that the threads share. `reports` are those of the tasks, by number; known ones are not worked on."""

    doing = "working on"  # a task, for messages

    def __init__(self, tasks: Sequence[Path], workers: int, known: dict[int, Report] | None = None):
        self.tasks = tasks
        self.reports = dict(known or {})
        self.todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(tasks)):
            if number not in self.reports:
                self.todo.put(number)
        self.workers = min(workers, self.todo.qsize())
        self.children: list[PoolChild] = []
        self.lock = threading.Lock()
        self.stopped = False

    def start(self) -> PoolChild:
        """A new child."""
        raise NotImplementedError

    def report(self, child: PoolChild, number: int) -> Report:
        """The report of a task that `child` works on. What is raised is reported as a defect, and ends the child."""
        raise NotImplementedError

    def settled(self, number: int) -> None:
        """A task is done, well or not."""

    def given_up(self) -> None:
        """The run is being ended; the children are about to be."""

    def run(self) -> tuple[Report, ...]:
        """The reports in the order of the tasks. On Ctrl-C the children are ended first."""
        threads = [threading.Thread(target=self._work, name=f"porter-{n}") for n in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self._stop()
            for thread in threads:
                thread.join()
            raise
        return tuple(self.reports[number] for number in range(len(self.tasks)))

    def _work(self) -> None:
        child: PoolChild | None = None
        try:
            while True:
                with self.lock:
                    if self.stopped or self.todo.empty():
                        return
                    number = self.todo.get_nowait()
                    if child is None or not child.alive:
                        child = self.start()
                        self.children.append(child)
                try:
                    self.reports[number] = self.report(child, number)
                except Exception as error:
                    child.stop()
                    text = f"{self.doing} {self.tasks[number]}"
                    self.reports[number] = Report((), (internal_error(error, traceback.format_exc(), text),))
                finally:
                    self.settled(number)
        finally:
            if child is not None:
                child.close()

    def _stop(self) -> None:
        with self.lock:
            self.stopped = True
        self.given_up()
        for child in self.children:
            child.stop()


class PoolChild:
    """A child process (`python -m module`) and the pipes to it: pickles both ways. `first` is sent at once."""

    def __init__(self, first: Any, module: str):
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
        )
        with contextlib.suppress(BrokenPipeError):  # whoever asks it next learns that it is gone
            self.send(first)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, value: Any) -> None:
        """Raises BrokenPipeError when the child is gone."""
        assert self.process.stdin
        pickle.dump(value, self.process.stdin)
        self.process.stdin.flush()

    def receive(self) -> tuple[str, Any]:
        """What the child says next. Raises EOFError or UnpicklingError when it has died."""
        assert self.process.stdout
        return pickle.load(self.process.stdout)

    def ending(self) -> str:
        """How the child ended, for a message."""
        code = self.process.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def obituary(self, doing: str, span: Span) -> Diagnostic:
        """The message about a task in which the child died."""
        code = self.process.wait()
        if code < 0:
            return ended_by(-code, doing, span)
        return Diagnostic(codes.PROCESS_KILLED, f"the process ended with exit code {code} while {doing}", span)

    def stop(self) -> None:
        """End the child now. It first ends its own children, which a kill would leave to notice by themselves."""
        if self.alive:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self) -> None:
        """Nothing more to do: the child ends when it reads the end of its input."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()
