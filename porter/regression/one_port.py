"""One port, verified as it is now: against the original, then against its baseline or an earlier revision of itself."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter.case.reader import Case
from porter.config import PortConfig
from porter.model import Diagnostic, Hole, KernelInfo, KernelReport, PorterError, Severity, Status, Verdict, facts_of
from porter.model.facts import NumericsFacts
from porter.pipeline.compile_commands import with_build_flags
from porter.pipeline.drafts import at_source
from porter.pipeline.inputs import choose_kernels, find_case, parse, with_instances
from porter.pipeline.open_ports import changed_since, moved_map, recorded, recorded_config
from porter.pipeline.outputs import claim_in, now, port_paths
from porter.pipeline.stages import JudgeOptions, Run, run_checks
from porter.plain_files import read_plain_text
from porter.provenance.baseline import (
    BaselineRun,
    Worse,
    baseline_run,
    compare,
    is_good,
    regression_verdict,
    run_of,
    same_inputs,
    what_changed,
    with_run,
    worse_counts,
    worse_errors,
)
from porter.provenance.hole_markers import open_holes
from porter.provenance.record import PortRecord, reference_sha256, sha256_text, tool_versions
from porter.provenance.store import current_line_map, update_record
from porter.regression.contract import contract_verdict, doubtful, flag_doubts, is_recorded_case, original_doubts
from porter.regression.settings import Settings
from porter.report.console import Progress, silent
from porter.source import Source, Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


BY_CHANCE = ("errors", "counts")  # what may differ between two seeds


@dataclass(frozen=True)
class OpenPort:
    """A port on disk with all that it is verified against. `given`: with the case and the instances that were
    named for this run alone; `given_case`: with the instances that are its own or were named so."""

    path: Path
    text: str
    record: PortRecord
    config: PortConfig
    unit: ParsedUnit
    info: KernelInfo
    case: Case
    holes: tuple[Hole, ...] = ()
    given: PortConfig = field(default_factory=PortConfig)
    given_case: Case | None = None

    @property
    def named(self) -> bool:
        """Whether a person named the case for this run: then a change of it is meant."""
        return self.given.case is not None

    def baseline_run(self, verdicts: Sequence[Verdict], backend: str) -> BaselineRun:
        """What these verdicts about the port would be as a baseline."""
        run = BaselineRun(
            backend=backend,
            date=now(),
            port_sha256=sha256_text(self.text),
            source_sha256=self.unit.source.sha256,
            case_sha256=sha256_text(self.case.text),
            thorough=self.config.thorough,
            arches=self.config.arch,
            versions=tool_versions() | ({"dsl": self.config.dsl} if self.config.dsl else {}),
        )
        return baseline_run(verdicts, run)


def open_port(port_file: Path, config: PortConfig, run: Run, source: str | None = None) -> OpenPort:
    """Read a port, its record, the source (or `source` in its place) and the case. Raises PorterError."""
    record = recorded(port_file)
    given = config
    config = recorded_config(record, port_file.parent, config)
    text = port_text(port_file)
    with run.stage("parse"):
        unit = parse(Path(os.path.normpath(port_file.parent / record.source)), config, source)
        info = recorded_kernel(record, port_file, unit, config)
        asked = replace(config, instantiate=given.instantiate)
        own_case = find_case(unit, info, asked)
        case = with_instances(own_case, record.instances, unit, info)
    run.diagnostics += changed_since(record, unit, port_file)
    still = open_holes(text)
    holes = tuple(h for n, h in enumerate(record.holes, 1) if n in still)
    return OpenPort(port_file, text, record, config, unit, info, case, holes, replace(asked, case=given.case), own_case)


def port_text(port: Path) -> str:
    """The port's text. Raises PorterError PRT010 where it cannot be read or is no text."""
    try:
        return read_plain_text(port)
    except UnicodeDecodeError:
        message = f"{port} is not UTF-8 text"
    except OSError as error:
        message = f"cannot read {port}: {error.strerror}"
    raise PorterError(Diagnostic("PRT010", message, Span(str(port), 0), help="restore it, or run porter port --force"))


def recorded_kernel(record: PortRecord, port: Path, unit: ParsedUnit, config: PortConfig) -> KernelInfo:
    """The kernel that a record names; of overloads the one that this file is the port of. Raises PorterError PRT956."""
    found = choose_kernels(unit, replace(config, kernel=(record.kernel,)))
    exact = [k for k in found if k.qualified_name == record.kernel] or list(found)
    files = port_paths(unit, found, port.parent, claim_in({}))
    return next((k for k in exact if files[k.span].name == port.name), exact[0])


def verify_file(
    port_file: Path, config: PortConfig, settings: Settings | None = None, progress: Progress = silent
) -> KernelReport:
    """Verify one port as it is now, edited or not, and keep the answers in its `.port.json`. Raises PorterError.

    What only the record says of the original fails the check `contract`; then nothing is run or written. The baseline
    there is replaced only with `settings.update`, and only by answers that are good.
    """
    settings = settings or Settings()
    run = Run(port_file.stem, progress)
    start = time.perf_counter()
    record = recorded(port_file)
    config = with_build_flags(config, port_file.parent / record.source)
    doubts = flag_doubts(record, port_file, config)
    if doubts:
        source = Source(Path(os.path.normpath(port_file.parent / record.source)), "")
        return KernelReport(record.kernel, source, record.instances, str(port_file), (), (doubtful(doubts),))
    port = open_port(port_file, config, run)
    verdicts: tuple[Verdict, ...] = ()
    with run.guard(f"verifying {port.info.name}", port.info.span):
        verdicts = doubts_about(port)
        if not port.holes and not verdicts:
            verdicts = _answers(port, settings, run)
    run.seconds["total"] = time.perf_counter() - start
    return KernelReport(
        port.info.name,
        port.unit.source,
        port.record.instances,
        str(port_file),
        port.holes,
        verdicts,
        tuple(run.diagnostics),
        run.seconds,
        port.case.derived,
    )


def doubts_about(port: OpenPort) -> tuple[Verdict, ...]:
    """The verdict of `contract` where only the record says which kernel, case or instances are verified; else none."""
    case = port.given_case or port.case
    found = original_doubts(port.record, port.path, port.text, port.unit, port.info, case, port.given)
    return (doubtful(found),) if found else ()


def answers(port: OpenPort, config: PortConfig, run: Run) -> tuple[Verdict, ...]:
    """The verifier's verdicts about the port, with places in the CUDA source."""
    line_map = moved_map(current_line_map(port.path), port.path.parent)
    found = run_checks(port.path, port.unit, port.info, port.case, config, run, JudgeOptions(line_map=line_map))
    return tuple(at_source(v, port.path, line_map) for v in found)


def backend_of(verdicts: Sequence[Verdict], config: PortConfig) -> str:
    """The name of the backend that ran the launches, or that would have."""
    numerics = facts_of(verdicts, NumericsFacts)
    if numerics is not None and numerics.backend:
        return numerics.backend
    from porter.verify.backends.by_name import choose

    return choose(config.backend, config.arch[0]).name


def _answers(port: OpenPort, settings: Settings, run: Run) -> tuple[Verdict, ...]:
    contract = contract_verdict(port.record, port.path, port.named, port.unit, port.info, port.case, port.config)
    verdicts = answers(port, port.config, run)
    if contract.status is not Status.PASS:
        verdicts = (*verdicts, contract)
    achieved = port.baseline_run(verdicts, backend_of(verdicts, port.config))
    found = _regression(port, achieved, settings, run)
    kept = _keep(port, verdicts, replace(achieved, seconds=_rounded(run)), settings)
    run.diagnostics += kept
    return (contract, *(v for v in verdicts if v is not contract), *found)


def _regression(port: OpenPort, achieved: BaselineRun, settings: Settings, run: Run) -> tuple[Verdict, ...]:
    """The verdict of `regression`; none where nothing is to be compared."""
    if settings.against == "original" or port.config.dsl:
        return ()
    if settings.revision:
        from porter.regression.revision import against_revision

        return (against_revision(port, achieved, settings.revision, run),)
    was = run_of(port.record.baseline, achieved.backend)
    if was is None:
        if settings.against == "recorded" and not settings.update:
            message = f"no baseline of the {achieved.backend} is recorded for {port.path}"
            help_ = "`porter verify --update` records one"
            missing = Diagnostic("PRT876", message, Span(str(port.path), 0), help=help_)
            return (Verdict("regression", Status.ERROR, message, (missing,)),)
        return (Verdict("regression", Status.SKIP, f"no baseline of the {achieved.backend} was recorded before"),)
    if settings.update:
        return (Verdict("regression", Status.SKIP, "--update: a new baseline is recorded, not compared"),)
    worse, notes = _compared(port, was, achieved, run)
    return (regression_verdict(worse, was.name, str(port.path), notes, what_changed(was, achieved)),)


def _compared(
    port: OpenPort, was: BaselineRun, achieved: BaselineRun, run: Run
) -> tuple[list[Worse], list[Diagnostic]]:
    """What is worse. Errors grow by chance under other seeds: what grew is looked at again with the baseline's."""
    worse = compare(was, achieved)
    grown = [w for w in worse if w.kind in BY_CHANCE]
    if not grown or same_inputs(was, achieved) or achieved.checks.get("numerics") != Status.PASS.value:
        return worse, []
    rest = [w for w in worse if w.kind not in BY_CHANCE]
    if was.case_sha256 != achieved.case_sha256:
        return rest, [_note(port, f"the case has changed since {was.name}: errors and counts are not compared")]
    with run.stage("repeat"):
        again = answers(port, replace(port.config, seed=was.seed, thorough=was.thorough), Run(run.kernel))
    repeated = port.baseline_run(again, achieved.backend)
    if not same_inputs(was, repeated):
        text = f"{grown[0]}; but porter now generates other inputs than for {was.name}, so that cannot be compared"
        return rest, [_note(port, text, Severity.WARNING)]
    confirmed = [*worse_errors(was, repeated), *worse_counts(was, repeated)]
    if not confirmed:
        text = f"seed {achieved.seed} shows more ({grown[0]}); with the inputs of {was.name} nothing has grown"
        return rest, [_note(port, text)]
    return [*rest, *confirmed], []


def _note(port: OpenPort, text: str, severity: Severity = Severity.NOTE) -> Diagnostic:
    help_ = "`porter verify --update` records a new baseline" if severity is Severity.WARNING else ""
    return Diagnostic("PRT882", text, Span(str(port.path), 0), severity, help_)


def _keep(port: OpenPort, verdicts: tuple[Verdict, ...], achieved: BaselineRun, settings: Settings) -> list[Diagnostic]:
    """Write the answers into the record, and the baseline where it is the first or an update; what was not written."""
    if port.config.dsl or not settings.record:
        return []  # answers of another version of the DSL say nothing about the port as it is used
    good = is_good(verdicts)
    digest = sha256_text(port.text)

    def change(record: PortRecord) -> PortRecord:
        if port.named and is_recorded_case(record, port.path, port.case):
            now_sha256, reference = sha256_text(port.case.text), reference_sha256(port.case)
            record = replace(record, case_sha256=now_sha256, reference_sha256=reference)
        first = run_of(record.baseline, achieved.backend) is None
        known = record.verified_sha256 == digest and _statuses(record.verdicts) == _statuses(verdicts)
        if not known:  # else only seeds and times have changed, which is no news for version control
            record = replace(record, verdicts=verdicts, verified_sha256=digest)
        if good and (first or settings.update):
            record = replace(record, baseline=with_run(record.baseline, achieved))
        return record

    update_record(port.path, change)
    if settings.update and not good:
        failed = next((v for v in verdicts if v.status in (Status.FAIL, Status.ERROR)), verdicts[-1])
        message = f"no baseline was recorded for {port.path}: {failed.check} is {failed.status.value}"
        help_ = "a baseline is what a good port achieved; the earlier one is kept"
        return [Diagnostic("PRT876", message, Span(str(port.path), 0), Severity.WARNING, help_)]
    return []


def _statuses(verdicts: Sequence[Verdict]) -> list[tuple[str, Status]]:
    return [(v.check, v.status) for v in verdicts]


def _rounded(run: Run) -> dict[str, float]:
    return {stage: round(seconds, 3) for stage, seconds in run.seconds.items()}
