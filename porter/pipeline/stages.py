"""parse -> plan -> emit -> verify -> write: the only place where the order of the stages lives."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes, ir
from porter.case.instances import instance_values
from porter.case.reader import Case
from porter.config import PortConfig, worker_count
from porter.emit.spelling import module as module_name
from porter.model import (
    Diagnostic,
    EditedPort,
    Instance,
    KernelInfo,
    KernelReport,
    LineMapEntry,
    PortedModule,
    PorterError,
    Report,
    Severity,
    Status,
    Verdict,
)
from porter.pipeline.cases import case_to_port
from porter.pipeline.compile_commands import with_build_flags
from porter.pipeline.drafts import at_source, compiled, drafted
from porter.pipeline.inputs import (
    are_guessed,
    case_if_any,
    check_dtypes,
    choose_instances,
    choose_kernels,
    file_messages,
    instances_asked,
    instances_without_when,
    parse,
    unused_instantiations,
)
from porter.pipeline.outputs import (
    Claim,
    Translation,
    check_writable,
    claim_in,
    each_once,
    hole_messages,
    make_record,
    port_paths,
)
from porter.pipeline.style import explained, in_style, verified_over_tensors
from porter.pipeline.unchanged import known_reports, remember
from porter.process.limits import limited
from porter.provenance.line_map import cuda_span
from porter.provenance.store import refuse_edited, write_port
from porter.report.console import Progress, StageEvent, silent
from porter.report.file_count import FileCount
from porter.report.internal_errors import internal_error
from porter.source import Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


@dataclass
class Run:
    """What one kernel's way through the stages leaves behind: times, messages, and who is told about progress."""

    kernel: str
    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    edited_port: str = ""  # the port that was not overwritten, since somebody edited it

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage (repeats add up) and tell the progress when it starts, ends or fails."""
        self.progress(StageEvent(self.kernel, name, "running"))
        start, state = time.perf_counter(), "error"
        try:
            yield
            state = "done"
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.progress(StageEvent(self.kernel, name, state, seconds=self.seconds[name]))

    def took(self, name: str, seconds: float) -> None:
        """Note the time of work that ran beside other stages, so that the times of a kernel may add up to more."""
        self.seconds[name] = seconds
        self.progress(StageEvent(self.kernel, name, "done", seconds=seconds))

    @contextmanager
    def guard(self, doing: str, span: Span) -> Iterator[None]:
        """Turn what goes wrong inside into messages of this kernel, so that the other kernels go on."""
        try:
            yield
        except PorterError as error:
            self.diagnostics += error.diagnostics
            if isinstance(error, EditedPort):
                self.edited_port = str(error.port)
        except Exception as error:
            self.diagnostics.append(internal_error(error, traceback.format_exc(), doing, span))


def port_files(paths: Sequence[Path], config: PortConfig, progress: Progress = silent) -> Report:
    """Port the kernels of several files into `config.output`. What is wrong with one file does not stop the others."""
    reports: list[Report] = []
    claim = claim_in({})
    check_writable(config.output)
    files = each_once(paths)
    known = known_reports(files, config)
    if config.verify and len(known) < len(files):
        from porter.verify.compile.worker import warm

        warm()  # importing the DSL takes a second, and parsing can go on meanwhile
    count = FileCount(len(files), progress, len(known))
    for path in files:
        if path in known:
            reports.append(known[path])
            continue
        try:
            reports.append(port(path, config, progress, claim))
        except PorterError as error:
            reports.append(Report((), error.diagnostics))
        count.add(path)
    kernels = tuple(k for r in reports for k in r.kernels)
    return Report(kernels, (*(d for r in reports for d in r.diagnostics), *unused_instantiations(kernels, config)))


def port(path: Path, config: PortConfig, progress: Progress = silent, claim: Claim | None = None) -> Report:
    """Port the kernels of one file. Raises PorterError when the file as a whole cannot be ported."""
    start = time.perf_counter()
    config = with_build_flags(config, path)
    unit = parse(path, config)
    parsed = time.perf_counter() - start
    kernels = choose_kernels(unit, config)
    ports = port_paths(unit, kernels, config.output, claim or claim_in({}))
    reports = [port_kernel(unit, info, config, ports[info.span], progress, parsed) for info in kernels]
    report = Report(tuple(reports), file_messages(unit))
    remember(path, config, unit, report)
    return report


def port_kernel(
    unit: ParsedUnit, info: KernelInfo, config: PortConfig, target: Path, progress: Progress, parsed: float
) -> KernelReport:
    """One kernel through all stages. Never raises but for Ctrl-C: what goes wrong is in the report."""
    run = Run(info.name, progress, {"parse": parsed})
    start = time.perf_counter()
    module: PortedModule | None = None
    instances: tuple[Instance, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    written = unverified = ""
    case: Case | None = None
    with run.guard(f"porting {info.name}", info.span):
        if info.errors:
            raise PorterError(*info.errors)
        with run.stage("case"):
            found = case_to_port(unit, info, config)
        case = found.case
        if case is not None:
            run.diagnostics += instances_without_when(case, info, config)
        elif config.verify:
            unverified = "no case says what the kernel is launched with"
        run.diagnostics += [found.message] if found.message else []
        made = translate(unit, info, case, config, run)
        module, instances = made.module, made.instances
        if config.style == "tensor" and config.verify and not module.holes and case is not None:
            with run.guard(f"lifting {info.name}", info.span):
                made, verdicts, notes = verified_over_tensors(made, config, lambda m: verify(m, target, config, run))
                run.diagnostics += notes
                module = made.module
        if not config.force:
            refuse_edited(target, module.text, make_record(made, target, (), config))
        if not verdicts and config.verify and not module.holes and case is not None:
            with run.guard(f"verifying {info.name}", info.span):  # a defect there does not lose the port
                verdicts = verify(made, target, config, run)
        write_port(target, module.text, make_record(made, target, verdicts, config), force=config.force)
        written = str(target)
        run.diagnostics += [*module.notes, *hole_messages(module, written)]
    run.seconds["total"] = parsed + time.perf_counter() - start
    return KernelReport(
        info.name,
        unit.source,
        instances,
        written,
        module.holes if module else (),
        verdicts,
        tuple(run.diagnostics),
        run.seconds,
        case.derived if case is not None else "",
        unverified=unverified,
        guessed=bool(instances) and are_guessed(unit, info, case, config),
        edited_port=run.edited_port,
    )


# ---------------------------------------------------------------- lower, plan, emit


def lower(
    unit: ParsedUnit, info: KernelInfo, instances: tuple[Instance, ...], case: Case | None = None
) -> tuple[ir.Kernel, ...]:
    """The kernel's typed IR at each instance. Raises PorterError: parse errors inside it, arguments that do not fit.

    Variables whose values the case gives are parameters.
    """
    from porter.frontend.case.symbols import wanted
    from porter.frontend.instances.lowered import lowered

    return lowered(unit, info, instances, wanted(case))


def translate(
    unit: ParsedUnit,
    info: KernelInfo,
    case: Case | None,
    config: PortConfig,
    run: Run,
    instances: tuple[Instance, ...] = (),
) -> Translation:
    """Lower, plan and emit one kernel, at `instances` where they are given. Raises PorterError."""
    from porter.emit.module import emit_module
    from porter.emit.plan import PlanOptions, make_plan

    with limited(f"translating {info.name}", info.span, config.cpu_limit, "cpu_limit", config.memory_limit):
        with run.stage("parse"):
            instances = instances or choose_instances(unit, info, case, config)
            kernels = lower(unit, info, instances, case)
            if case is not None:
                check_dtypes(case, info, instances, kernels)
        with run.stage("plan"):
            case, instances, kernels, notes = _of_one_port(info, case, config, instances, kernels)
            plan = make_plan(list(kernels), info, case, PlanOptions(config.standalone, unit.source, instances))
        with run.stage("emit"):
            module = emit_module(plan)
            module = replace(module, notes=(*notes, *module.notes, *undefined(info, instances, kernels)))
    return Translation(unit, info, case, instances, kernels, plan, module)


def _of_one_port(
    info: KernelInfo,
    case: Case | None,
    config: PortConfig,
    instances: tuple[Instance, ...],
    kernels: tuple[ir.Kernel, ...],
) -> tuple[Case | None, tuple[Instance, ...], tuple[ir.Kernel, ...], tuple[Diagnostic, ...]]:
    """Case, instances and kernels without the instances that take other parameters than most do, where nobody asked
    for them by name, and a warning about these."""
    from porter.emit.plan import alike

    if len(kernels) < 2 or instances_asked(info, config) or (case is not None and not case.derived):
        return case, instances, kernels, ()
    kept = alike(kernels)
    left = [str(i) for n, i in enumerate(instances) if n not in kept]
    if not left:
        return case, instances, kernels, ()
    chosen = tuple(instances[n] for n in kept)
    if case is not None:
        case = replace(case, instances=tuple(i for i in case.instances if i.instance in chosen))
    others = ", ".join(info.name + i for i in left)
    what = f"{others} takes other parameters than {info.name}{chosen[0]}: not in this port"
    help_ = "port it with --instantiate, into a folder of its own (-o)"
    note = Diagnostic(codes.PARAMETERS_DIFFER_BY_INSTANCE, what, info.span, Severity.WARNING, help_)
    return case, chosen, tuple(kernels[n] for n in kept), (note,)


def undefined(info: KernelInfo, instances: Sequence[Instance], kernels: Sequence[ir.Kernel]) -> list[Diagnostic]:
    """Warnings of what the original reads though it has no value, of one instance each (PRT852)."""
    from porter.verify.original.undefined_reads import as_diagnostics, undefined_reads

    by_place: dict[Span, Diagnostic] = {}
    for instance, kernel in zip(instances, kernels, strict=True):
        for message in as_diagnostics(undefined_reads(kernel), info.name, str(instance)):
            by_place.setdefault(message.span, message)
    return list(by_place.values())


def show_stage(path: Path, config: PortConfig, stage: str) -> tuple[str, tuple[Diagnostic, ...], int]:
    """What `--emit` prints: the text of one stage (ir, plan, py or ptx) for the kernels of a file, messages, exit code.
    The stage "style" is what `--explain-style` prints.

    Writes nothing the user keeps. Works without a case. Raises PorterError.
    """
    from porter.ir.printer import format_kernel

    config = with_build_flags(config, path)
    unit = parse(path, config)
    texts: list[str] = []
    messages: list[Diagnostic] = []
    holes = 0
    for info in choose_kernels(unit, config):
        case = case_if_any(unit, info, config)
        if stage == "ir":
            texts += [format_kernel(k) for k in lower(unit, info, choose_instances(unit, info, case, config), case)]
            continue
        made = in_style(translate(unit, info, case, config, Run(info.name)), config.style)
        messages += [*made.module.notes, *hole_messages(made.module, f"{module_name(path.stem)}.py")]
        holes += len(made.module.holes)
        if stage == "style":
            texts.append(explained(made))
        elif stage == "ptx":
            texts += compile_to_ptx(made, config)
        else:
            texts.append(str(made.plan) if stage == "plan" else made.module.text)
    return "\n".join(t.rstrip("\n") + "\n" for t in texts), (*file_messages(unit), *messages), int(holes > 0)


def compile_to_ptx(made: Translation, config: PortConfig) -> list[str]:
    """The PTX of a translated kernel at each instance and architecture. Raises PorterError PRT811 when one fails."""
    with drafted(made.module.text, f"{module_name(made.unit.source.path.stem)}.py") as draft:
        results = compiled(draft, made.info, made.instances, config.arch, worker_count(config))
    for result in results:
        if not result.ok:
            span = cuda_span(made.module.line_map, result.line)
            raise PorterError(Diagnostic(codes.DOES_NOT_COMPILE, f"the port does not compile: {result.error}", span))
    return [f"// {made.info.name} {dict(r.request.constexprs)} {r.request.arch}\n{r.ptx}" for r in results]


# ---------------------------------------------------------------- verify


def verify(made: Translation, target: Path, config: PortConfig, run: Run) -> tuple[Verdict, ...]:
    """The verifier's answers about a translated kernel.

    The port is judged in a folder of its own: nothing that the user has is replaced before the answer is there.
    """
    assert made.case is not None
    for instance in made.instances:  # what cannot be computed is the case's fault, and known before the port runs
        values = instance_values(made.info, instance)
        made.case.launch_at(made.case.point_at({}, values), values)
    line_map = made.module.line_map
    with drafted(made.module.text, str(target)) as draft:
        options = JudgeOptions(line_map=line_map)
        verdicts = run_checks(draft.path, made.unit, made.info, made.case, config, run, options)
        return tuple(at_source(draft.verdict(v), target, line_map) for v in verdicts)


@dataclass(frozen=True)
class JudgeOptions:
    """How a port is judged, where not as `porter port` does it."""

    oracle: Path | None = None  # another port of the kernel, in the place of the original
    line_map: tuple[LineMapEntry, ...] = ()
    launches: int = 0  # of an instance; 0: the verifier's own choice
    seconds: float = 0.0  # for all launches; 0: the verifier's own choice
    without: tuple[str, ...] = ()  # checks that are left out


def run_checks(
    port: Path,
    unit: ParsedUnit,
    info: KernelInfo,
    case: Case,
    config: PortConfig,
    run: Run,
    options: JudgeOptions = JudgeOptions(),
) -> tuple[Verdict, ...]:
    """Every check of the verifier for the port on disk, with progress and times."""
    from porter.verify.backends.by_name import choose
    from porter.verify.run import VerifyRequest, verify_port

    request = VerifyRequest(
        port_path=port,
        source=unit.source,
        info=info,
        case=case,
        arches=config.arch,
        options=unit.options,
        unit=unit,
        seed=config.seed,
        thorough=config.thorough,
        jobs=worker_count(config),
        backend=choose(config.backend, config.arch[0]),
        oracle=options.oracle,
        on_progress=lambda check, done, total: run.progress(
            StageEvent(run.kernel, check, "running", f"{done}/{total}")
        ),
        on_time=run.took,
        line_map=options.line_map,
    )
    request = replace(
        request,
        launches=options.launches or request.launches,
        budget=options.seconds or request.budget,
        checks=tuple(c for c in request.checks if c not in options.without),
    )
    with limited(f"verifying {info.name}", info.span, config.verify_cpu_limit, "verify_cpu_limit"):
        verdicts = tuple(verify_port(request))
    for v in verdicts:
        seconds = v.seconds or 0.0
        note = "" if v.status is Status.PASS else v.detail
        run.progress(StageEvent(run.kernel, v.check, STATES[v.status], note, seconds))
        if v.check in TIMED:
            run.seconds[v.check] = seconds
    return verdicts


STATES = {Status.PASS: "passed", Status.FAIL: "failed", Status.ERROR: "error", Status.SKIP: "skipped"}
TIMED = ("names", "compile", "resources", "entry", "numerics", "determinism")  # the others take no time of their own
