"""Several files at once: child processes port one file after the other, and the report is in the order of the files.

Processes, since translation and emulator are Python. A child that dies costs the file it was working on.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from porter.config import PortConfig, worker_count
from porter.crash import internal_error
from porter.inputs import unused_instantiations
from porter.model import Diagnostic, Report
from porter.outputs import Conflict, check_writable, claim_in
from porter.pipeline import port_files
from porter.report import Progress, silent
from porter.source import Span

MOST = 8  # files at once unless --jobs says more: each may take half a gigabyte
STOP_SECONDS = 3.0  # for a child to end its own children before it is killed


def port_all(paths: Sequence[Path], config: PortConfig, progress: Progress = silent) -> Report:
    """As pipeline.port_files, `jobs` files at a time (MOST at most by default). `progress` is called by one at a time.

    Raises PorterError PRT953 when the output folder cannot be used. On Ctrl-C the children are ended first.
    """
    files = list(dict.fromkeys(paths))
    jobs = config.jobs or min(MOST, worker_count(config))
    if min(jobs, len(files)) < 2:
        return port_files(files, config, progress)
    check_writable(config.output)
    return _Run(files, config, progress, min(jobs, len(files)), jobs).run()


class _Run:
    """The state that the threads share: one thread for each child."""

    def __init__(self, files: list[Path], config: PortConfig, progress: Progress, workers: int, jobs: int):
        self.files, self.config, self.progress = files, config, progress
        self.workers = workers
        self.child_config = replace(config, jobs=max(1, jobs // workers))
        self.todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(files)):
            self.todo.put(number)
        self.reports: dict[int, Report] = {}
        self.claims = Claims()
        self.children: list[Child] = []
        self.lock = threading.Lock()
        self.stopped = False

    def run(self) -> Report:
        threads = [threading.Thread(target=self.work, name=f"porter-{n}") for n in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self.stop()
            for thread in threads:
                thread.join()
            raise
        reports = [self.reports[number] for number in range(len(self.files))]
        kernels = tuple(k for r in reports for k in r.kernels)
        messages = (*(d for r in reports for d in r.diagnostics), *unused_instantiations(kernels, self.config))
        return Report(kernels, messages)

    def work(self) -> None:
        child: Child | None = None
        try:
            while True:
                with self.lock:
                    if self.stopped or self.todo.empty():
                        return
                    number = self.todo.get_nowait()
                    if child is None or not child.alive:
                        child = Child(self.child_config)
                        self.children.append(child)
                try:
                    self.reports[number] = self.port(child, number)
                except Exception as error:
                    child.stop()
                    text = f"porting {self.files[number]}"
                    self.reports[number] = Report((), (internal_error(error, traceback.format_exc(), text),))
                finally:
                    self.claims.settle(number)
        finally:
            if child is not None:
                child.close()

    def port(self, child: Child, number: int) -> Report:
        """One file in a child. Its claims are answered, its events passed on."""
        path = self.files[number]
        try:
            child.send(path)
            while True:
                kind, value = child.receive()
                if kind == "report":
                    return value
                if kind == "claim":
                    child.send(self.claims.claim(number, *value))
                else:
                    with self.lock:
                        self.progress(value)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            message = f"the process that was porting {path} {child.ending()}"
            help_ = "this is a defect of porter; the other files are ported as usual"
            return Report((), (Diagnostic("PRT950", message, Span(str(path), 0), help=help_),))

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
        self.claims.give_up()
        for child in self.children:
            child.stop()


class Claims:
    """Which file a port belongs to. Files are asked in their order, whatever the order in which they are parsed.

    A file waits for those before it, which are done or being worked on: nobody waits for one that has not begun.
    """

    def __init__(self) -> None:
        self._claim = claim_in({})
        self._turn = threading.Condition()
        self._settled: set[int] = set()
        self._next = 0
        self._given_up = False

    def claim(self, number: int, ports: Sequence[Path], source: Path) -> Conflict | None:
        """Claim ports for file `number`; the first that an earlier file has, with that file, or None."""
        with self._turn:
            self._turn.wait_for(lambda: self._next >= number or self._given_up)
            conflict = self._claim(ports, source)
        self.settle(number)
        return conflict

    def settle(self, number: int) -> None:
        """File `number` will claim nothing more."""
        with self._turn:
            self._settled.add(number)
            while self._next in self._settled:
                self._next += 1
            self._turn.notify_all()

    def give_up(self) -> None:
        """Let everybody who waits go on: the run is being ended."""
        with self._turn:
            self._given_up = True
            self._turn.notify_all()


class Child:
    """A child process (`porter.port_child`) and the pipes to it: pickles both ways. `first` is sent at once."""

    def __init__(self, first: Any, module: str = "porter.port_child"):
        root = str(Path(__file__).resolve().parents[1])
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
