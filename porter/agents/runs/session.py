"""`porter port --agent` and `--optimise`: the translator's ports, then the agent on those that need it, in runs that
can be resumed. What the agent made is written in one step, after the verifier accepted it."""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from porter import codes
from porter.agents.limiter import Limiter
from porter.agents.loop import Outcome
from porter.agents.loop import Run as AgentRun
from porter.agents.providers import Connection, Provider, connect
from porter.agents.record import ELSEWHERE, Journal
from porter.agents.runs.candidates import Candidates
from porter.agents.runs.edited_port import edited_start, started_from_edit, with_edited
from porter.agents.runs.run_store import RunFolder, new_id, write_batch, write_result, write_run
from porter.agents.runs.verifier import PortVerifier, subject_of
from porter.agents.settings import AgentSettings
from porter.agents.shared_budget import Cancelled
from porter.batch.port_files import port_all
from porter.config import PortConfig
from porter.files.atomic import writing_failed
from porter.files.folders import files_below
from porter.model import Diagnostic, KernelReport, PorterError, Report, Status
from porter.pipeline.compile_commands import with_build_flags
from porter.pipeline.drafts import at_source
from porter.pipeline.inputs import choose_kernels, find_case, parse
from porter.pipeline.outputs import Translation, claim_in, make_record, port_paths
from porter.pipeline.stages import Run, translate
from porter.provenance.json import verdict_to_json
from porter.provenance.record import sha256_text
from porter.provenance.store import read_record, write_port
from porter.report.console import Progress, is_verified, silent
from porter.report.internal_errors import internal_error
from porter.source import Span
from porter.wording import plural

Say = Callable[[str], None]
GRACE = 10.0  # seconds that candidates have to clean up after Ctrl-C


@dataclass(frozen=True)
class Task:
    """A kernel to work on, with all that a run of it needs."""

    folder: RunFolder
    made: Translation

    @property
    def kernel(self) -> str:
        return self.made.info.name

    @property
    def verifier(self) -> PortVerifier:
        assert self.made.case is not None
        return PortVerifier(self.made, self.made.case, self.folder.config, self.folder.target)


@dataclass(frozen=True)
class Result:
    """What the agent did for one kernel; `report` is the kernel as it is now, `error` what kept the run from ending."""

    task: Task
    outcome: Outcome | None
    report: KernelReport | None = None
    error: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kernel": self.task.kernel, "source": str(self.task.folder.source), "run": self.task.folder.id
        }  # fmt: skip
        if self.outcome:
            found |= result_json(self.outcome)
        return found | ({"error": [d.message for d in self.error]} if self.error else {})


@dataclass
class Session:
    """What the runs of one command share: who is asked, at what pace, who is told."""

    provider: Provider | None
    secrets: tuple[str, ...] = ()
    limiter: Limiter = field(default_factory=Limiter)
    say: Say = lambda line: None
    stop: threading.Event = field(default_factory=threading.Event)  # set by Ctrl-C


def connect_session(settings: AgentSettings, key: str, say: Say) -> Session:
    """A session with the settings' provider, or one that can only replay when `key` is ""."""
    provider = connect(settings.provider, Connection(key, settings.base_url, settings.timeout)) if key else None
    return Session(provider, (key,) if key else (), Limiter(settings.requests_per_minute), say)


# ---------------------------------------------------------------- from files to results


def improve_files(
    paths: Sequence[Path],
    config: PortConfig,
    settings: AgentSettings,
    session: Session,
    modes: Sequence[bool] = (False,),
    progress: Progress = silent,
) -> tuple[Report, list[Result]]:
    """Port the files, then have the agent work on them. `modes` has False for what has holes or failed, True to
    optimise what is verified."""
    report = port_all(paths, config, progress)
    report = with_edited(report, config, lambda k, port: translation_of(k, config, port), progress)
    tasks = [t for optimise in modes for t in prepare(report, config, settings, optimise)]
    if len(tasks) > 1:
        batch = settings.runs / new_id("batch")
        write_batch(batch, [t.folder for t in tasks])
        session.say(f"{plural(len(tasks), 'run')}; after an interruption: porter agent resume {batch.name}")
    results = run_tasks(tasks, session, config.jobs or 1)
    return merged(report, results), results


def needs_agent(kernel: KernelReport, optimise: bool) -> bool:
    """Whether there is something for the agent to do on a port that the translator made and wrote. A case that nobody
    has confirmed is no judge of what a model writes."""
    if not kernel.port_path or kernel.derived or kernel.unverified:
        return False
    if optimise:
        return is_verified(kernel)
    return bool(kernel.holes) or any(v.status is Status.FAIL for v in kernel.verdicts)


def prepare(report: Report, config: PortConfig, settings: AgentSettings, optimise: bool) -> list[Task]:
    """Tasks for the kernels that need the agent, their folders written: from here on everything can be resumed."""
    tasks = []
    for kernel in report.kernels:
        if needs_agent(kernel, optimise):
            target = Path(kernel.port_path)
            made = translation_of(kernel, config, target)
            tasks.append(new_task(made, target, config, settings, optimise))
    return tasks


def translation_of(kernel: KernelReport, config: PortConfig, target: Path) -> Translation:
    return translation(kernel.source.path, replace(config, kernel=(kernel.kernel,)), target)


def translation(path: Path, config: PortConfig, target: Path | None = None) -> Translation:
    """The translator's work on the kernel of a file whose port is `target` (None: the first) again: deterministic, and
    cheap beside a request."""
    config = with_build_flags(config, path)
    unit = parse(path, config)
    kernels = choose_kernels(unit, config)
    ports = port_paths(unit, kernels, config.output, claim_in({}))
    info = next((k for k in kernels if target is None or ports[k.span] == target), kernels[0])
    return translate(unit, info, find_case(unit, info, config), config, Run(info.name))


def new_task(made: Translation, target: Path, config: PortConfig, settings: AgentSettings, optimise: bool) -> Task:
    """A run that starts from the port as it is, where it was edited since the translator wrote it."""
    start = edited_start(made, target)
    if start is not None:
        made = started_from_edit(made, start, target.read_text(encoding="utf-8"))
    folder = RunFolder(
        settings.runs / new_id(made.info.name),
        made.unit.source.path,
        made.unit.source.sha256,
        sha256_text(made.case.text) if made.case else "",
        made.info.qualified_name or made.info.name,
        target,
        made.module.text,
        optimise,
        config,
        settings,
        start,
    )
    write_run(folder)
    return Task(folder, made)


def resume_task(folder: RunFolder) -> Task:
    """The task of a run on disk. Raises PorterError PRT926 when source, case or translator are not what they were."""
    made = translation(folder.source, replace(folder.config, kernel=(folder.kernel,)), folder.target)
    changed = []
    if made.unit.source.sha256 != folder.source_sha256:
        changed.append(str(folder.source))
    if (sha256_text(made.case.text) if made.case else "") != folder.case_sha256:
        changed.append("the case")
    if not changed and made.module.text != (folder.start.translated if folder.start else folder.base):
        changed.append("what the translator makes of it")
    if changed:
        message = f"{' and '.join(changed)} changed since the run {folder.id} was started"
        raise PorterError(
            Diagnostic(codes.RUN_CANNOT_RESUME, message, Span(str(folder.path), 0), help="start a new run")
        )
    return Task(folder, started_from_edit(made, folder.start, folder.base) if folder.start else made)


def run_tasks(tasks: Sequence[Task], session: Session, jobs: int) -> list[Result]:
    """All tasks, `jobs` at once; requests of all share one pace. In the order of the tasks."""
    if min(jobs, len(tasks)) < 2:
        return [run_task(t, session) for t in tasks]
    results: dict[int, Result] = {}
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(tasks)):
        todo.put(number)

    def work() -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            results[number] = run_task(tasks[number], session)

    # Daemons: Ctrl-C ends the command at once; what was done is in the records.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(tasks)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except KeyboardInterrupt:
        session.stop.set()  # candidates have places to remove
        end = time.monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        raise
    return [results[number] for number in range(len(tasks))]


def run_task(task: Task, session: Session) -> Result:
    """One run from where its record ends. Writes the port when the verifier accepted something better."""
    folder = task.folder

    def say(line: str) -> None:
        session.say(f"{task.kernel}: {line}")

    if folder.start:
        say(f"starts from {folder.target} as it is, which was edited since porter wrote it")
    say(f"run {folder.path}; after an interruption: porter agent resume {folder.id}")
    try:
        with locked(folder):
            outcome = work_on(task, session, say)
            report = write_outcome(task, outcome) if outcome.changed else None
            write_result(folder, result_json(outcome), outcome.candidate)
    except Cancelled:
        return Result(task, None)
    except PorterError as error:
        return Result(task, None, None, error.diagnostics)
    except Exception as error:
        return Result(task, None, None, (internal_error(error, traceback.format_exc(), f"the run {folder.id}"),))
    return Result(task, outcome, report)


def work_on(task: Task, session: Session, say: Say) -> Outcome:
    """The run itself: one attempt after the other, or several candidates at once."""
    folder, made = task.folder, task.made
    subject = subject_of(made, folder.optimise)
    if folder.settings.candidates > 1:
        files = [made.unit.source.path, *([made.case.path] if made.case and made.case.path.exists() else [])]
        return Candidates(
            folder, subject, task.verifier, files, session.provider, session.secrets, session.limiter, say, session.stop
        ).go()
    journal = Journal(folder.events, session.secrets)
    try:
        if session.provider is not None:
            journal.reopen()
        return AgentRun(subject, task.verifier, session.provider, folder.settings, journal, session.limiter, say).go()
    finally:
        journal.close()


@contextmanager
def locked(folder: RunFolder) -> Iterator[None]:
    """One process at a time works on a run. Raises PorterError PRT926 when another one does, PRT953 where that cannot
    be found out."""
    lock = FileLock(folder.path / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise PorterError(
            Diagnostic(
                codes.RUN_CANNOT_RESUME, f"another porter is working on the run {folder.id}", Span(str(folder.path), 0)
            )
        ) from None
    except OSError as error:
        raise writing_failed(folder.path, error, ELSEWHERE) from error
    try:
        yield
    finally:
        lock.release()


def write_outcome(task: Task, outcome: Outcome) -> KernelReport:
    """Write the agent's port and its record: in one step, and the same again when the run is resumed."""
    made, target, config = task.made, task.folder.target, task.folder.config
    # No text with an open hole is kept: a hole that is filled wrong cannot be told from one that is not.
    module = replace(made.module, text=outcome.text, line_map=outcome.line_map, holes=())
    verdicts = tuple(at_source(v, target, outcome.line_map, target.name) for v in outcome.verdicts)
    if not written_already(target, outcome):
        done = replace(made, module=module)
        record = replace(make_record(done, target, verdicts, config), extra={"agent": result_json(outcome)})
        start = task.folder.start
        translated, over = (start.translated, task.folder.base) if start else (made.module.text, None)
        write_port(target, outcome.text, record, force=config.force, translated=translated, over=over)
    derived = made.case.derived if made.case is not None else ""
    return KernelReport(
        made.info.name, made.unit.source, made.instances, str(target), (), verdicts, module.notes, {}, derived
    )


def written_already(target: Path, outcome: Outcome) -> bool:
    """Whether port and record are there as this very run made them: then the record may have newer verdicts by now."""
    try:
        record, text = read_record(target), target.read_text(encoding="utf-8")
    except (PorterError, OSError, UnicodeDecodeError):
        return False
    if record is None or text != outcome.text:
        return False
    return bool(record.extra.get("agent") == json.loads(json.dumps(result_json(outcome))))


def result_json(outcome: Outcome) -> dict[str, Any]:
    """What `result.json`, `.port.json` and `--output-format json` say of a run."""
    return {
        "state": outcome.state,
        "ended": outcome.ended,
        "message": outcome.message,
        "model": outcome.settings.model,
        "cost": outcome.cost,
        "kept": [{"attempt": k.attempt, "regions": list(k.regions), "fixed": k.check} for k in outcome.kept],
        "spent": outcome.spent.to_json(),
        "unseen": [{k: verdict_to_json(v)[k] for k in ("check", "status", "detail")} for v in outcome.unseen],
        "not_verified": not_verified(outcome),
    } | ({"candidate": outcome.chosen, "candidates": candidates_json(outcome)} if outcome.candidates else {})


def candidates_json(outcome: Outcome) -> list[dict[str, Any]]:
    """What each candidate came to."""
    return [
        {
            "state": o.state, "ended": o.ended, "message": o.message, "cost": o.cost, "attempts": o.spent.attempts,
            "tokens": o.spent.usage.total, "kept": [str(k) for k in o.kept],
        }
        for o in outcome.candidates
    ]  # fmt: skip


def not_verified(outcome: Outcome) -> list[str]:
    """What no check of the run has answered, with the reason: about the port that is kept, or its best candidate."""
    if outcome.ended == "no-case":
        return ["everything: there is no case"]
    verdicts = outcome.unseen or outcome.verdicts
    return [f"{v.check}: {v.detail}" for v in verdicts if v.status in (Status.SKIP, Status.ERROR)]


def merged(report: Report, results: Sequence[Result]) -> Report:
    """The report with the kernels as the agent left them."""
    by_port = {r.report.port_path: r for r in results if r.report}

    def now(kernel: KernelReport) -> KernelReport:
        result = by_port.get(kernel.port_path)
        if result is None or result.report is None:
            return kernel
        return replace(result.report, seconds=kernel.seconds)

    errors = tuple(d for r in results for d in r.error)
    return Report(tuple(now(k) for k in report.kernels), (*report.diagnostics, *errors))


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and the .cu files below the folders named."""
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(files_below(path, ".cu") if path.is_dir() else [path])
    return list(found)
