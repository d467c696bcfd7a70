"""Many ports: child processes verify one port after the other, each under a time limit; the report is in their order.

What a run has finished is noted beside the ports; the next run with the same parameters goes on from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from porter.batch.pool import MOST, ChildDied, PoolChild, ReportPool
from porter.config import PortConfig, worker_count
from porter.model import Diagnostic, KernelReport, PorterError, Report, Severity, Status, Verdict
from porter.pipeline.open_ports import find_ports
from porter.provenance.store import read_record
from porter.regression.run_record import RunRecord
from porter.regression.settings import Settings
from porter.report.console import Progress, StageEvent, silent
from porter.source import Source, Span
from porter.wording import plural


def verify_ports(
    paths: Sequence[Path], config: PortConfig, settings: Settings | None = None, progress: Progress = silent
) -> Report:
    """Verify ports on disk (files, or folders of them), `jobs` at a time. `progress` is called by one at a time.

    Raises PorterError when there is no port in `paths`, or the backend cannot run. What is wrong with one port does not
    stop the others. On Ctrl-C the children are ended first.
    """
    settings = settings or Settings()
    ports = find_ports(paths)
    from porter.verify.backends.by_name import choose

    if choose(config.backend, config.arch[0]).name != "emulator" and not config.jobs:
        config = replace(config, jobs=1)  # ports that share a GPU would disturb each other's times
    record = RunRecord(config, settings)
    if settings.fresh:
        record.drop(ports)
    run = _Run(ports, config, settings, progress, record)
    reports = run.run()
    record.drop(ports)
    kernels = tuple(required(k, settings.require) for r in reports for k in r.kernels)
    notes = (resumed_note(run.resumed, len(ports)),) if run.resumed else ()
    return Report(kernels, (*(d for r in reports for d in r.diagnostics), *notes))


def required(kernel: KernelReport, checks: Sequence[str]) -> KernelReport:
    """The report with PRT875 in the place of checks that were required and skipped."""
    verdicts = list(kernel.verdicts)
    for check in checks:
        at = next((n for n, v in enumerate(verdicts) if v.check == check), -1)
        if at >= 0 and verdicts[at].status is not Status.SKIP:
            continue
        why = (verdicts[at].detail if at >= 0 else "") or "it was not run"
        message = f"{check} is required, but was skipped: {why}"
        help_ = "run it where the check can run, or drop `--require`"
        d = Diagnostic("PRT875", message, Span(kernel.port_path, 0), help=help_)
        verdict = Verdict(check, Status.ERROR, message, (d,))
        verdicts[at : at + 1] = [verdict] if at >= 0 else []
        verdicts += [verdict] if at < 0 else []
    return replace(kernel, verdicts=tuple(verdicts))


def resumed_note(resumed: int, ports: int) -> Diagnostic:
    message = f"{resumed} of {plural(ports, 'port')} verified by an earlier run that was interrupted"
    return Diagnostic("PRT874", message, severity=Severity.NOTE, help="`--fresh` verifies all of them again")


class _Run(ReportPool):
    """Ports in children; those that an interrupted run has finished are taken from its record."""

    doing = "verifying"

    def __init__(
        self, ports: list[Path], config: PortConfig, settings: Settings, progress: Progress, record: RunRecord
    ):
        self.settings, self.progress, self.record = settings, progress, record
        known: dict[int, Report] = {}
        for number, port in enumerate(ports):
            done = record.finished(port)
            if done is not None:
                known[number] = Report((done,))
                progress(StageEvent(done.kernel, "verified before", "done"))
        self.resumed = len(known)
        jobs = config.jobs or min(MOST, worker_count(config))
        super().__init__(ports, jobs, known)
        self.child_config = replace(config, jobs=max(1, jobs // max(1, self.workers)))

    def start(self) -> PoolChild:
        return PoolChild((self.child_config, self.settings), "porter.regression.child")

    def result(self, child: PoolChild, number: int) -> Report:
        """One port in a child, which is ended when the port takes too long. Events are passed on."""
        port = self.tasks[number]
        late = threading.Event()

        def end() -> None:
            late.set()
            child.stop()

        timer = threading.Timer(self.settings.timeout, end)
        timer.daemon = True
        timer.start()
        start, stage, name = time.perf_counter(), "parse", port.stem

        def heard(_: str, event: StageEvent) -> None:
            nonlocal name, stage
            name, stage = event.kernel, event.stage
            with self.lock:
                self.progress(event)

        try:
            report = self.ask(child, number, heard)
        except ChildDied as death:
            if late.is_set():
                return Report((late_report(port, stage, self.settings.timeout),))
            where = f" ({stage} of {name}, {time.perf_counter() - start:.1f} s after it began)"
            return self.failed(child.obituary(death.doing + where, death.span))
        finally:
            timer.cancel()
        for kernel in report.kernels:
            self.record.add(port, kernel)
        return report


def late_report(port: Path, stage: str, limit: float) -> KernelReport:
    """The report of a port that took longer than `limit` seconds: the check that it was in is ERROR."""
    from porter.verify.run import CHECKS

    message = f"not finished within {limit:g} s; it was in {stage}"
    help_ = "allow more with --timeout, or give the case fewer and smaller sizes"
    d = Diagnostic("PRT874", f"{port}: {message}", Span(str(port), 0), help=help_)
    check = stage if stage in CHECKS else "compile" if stage in ("names", "original") else "numerics"
    kernel, source = port.stem, Source(port, "")
    try:
        record = read_record(port)
        if record is not None:
            kernel, source = record.kernel, Source(Path(port.parent / record.source), "")
    except PorterError:
        pass
    return KernelReport(kernel, source, (), str(port), (), (Verdict(check, Status.ERROR, message, (d,)),))
