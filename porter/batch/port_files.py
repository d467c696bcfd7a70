"""Several files at once: child processes port one file after the other, and the report is in the order of the files."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from porter.batch.pool import MOST, ChildDied, PoolChild, ReportPool
from porter.config import PortConfig, worker_count
from porter.model import Report
from porter.pipeline.inputs import unused_instantiations
from porter.pipeline.outputs import Conflict, check_writable, claim_in, each_once
from porter.pipeline.stages import port_files
from porter.pipeline.unchanged import known_reports
from porter.report.console import Progress, silent
from porter.report.file_count import FileCount


def port_all(paths: Sequence[Path], config: PortConfig, progress: Progress = silent) -> Report:
    """As pipeline.port_files, `jobs` files at a time (MOST at most by default). `progress` is called by one at a time.

    Raises PorterError PRT953 when the output folder cannot be used. On Ctrl-C the children are ended first.
    """
    files = each_once(paths)
    jobs = config.jobs or min(MOST, worker_count(config))
    if len(files) < 2 or config.jobs == 1:
        return port_files(files, config, progress)
    check_writable(config.output)
    known = known_reports(files, config)
    rest = [path for path in files if path not in known]
    count = FileCount(len(files), progress, len(known))
    made = _Run(rest, config, progress, min(jobs, len(rest)), jobs, count).run() if rest else []
    answers = known | dict(zip(rest, made, strict=True))
    reports = [answers[path] for path in files]
    kernels = tuple(k for r in reports for k in r.kernels)
    messages = (*(d for r in reports for d in r.diagnostics), *unused_instantiations(kernels, config))
    return Report(kernels, messages)


class _Run(ReportPool):
    """Files in children, with what they may claim."""

    doing = "porting"

    def __init__(
        self, files: list[Path], config: PortConfig, progress: Progress, workers: int, jobs: int, count: FileCount
    ):
        super().__init__(files, workers)
        self.progress, self.count = progress, count
        self.child_config = replace(config, jobs=max(1, jobs // workers))
        self.claims = Claims()

    def start(self) -> PoolChild:
        return PoolChild(self.child_config, "porter.batch.port_child")

    def result(self, child: PoolChild, number: int) -> Report:
        """One file in a child. Its claims are answered, its events passed on."""

        def heard(kind: str, value: Any) -> None:
            if kind == "claim":
                child.send(self.claims.claim(number, *value))
            else:
                with self.lock:
                    self.progress(value)

        try:
            return self.ask(child, number, heard)
        except ChildDied as death:
            return self.failed(child.obituary(death.doing, death.span))

    def settled(self, number: int) -> None:
        self.claims.settle(number)
        with self.lock:
            self.count.add(self.tasks[number])

    def given_up(self) -> None:
        self.claims.give_up()


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
