"""Child processes that work on one task after the other, a thread of this process for each.

Processes, since translation and emulator are Python. A child that dies costs the task it was working on.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from porter.model import Diagnostic, Report
from porter.report.internal_errors import ended_by, internal_error
from porter.source import Span

MOST = 8  # children at once unless --jobs says more: each may take half a gigabyte
STOP_SECONDS = 3.0  # for a child to end its own children before it is killed


class Child(Protocol):
    """What the pool asks of a child."""

    @property
    def alive(self) -> bool:
        """Whether it takes another task."""

    def stop(self) -> None:
        """End it now."""

    def close(self) -> None:
        """There is nothing more to do."""


C = TypeVar("C", bound=Child)
Result = TypeVar("Result")


class ChildPool(Generic[C, Result]):
    """The state that the threads share. `results` are those of the tasks, by number; known ones are not worked on."""

    doing = "working on"  # a task, for messages

    def __init__(self, tasks: Sequence[Path], workers: int, known: dict[int, Result] | None = None):
        self.tasks = tasks
        self.results = dict(known or {})
        self.todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(tasks)):
            if number not in self.results:
                self.todo.put(number)
        self.workers = min(workers, self.todo.qsize())
        self.children: list[C] = []
        self.lock = threading.Lock()
        self.stopped = False

    def start(self) -> C:
        """A new child."""
        raise NotImplementedError

    def result(self, child: C, number: int) -> Result:
        """The result of a task that `child` works on. What is raised is reported as a defect, and ends the child."""
        raise NotImplementedError

    def failed(self, message: Diagnostic) -> Result:
        """The result of a task of which there is only a message."""
        raise NotImplementedError

    def settled(self, number: int) -> None:
        """A task is done, well or not."""

    def given_up(self) -> None:
        """The run is being ended; the children are about to be."""

    def run(self) -> tuple[Result, ...]:
        """The results in the order of the tasks. On Ctrl-C the children are ended first."""
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
        return tuple(self.results[number] for number in range(len(self.tasks)))

    def _work(self) -> None:
        child: C | None = None
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
                    self.results[number] = self.result(child, number)
                except Exception as error:
                    child.stop()
                    text = f"{self.doing} {self.tasks[number]}"
                    self.results[number] = self.failed(internal_error(error, traceback.format_exc(), text))
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


class ReportPool(ChildPool["PoolChild", Report]):
    """Children that answer with reports."""

    def failed(self, message: Diagnostic) -> Report:
        return Report((), (message,))

    def ask(self, child: PoolChild, number: int, heard: Callable[[str, Any], None]) -> Report:
        """The report of a task in a child; all else that the child says goes to `heard`. Raises ChildDied."""
        task = self.tasks[number]
        beginning = f"{self.doing} {task}", Span(str(task), 0)
        doing = beginning
        try:
            child.send(task)
            while True:
                kind, value = child.receive()
                if kind == "report":
                    return value
                if kind == "doing":
                    doing = value if value[0] else beginning
                else:
                    heard(kind, value)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise ChildDied(*doing) from None


class ChildDied(Exception):
    """A child ended while it was `doing` something with what is at `span`."""

    def __init__(self, doing: str, span: Span):
        super().__init__(doing)
        self.doing, self.span = doing, span


class ChildProcess:
    """`python -m module` and the pipes to it. `path`: where it finds modules, beside porter's own."""

    def __init__(self, module: str, path: Sequence[str], quiet: bool = False):
        root = str(Path(__file__).resolve().parents[2])
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([root, *path])},
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
        )
        assert self.process.stdin and self.process.stdout
        self.requests, self.answers = self.process.stdin, self.process.stdout

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

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
        for pipe in (self.requests, self.answers):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()


class PoolChild(ChildProcess):
    """A child that serves (porter.batch.child): pickles both ways. `first` is sent at once."""

    def __init__(self, first: Any, module: str):
        super().__init__(module, [p for p in (os.environ.get("PYTHONPATH", ""),) if p])
        with contextlib.suppress(BrokenPipeError):  # whoever asks it next learns that it is gone
            self.send(first)

    def send(self, value: Any) -> None:
        """Raises BrokenPipeError when the child is gone."""
        pickle.dump(value, self.requests)
        self.requests.flush()

    def receive(self) -> tuple[str, Any]:
        """What the child says next. Raises EOFError or UnpicklingError when it has died."""
        return pickle.load(self.answers)

    def obituary(self, doing: str, span: Span) -> Diagnostic:
        """The message about a task in which the child died."""
        code = self.process.wait()
        if code < 0:
            return ended_by(-code, doing, span)
        return Diagnostic("PRT968", f"the process ended with exit code {code} while {doing}", span)
