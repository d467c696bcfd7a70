"""parse -> plan -> emit -> verify -> write: the only place where the order of the stages lives."""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import ir
from porter.case import Case, CaseInstance, case_path_for, check_case, load_case
from porter.config import PortConfig, worker_count
from porter.crash import internal_error
from porter.explain import named
from porter.instances import instance_values
from porter.model import (
    Diagnostic,
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
from porter.outputs import (
    Translation,
    check_writable,
    hole_messages,
    identifier,
    make_record,
    port_paths,
    write_drafted_case,
)
from porter.provenance import cuda_span, refuse_edited, write_port
from porter.report import Progress, StageEvent, silent
from porter.source import Source, Span

if TYPE_CHECKING:
    from porter.frontend.parse import ParsedUnit


@dataclass
class Run:
    """What one kernel's way through the stages leaves behind: times, messages, and who is told about progress."""

    kernel: str
    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage (repeats add up) and tell the progress when it starts, ends or fails."""
        self.progress(StageEvent(self.kernel, name, "running"))
        start, state = time.perf_counter(), "failed"
        try:
            yield
            state = "done"
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.progress(StageEvent(self.kernel, name, state, seconds=self.seconds[name]))

    @contextmanager
    def guard(self, doing: str, span: Span) -> Iterator[None]:
        """Turn what goes wrong inside into messages of this kernel, so that the other kernels go on."""
        try:
            yield
        except PorterError as error:
            self.diagnostics += error.diagnostics
        except Exception as error:
            self.diagnostics.append(internal_error(error, traceback.format_exc(), doing, span))


def port_files(paths: Sequence[Path], config: PortConfig, progress: Progress = silent) -> Report:
    """Port the kernels of several files into `config.output`. What is wrong with one file does not stop the others."""
    reports: list[Report] = []
    taken: dict[Path, Path] = {}  # port -> the source it comes from
    check_writable(config.output)
    for path in dict.fromkeys(paths):
        try:
            reports.append(port(path, config, progress, taken))
        except PorterError as error:
            reports.append(Report((), error.diagnostics))
    kernels = tuple(k for r in reports for k in r.kernels)
    return Report(kernels, (*(d for r in reports for d in r.diagnostics), *unused_instantiations(kernels, config)))


def unused_instantiations(kernels: tuple[KernelReport, ...], config: PortConfig) -> Iterator[Diagnostic]:
    """A message for every --instantiate that names no kernel of the run."""
    from porter.frontend.instances import parse_instantiation

    names = {k.kernel: k for k in kernels}
    for text in config.instantiate if kernels else ():
        name = parse_instantiation(text)[0].split("::")[-1]
        if name not in names:
            try:
                named(name, names, "kernel here", "porter port --analyze")
            except PorterError as error:
                yield from error.diagnostics


def port(path: Path, config: PortConfig, progress: Progress = silent, taken: dict[Path, Path] | None = None) -> Report:
    """Port the kernels of one file. Raises PorterError when the file as a whole cannot be ported."""
    start = time.perf_counter()
    progress(StageEvent(path.name, "parse", "running"))
    unit = parse(path, config)
    parsed = time.perf_counter() - start
    kernels = choose_kernels(unit, config)
    ports = port_paths(unit, kernels, config.output, taken if taken is not None else {})
    reports = [port_kernel(unit, info, config, ports[info.span], progress, parsed) for info in kernels]
    return Report(tuple(reports), file_messages(unit))


def port_kernel(
    unit: ParsedUnit, info: KernelInfo, config: PortConfig, target: Path, progress: Progress, parsed: float
) -> KernelReport:
    """One kernel through all stages. Never raises but for Ctrl-C: what goes wrong is in the report."""
    run = Run(info.name, progress, {"parse": parsed})
    start = time.perf_counter()
    module: PortedModule | None = None
    instances: tuple[Instance, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    written = ""
    with run.guard(f"porting {info.name}", info.span):
        if info.errors:
            raise PorterError(*info.errors)
        case = find_case(unit, info, config)
        made = translate(unit, info, case, config, run)
        module, instances = made.module, made.instances
        if not config.force:
            refuse_edited(target, module.text, info.qualified_name)
        if config.verify and not module.holes:
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
    )


# ---------------------------------------------------------------- parse


def parse(path: Path, config: PortConfig) -> ParsedUnit:
    """Read and parse one file. Raises PorterError PRT010 when it cannot be read."""
    from porter.frontend.parse import ParseOptions, parse_source

    options = ParseOptions(include_dirs=config.include, defines=config.define, std=config.std, arch=config.arch[0])
    return parse_source(read_source(path), options)


def read_source(path: Path) -> Source:
    """The file's text. Raises PorterError PRT010 for a file that is missing, a folder, unreadable or not text."""
    try:
        return Source.read(path)
    except FileNotFoundError:
        near = sorted(p.name for p in path.parent.glob("*.cu"))[:5] if path.parent.is_dir() else []
        help_ = f"{path.parent}/ has {', '.join(near)}" if near else "check the path"
        raise PorterError(Diagnostic("PRT010", f"there is no file {path}", Span(str(path), 0), help=help_)) from None
    except IsADirectoryError:
        help_ = f"name files, as in {path}/*.cu, or use --analyze"
        raise PorterError(Diagnostic("PRT010", f"{path} is a folder", Span(str(path), 0), help=help_)) from None
    except UnicodeDecodeError:
        raise PorterError(Diagnostic("PRT010", f"{path} is not UTF-8 text", Span(str(path), 0))) from None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise PorterError(Diagnostic("PRT010", message, Span(str(path), 0))) from None


def choose_kernels(unit: ParsedUnit, config: PortConfig) -> tuple[KernelInfo, ...]:
    """The kernels to port: those named with --kernel, else all of the file. Raises PorterError PRT001 or PRT956."""
    everything = {k.name: k for k in (*unit.header_kernels, *unit.kernels)}
    everything |= {k.qualified_name: k for k in (*unit.header_kernels, *unit.kernels)}
    if config.kernel:
        chosen = [
            named(name, everything, f"kernel in {unit.source.path}", "porter port --analyze") for name in config.kernel
        ]
        return tuple(k for k in (*unit.kernels, *unit.header_kernels) if any(k.name == c.name for c in chosen))
    if not unit.kernels:
        errors = tuple(d for d in unit.diagnostics if d.severity is Severity.ERROR)[:5]
        help_ = "porter ports functions declared __global__"
        if unit.header_kernels:
            help_ = f"its headers have some: name one with --kernel, such as {unit.header_kernels[0].name}"
        message = f"no kernel in {unit.source.path}"
        raise PorterError(*errors, Diagnostic("PRT001", message, Span(str(unit.source.path), 0), help=help_))
    return unit.kernels


def file_messages(unit: ParsedUnit) -> tuple[Diagnostic, ...]:
    """What parsing said outside the kernels: warnings, since the kernels themselves are whole."""
    return tuple(replace(d, severity=Severity.WARNING) for d in unit.diagnostics)


# ---------------------------------------------------------------- case and instances


def find_case(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case:
    """The case of a kernel: given, beside the source, or read from its launcher where that says everything.

    Raises PorterError: the file's own errors, or PRT910 after drafting one for the user.
    """
    from porter.frontend.draft_case import case_from_launch

    case = case_if_any(unit, info, config)
    if case is None and not config.case:
        case = case_from_launch(unit, info)
        case = case and with_instances(case, instances_asked(info, config))
    if case is not None:
        return case
    if config.case:
        other = load_case(config.case).kernel
        message = f"{config.case} is the case of `{other}`, not of `{info.name}`"
        raise PorterError(
            Diagnostic("PRT910", message, Span(str(config.case), 1), help=f"port it with --kernel {other}")
        )
    raise write_drafted_case(unit, info, config)


def case_if_any(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case | None:
    """The case of a kernel where one is given or lies beside the source. Raises PorterError when it is broken."""
    path = config.case or case_path_for(unit.source.path, info.name)
    case = load_case(path) if path else None
    if case is None or case.kernel not in (info.name, info.qualified_name):
        return None
    check_case(case, info)
    return with_instances(case, instances_asked(info, config))


def instances_asked(info: KernelInfo, config: PortConfig) -> tuple[Instance, ...]:
    """What --instantiate names for this kernel."""
    from porter.frontend.instances import parse_instantiation

    asked = [parse_instantiation(text) for text in config.instantiate]
    return tuple(dict.fromkeys(i for name, i in asked if name in (info.name, info.qualified_name)))


def with_instances(case: Case, instances: tuple[Instance, ...]) -> Case:
    """The case for other instances than its own; one that it has keeps its `when`."""
    if not instances:
        return case
    known = {i.args: i for i in case.instances}
    return replace(case, instances=tuple(known.get(i.args, CaseInstance(i.args)) for i in instances))


def choose_instances(unit: ParsedUnit, info: KernelInfo, case: Case | None, config: PortConfig) -> tuple[Instance, ...]:
    """Template arguments to port for: --instantiate, else the case, else the file's launches, else a guess by name.

    Raises PorterError PRT008 when nothing fits.
    """
    asked = instances_asked(info, config)
    if asked:
        return asked
    if case is not None and case.instances:
        return tuple(i.instance for i in case.instances)
    if not info.is_template:
        return (Instance(),)
    from porter.frontend.instances import choose_few, default_instances, instances_from_launches, no_default_instance

    found = choose_few(instances_from_launches(unit, info)) or default_instances(info, unit)
    if not found:
        raise PorterError(no_default_instance(info))
    return found


# ---------------------------------------------------------------- lower, plan, emit


def lower(unit: ParsedUnit, info: KernelInfo, instances: tuple[Instance, ...]) -> tuple[ir.Kernel, ...]:
    """The kernel's typed IR at each instance. Raises PorterError: parse errors inside it, arguments that do not fit."""
    from porter.frontend.instances import try_specialise
    from porter.frontend.lower import lower_kernel

    if info.errors:
        raise PorterError(*info.errors)
    requests = [(info, instance) for instance in instances]
    whole, cursors, failures = try_specialise(unit.source, unit.options, requests, stand_ins=unit.stand_ins)
    if failures:
        raise PorterError(*failures.values())
    return tuple(lower_kernel(whole, cursors[info.qualified_name, i], info, i) for i in instances)


def translate(unit: ParsedUnit, info: KernelInfo, case: Case | None, config: PortConfig, run: Run) -> Translation:
    """Lower, plan and emit one kernel. Raises PorterError."""
    from porter.emit.module import emit_module
    from porter.emit.plan import PlanOptions, make_plan

    with run.stage("parse"):
        instances = choose_instances(unit, info, case, config)
        kernels = lower(unit, info, instances)
    with run.stage("plan"):
        plan = make_plan(list(kernels), info, case, PlanOptions(config.standalone, unit.source, instances))
    with run.stage("emit"):
        module = emit_module(plan)
    return Translation(unit, info, case, instances, kernels, plan, module)


def show_stage(path: Path, config: PortConfig, stage: str) -> tuple[str, tuple[Diagnostic, ...], int]:
    """What `--emit` prints: the text of one stage (ir, plan, py or ptx) for the kernels of a file, messages, exit code.

    Writes nothing the user keeps. Works without a case. Raises PorterError.
    """
    from porter.ir_text import format_kernel

    unit = parse(path, config)
    texts: list[str] = []
    messages: list[Diagnostic] = []
    holes = 0
    for info in choose_kernels(unit, config):
        case = case_if_any(unit, info, config)
        if stage == "ir":
            texts += [format_kernel(k) for k in lower(unit, info, choose_instances(unit, info, case, config))]
            continue
        made = translate(unit, info, case, config, Run(info.name))
        messages += [*made.module.notes, *hole_messages(made.module, f"{identifier(path.stem)}.py")]
        holes += len(made.module.holes)
        if stage == "ptx":
            texts += compile_to_ptx(made, config)
        else:
            texts.append(str(made.plan) if stage == "plan" else made.module.text)
    return "\n".join(t.rstrip("\n") + "\n" for t in texts), (*file_messages(unit), *messages), int(holes > 0)


def compile_to_ptx(made: Translation, config: PortConfig) -> list[str]:
    """The PTX of a translated kernel at each instance and architecture. Raises PorterError PRT810 when one fails."""
    from porter.verify.compile_worker import CompileRequest, compile_port

    requests = [CompileRequest(instance_values(made.info, i), a) for i in made.instances for a in config.arch]
    with tempfile.TemporaryDirectory(prefix="porter-") as folder:
        draft = Path(folder) / f"{identifier(made.unit.source.path.stem)}.py"
        draft.write_text(made.module.text, encoding="utf-8")
        results = compile_port(draft, requests, jobs=worker_count(config))
    for result in results:
        if not result.ok:
            span = cuda_span(made.module.line_map, result.line)
            raise PorterError(Diagnostic("PRT810", f"the port does not compile: {result.error}", span))
    return [f"// {made.info.name} {dict(r.request.constexprs)} {r.request.arch}\n{r.ptx}" for r in results]


# ---------------------------------------------------------------- verify


def verify(made: Translation, target: Path, config: PortConfig, run: Run) -> tuple[Verdict, ...]:
    """The verifier's answers about a translated kernel.

    The port is judged in a folder of its own: nothing that the user has is replaced before the answer is there.
    Places in that draft become places in the CUDA source and in `target`.
    """
    from porter.verify.run import VerifyRequest, verify_port

    assert made.case is not None
    with tempfile.TemporaryDirectory(prefix="porter-") as folder:
        draft = Path(folder) / target.name
        draft.write_text(made.module.text, encoding="utf-8")
        request = VerifyRequest(
            port_path=draft,
            source=made.unit.source,
            info=made.info,
            case=made.case,
            arches=config.arch,
            options=made.unit.options,
            unit=made.unit,
            seed=config.seed,
            thorough=config.thorough,
            jobs=worker_count(config),
            on_progress=lambda check, done, total: run.progress(
                StageEvent(run.kernel, check, "running", f"{done}/{total}")
            ),
        )
        verdicts = [placed(v, draft, target, made.module.line_map) for v in verify_port(request)]
    for v in verdicts:
        seconds = float(v.data.get("seconds", 0.0))
        run.progress(StageEvent(run.kernel, v.check, STATES[v.status], v.detail, seconds))
        if v.check in TIMED:
            run.seconds[v.check] = seconds
    return tuple(verdicts)


STATES = {Status.PASS: "done", Status.FAIL: "failed", Status.ERROR: "failed", Status.SKIP: "skipped"}
TIMED = ("names", "compile", "resources", "numerics", "determinism")  # the others take no time of their own


def placed(verdict: Verdict, draft: Path, target: Path, line_map: tuple[LineMapEntry, ...]) -> Verdict:
    """A verdict whose places in the draft are places in the CUDA source, with the line of the port in a note."""

    def place(d: Diagnostic) -> Diagnostic:
        if d.span.file != str(draft):
            return d
        note = f"port: {target}:{d.span.line}" if d.span.line else f"port: {target}"
        return replace(d, span=cuda_span(line_map, d.span.line), notes=(note, *d.notes))

    detail = verdict.detail.replace(str(draft), str(target))
    return replace(verdict, detail=detail, diagnostics=tuple(place(d) for d in verdict.diagnostics))
