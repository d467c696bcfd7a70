"""`verify_port`: every check of a verdict, in order, for one port and its original. The only judge of a port."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes
from porter.case.expressions import Value
from porter.case.instances import instance_values
from porter.case.reader import Case, CaseInstance, LaunchShape
from porter.model import Diagnostic, KernelInfo, LineMapEntry, PorterError, Severity, Status, Verdict
from porter.model.facts import CompileFacts, ResourcesFacts, UsedResources
from porter.source import Source, Span
from porter.verify.backends.by_name import emulator
from porter.verify.backends.interface import Backend, Build
from porter.verify.checks import contraction, names
from porter.verify.checks.entry import check_entry
from porter.verify.checks.honesty import check_honesty
from porter.verify.checks.machine_reads import NO_QUESTIONS, own_reads
from porter.verify.checks.ptx_stats import function_texts, ptx_stats
from porter.verify.checks.resources import Usage, compare_resources, summary
from porter.verify.compile.worker import CompileRequest, CompileResult, compile_port
from porter.verify.earlier_port import port_builds
from porter.verify.execute import InstanceUnderTest, Reference, TrialResult
from porter.verify.launched import ends_here, launch_instance, repeat_launches, small_launches
from porter.verify.launches.derived import constants_of
from porter.verify.launches.far_rows import at_the_edges
from porter.verify.launches.limits import KernelResources
from porter.verify.launches.own import Pair, PortLaunches
from porter.verify.launches.planned import planned_trials, trials_of_texts
from porter.verify.launches.port_launch import port_launches
from porter.verify.launches.shrink import Shrinker
from porter.verify.launches.symbols import declared_in_source, require_values, symbols_of, with_declared_values
from porter.verify.launches.trials import LAUNCHES, Trial
from porter.verify.numerics.reference import load_reference
from porter.verify.numerics.tolerance import adds_products, approximations, has_reduction
from porter.verify.verdicts import InstanceRun, determinism_verdict, numerics_verdict, sanitizer_verdict
from porter.wording import plural

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit, ParseOptions
    from porter.verify.original.compiled import OriginalBuild

CHECKS = ("honesty", "names", "compile", "resources", "entry", "numerics", "sanitizer", "determinism", "performance")
OF_BUDGET = 1 / 12  # of the time for all launches may go into one

OnProgress = Callable[[str, int, int], None]  # check, done, total
OnTime = Callable[[str, float], None]  # name, seconds


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify, against what, how thoroughly. `seed` None takes a fresh one; it is in the verdict for replay."""

    port_path: Path
    source: Source
    info: KernelInfo
    case: Case
    arches: tuple[str, ...] = ("sm_90a",)
    options: ParseOptions | None = None
    unit: ParsedUnit | None = None  # the parsed source, where the caller has it
    seed: int | None = None
    thorough: bool = False
    launches: int = LAUNCHES  # an instance
    budget: float = 120.0  # seconds for all launches
    jobs: int = 2
    backend: Backend | None = None
    originals: Sequence[OriginalBuild] = ()  # one an instance, where they were compiled elsewhere; (): compiled here
    timing_sizes: Sequence[Mapping[str, int]] = ()  # what `performance` times; (): what the case says
    timing_budget: float = 60.0  # seconds for it
    oracle: Path | None = None  # a port that takes the original's place: an earlier state of this one
    on_progress: OnProgress | None = None
    on_time: OnTime | None = None  # told how long "original" took: NVRTC works while the port is compiled
    checks: tuple[str, ...] = CHECKS
    line_map: tuple[LineMapEntry, ...] = ()  # of the port, to name where it parts from the original
    explain: bool = True  # make failing launches small and find where they part
    only: tuple[int, ...] = ()  # numbers of the case's instances that the verdicts are to be about; empty: all


@dataclass
class _Verification:
    """The state of one run: what was compiled, what was launched, the verdicts so far."""

    request: VerifyRequest
    seed: int
    text: str = ""  # of the port, as it was read
    verdicts: list[Verdict] = field(default_factory=list)
    instances: list[tuple[CaseInstance, dict[str, Value]]] = field(default_factory=list)
    compiled: dict[tuple[int, str], CompileResult] = field(default_factory=dict)  # (instance number, arch)
    originals: list[OriginalBuild] = field(default_factory=list)
    runs: list[InstanceRun] = field(default_factory=list)
    endless: bool = False  # a launch was ended before it was done
    repeats: int = 0
    original_seconds: float = 0.0
    unverified: list[Diagnostic] = field(default_factory=list)  # launches of the port that nothing can run
    undecided: list[Diagnostic] = field(default_factory=list)  # launches of the case that no GPU accepts

    def progress(self, check: str, done: int, total: int) -> None:
        if self.request.on_progress:
            self.request.on_progress(check, done, total)

    def add(self, verdict: Verdict, start: float) -> Verdict:
        seconds = round(time.perf_counter() - start, 3)
        self.verdicts.append(replace(verdict, seconds=seconds))
        return verdict


def verify_port(request: VerifyRequest) -> list[Verdict]:
    """Run every check that can be run; one verdict each, in the order of CHECKS.

    A check that an earlier failure makes impossible is SKIP with the reason: that earlier verdict is the answer. What
    keeps a check from being run is ERROR. Raises PorterError PRT906 when an instance does not fit the template.
    """
    seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
    state = _Verification(request, seed)
    state.instances = [(i, dict(instance_values(request.info, i.instance))) for i in request.case.instances]
    if _honesty(state).status is not Status.PASS:
        return _rest(state, "the port is not run: see honesty")
    if request.only:  # honesty looks at all of them
        state.instances = [state.instances[n] for n in request.only]
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as side:  # the original is compiled while the port is
        original = side.submit(_build_original, state)
        if _names(state).status is not Status.PASS:
            return _rest(state, "the port does not compile: see names")
        if _compile(state).status is not Status.PASS and not _usable(state):
            return _rest(state, "the port does not compile: see compile")
    try:
        original.result()
    except PorterError as error:
        for check in ("resources", "numerics", "sanitizer", "determinism"):
            text = f"the original could not be compiled: {error}"
            state.add(Verdict(check, Status.ERROR, text, error.diagnostics if check == "resources" else ()), start)
        return _rest(state, "")
    if request.on_time:
        request.on_time("original", state.original_seconds)
    _resources(state)
    _entry(state)
    _launch(state)
    return _rest(state, "")


def _rest(state: _Verification, reason: str) -> list[Verdict]:
    """The verdicts, those of checks that were not run filled in, those not asked for left out."""
    done = {v.check: v for v in state.verdicts}
    done.setdefault("performance", Verdict("performance", Status.SKIP, "needs a GPU"))
    found = [done.get(check) or Verdict(check, Status.SKIP, reason) for check in CHECKS]
    return [v for v in found if v.check in state.request.checks]


# ---------------------------------------------------------------- static checks


def _honesty(state: _Verification) -> Verdict:
    start = time.perf_counter()
    path = state.request.port_path
    state.text = path.read_text(encoding="utf-8")
    found = check_honesty(state.text, path, [values for _, values in state.instances])
    if found:
        detail = found[0].message if len(found) == 1 else f"{plural(len(found), 'finding')}; first: {found[0].message}"
        return state.add(Verdict("honesty", Status.FAIL, detail, tuple(found)), start)
    return state.add(Verdict("honesty", Status.PASS, "a launched CuTeDSL kernel, and nothing else computes"), start)


def _names(state: _Verification) -> Verdict:
    start = time.perf_counter()
    try:
        uses, found = names.check_names(state.request.port_path)
    except RuntimeError as error:
        return state.add(Verdict("names", Status.ERROR, f"names could not be looked up: {error}"), start)
    if found:
        return state.add(Verdict("names", Status.FAIL, found[0].message, tuple(found)), start)
    return state.add(Verdict("names", Status.PASS, f"{plural(uses, 'library name')} found"), start)


def _compile(state: _Verification) -> Verdict:
    start = time.perf_counter()
    request = state.request
    wanted = [(n, arch) for arch in request.arches for n in range(len(state.instances))]
    state.progress("compile", 0, len(wanted))
    requests = [CompileRequest(state.instances[n][1], arch) for n, arch in wanted]
    results = compile_port(request.port_path, requests, jobs=request.jobs)
    if request.port_path.read_text(encoding="utf-8") != state.text:  # what was compiled is not what was read
        text = f"{request.port_path} changed while it was being verified"
        return state.add(Verdict("compile", Status.ERROR, text, (Diagnostic(codes.DOES_NOT_COMPILE, text),)), start)
    state.compiled = dict(zip(wanted, results, strict=True))
    state.progress("compile", len(wanted), len(wanted))
    diagnostics = []
    for (n, arch), result in state.compiled.items():
        if not result.ok:
            label = f"{state.instances[n][0].instance} for {arch}".strip()
            tag = f"[{result.error_id}] " if result.error_id else ""
            span = Span(result.file or str(request.port_path), result.line)
            diagnostics.append(Diagnostic(codes.DOES_NOT_COMPILE, f"{label}: {tag}{result.error}", span))
        elif len(result.entries) != 1:
            text = f"the launch function launches {plural(len(result.entries), 'kernel')}; a port has to launch one"
            diagnostics.append(Diagnostic(codes.DOES_NOT_COMPILE, text, Span(str(request.port_path), 1)))
    facts = CompileFacts(request.arches, sum(r.cached for r in results))
    if diagnostics:
        first = diagnostics[0].message.splitlines()[0]
        detail = f"{len(diagnostics)} of {plural(len(results), 'compilation')} failed: {first}"
        return state.add(Verdict("compile", Status.FAIL, detail, tuple(diagnostics[:4]), facts), start)
    detail = f"{plural(len(state.instances), 'instance')} for {', '.join(request.arches)}"
    return state.add(Verdict("compile", Status.PASS, detail, (), facts), start)


def _usable(state: _Verification) -> bool:
    """Can anything be launched? An instance that compiled for the first architecture can."""
    return any(r.ok for (_, arch), r in state.compiled.items() if arch == state.request.arches[0])


def _build_original(state: _Verification) -> None:
    if state.request.originals:
        state.originals = list(state.request.originals)
        return
    from porter.frontend.parse.source import ParseOptions
    from porter.verify.original.build import build_original

    start = time.perf_counter()
    request = state.request
    if request.oracle is not None:
        state.originals = port_builds(request.oracle, [v for _, v in state.instances], request.arches[0], request.jobs)
        return
    options = request.options or ParseOptions(arch=request.arches[0])
    unit = request.unit if request.unit is not None and request.unit.options == options else None
    wanted = [i.instance for i, _ in state.instances]
    state.originals = build_original(request.source, options, request.info, wanted, ("ptx", "cubin"), unit=unit)
    state.original_seconds = time.perf_counter() - start


def _resources(state: _Verification) -> Verdict:
    start, arch = time.perf_counter(), state.request.arches[0]
    found: list[Diagnostic] = []
    used: dict[str, UsedResources] = {}
    lines = []
    for n, (instance, _) in enumerate(state.instances):
        made, build = state.compiled[n, arch], state.originals[n]
        if not made.ok:
            continue
        port = Usage(ptx_stats(made.ptx, made.entry), made.registers, made.local_bytes, made.spills, made.static_smem)
        original = Usage(ptx_stats(build.ptx, build.entry), build.registers, build.local_bytes, 0, build.static_smem)
        label = str(instance.instance)
        found += compare_resources(original, port, label)
        if reads := own_reads(build.ptx, made.ptx):
            text = f"{label}: ".lstrip(": ") + f"the port reads {', '.join(reads)}, which its original does not"
            at = Span(str(state.request.port_path), 1)
            found.append(Diagnostic(codes.READS_MACHINE_STATE, text, at, help=NO_QUESTIONS))
        used[label] = UsedResources(original.counts, port.counts)
        lines.append(summary(original, port))
    failed = [d for d in found if d.severity is Severity.ERROR]
    detail = failed[0].message if failed else f"{lines[0]} (original's in brackets)"
    status = Status.FAIL if failed else Status.PASS
    return state.add(Verdict("resources", status, detail, tuple(found), ResourcesFacts(used)), start)


def _entry(state: _Verification) -> Verdict:
    start = time.perf_counter()
    request = state.request
    return state.add(check_entry(request.port_path, state.text, request.case, request.info, request.only), start)


# ---------------------------------------------------------------- launches


def _launch(state: _Verification) -> None:
    start = time.perf_counter()
    request = state.request
    try:
        backend = request.backend or emulator(request.budget * OF_BUDGET)
        plans = _plan(state, backend.sm_count)
    except PorterError as error:
        for check in ("numerics", "sanitizer", "determinism", "performance"):
            diagnostics = error.diagnostics if check == "numerics" else ()
            state.add(Verdict(check, Status.ERROR, str(error), diagnostics), start)
        return
    total = sum(len(trials) for _, _, trials, _ in plans)
    done = itertools.count(1)
    deadline = start + request.budget
    launched = []
    for n, subject, trials, pairs in plans:
        instance = state.instances[n][0].instance
        made = launch_instance(
            subject, instance, trials, pairs, backend, deadline, lambda: state.progress("numerics", next(done), total)
        )  # fmt: skip
        state.runs.append(made[0])
        launched.append(made)
        state.endless = ends_here(made[0])
        if state.endless:
            break
    repeating = time.perf_counter()
    if not state.endless:
        repeat_launches(launched, partial(state.progress, "determinism"))
    repeating -= time.perf_counter()
    small = small_launches(launched)
    scenarios = sorted({t.scenario for _, _, trials, _ in plans for t in trials})
    numerics = numerics_verdict(request.case, state.runs, state.seed, scenarios, backend.name)
    sanitizer = sanitizer_verdict(request.case, state.runs, backend.checked, backend.name)
    numerics = _with_launches(state, numerics)
    if request.explain and request.oracle is None:
        numerics, sanitizer = _explained(state, numerics, sanitizer, plans, backend, deadline)
    state.add(numerics, start)
    state.add(sanitizer, start)
    if state.endless:
        state.add(Verdict("determinism", Status.SKIP, "a launch did not end: see sanitizer"), start)
        return
    state.add(determinism_verdict([r for run in state.runs for r in run.repeats]), time.perf_counter() + repeating)
    if "performance" in request.checks:
        _performance(state, backend, plans, small)


def _with_launches(state: _Verification, numerics: Verdict) -> Verdict:
    """The verdict with what stands against the launches themselves: the port's fail it, the case's leave it open."""
    for found, status in ((state.unverified, Status.FAIL), (state.undecided, Status.ERROR)):
        if found and (numerics.status is not Status.FAIL):
            numerics = replace(numerics, status=status, detail=found[0].message)
        numerics = replace(numerics, diagnostics=(*found, *numerics.diagnostics))
    return numerics


def _performance(
    state: _Verification, backend: Backend, plans: Sequence[_Plan], small: Sequence[tuple[InstanceUnderTest, Trial]]
) -> None:
    """Times on a GPU; elsewhere counts of a `small` launch."""
    from porter.verify.checks.performance_run import Performance

    start = time.perf_counter()
    request = state.request
    subjects = {n: subject for n, subject, _, _ in plans}
    job = Performance(request.case, state.instances, subjects, request.port_path, request.arches[0], state.seed)
    try:
        verdict = job.check(backend, request.timing_sizes, request.timing_budget, small, request.on_progress)
    except PorterError as error:
        verdict = Verdict("performance", Status.ERROR, str(error), error.diagnostics)
    state.add(verdict, start)


def _explained(
    state: _Verification,
    numerics: Verdict,
    sanitizer: Verdict,
    plans: Sequence[_Plan],
    backend: Backend,
    deadline: float,
) -> tuple[Verdict, Verdict]:
    """The verdicts with the smallest launches that fail, and where the port parts from the original."""
    from porter.verify.explain import Failure, diverging, fails_numerics, fails_sanitizer, smallest

    request = state.request

    def failure(fails: Callable[[TrialResult], bool]) -> Failure | None:
        found = [(r, n) for n, run in enumerate(state.runs) for r in run.results if fails(r)]
        if not found:
            return None
        result, n = min(found, key=lambda f: (f[0].trial.far, f[0].trial.point.elements))
        at, subject, _, _ = plans[n]
        instance = state.instances[at][0]
        shrinker = Shrinker(request.port_path, request.case, instance, subject, backend, backend.sm_count)
        return Failure(result, shrinker, str(instance.instance))

    small: TrialResult | None = None
    wrong = failure(fails_numerics) if numerics.status is Status.FAIL else None
    if wrong is not None:
        left = deadline - time.perf_counter()
        numerics, small = smallest(numerics, wrong, fails_numerics, left, state.seed)
        if small.comparisons:
            numerics = diverging(numerics, wrong, small, request.line_map, str(request.source.path))
    if sanitizer.status is Status.FAIL:
        known = request.case.known_violations
        kinds = [v.kind for run in state.runs for r in run.results for v in r.port.violations]
        for kind in dict.fromkeys(kinds) if not state.endless else ():
            fails = fails_sanitizer(kind, known)
            bad = failure(fails)
            if bad is not None:
                if small is not None and fails(small):
                    bad = replace(bad, result=small)
                sanitizer, _ = smallest(sanitizer, bad, fails, deadline - time.perf_counter(), state.seed)
                break
    return numerics, sanitizer


_Plan = tuple[int, InstanceUnderTest, list[Trial], list[Pair]]


def _plan(state: _Verification, sm_count: int) -> list[_Plan]:
    """Subjects, trials and launch shapes of every instance that compiled."""
    request = state.request
    arch = request.arches[0]
    if request.oracle is None:
        builds = [(i.instance, b.ptx, b.entry) for (i, _), b in zip(state.instances, state.originals, strict=True)]
        require_values(request.case, _unit(state), request.info, builds)
    reference = load_reference(request.case)
    constants, partly = constants_of(request.source.text), request.backend is None or hasattr(request.backend, "partly")
    drafts = []
    for n, (instance, values) in enumerate(state.instances):
        if state.compiled[n, arch].ok:
            how = (constants, state.seed, request.launches, request.thorough, partly)
            trials = planned_trials(request.case, instance, values, request.info, *how)
            if not trials:
                message = f"no point of the case matches {instance.instance}"
                request.case.fail(codes.CASE_EXPRESSION, message, "instances", str(n))
            drafts.append((n, values, trials))
    # All points of an instance, not the chosen ones: the answer is remembered, and the choice changes with the seed.
    wanted = [
        (values, point)
        for n, values, _ in drafts
        for point in request.case.instance_points(state.instances[n][0], values)
    ]
    unlisted = [(values, t.point) for _, values, trials in drafts for t in trials if t.far or t.derived]
    shapes: dict[tuple[int, str], LaunchShape] = {}
    launches = port_launches(request.port_path, request.case, wanted, sm_count)
    launches += port_launches(request.port_path, request.case, unlisted, sm_count)
    for (values, point), shape in zip([*wanted, *unlisted], launches, strict=True):
        shapes[id(values), str(point)] = shape
    others: dict[tuple[int, str], LaunchShape] = {}  # of a port in the original's place, which chooses its own launches
    if request.oracle is not None:
        keys = [(id(values), str(point)) for values, point in [*wanted, *unlisted]]
        theirs = port_launches(request.oracle, request.case, wanted, sm_count)
        theirs += port_launches(request.oracle, request.case, unlisted, sm_count)
        others = dict(zip(keys, theirs, strict=True))
    plans: list[_Plan] = []
    for n, values, trials in drafts:
        keys = [(id(values), str(t.point)) for t in trials]
        own = [
            others.get(k) or request.case.launch_at(t.point, values, sm_count)
            for k, t in zip(keys, trials, strict=True)
        ]
        pairs = list(zip(own, (shapes[k] for k in keys), strict=True))
        trials, pairs = at_the_edges(trials, pairs)
        if request.oracle is None:
            trials, pairs = _with_own_launch(state, n, values, trials, pairs, sm_count)
        plans.append((n, _subject(state, n, values, reference), trials, pairs))
    return plans


def _unit(state: _Verification) -> ParsedUnit | None:
    """The parsed source; None where the original was compiled elsewhere, since there may be no front end here."""
    request = state.request
    if request.unit is None and not request.originals:
        from porter.frontend.parse.source import ParseOptions, parse_source

        return parse_source(request.source, request.options or ParseOptions(arch=request.arches[0]))
    return request.unit


def _with_own_launch(
    state: _Verification, n: int, values: Mapping[str, Value], trials: list[Trial], pairs: list[Pair], sm_count: int
) -> tuple[list[Trial], list[Pair]]:
    """The plan with the launches that the port's own launch and its own constants ask for, within a GPU's limits."""
    request = state.request
    instance, original, arches = state.instances[n][0], state.originals[n], request.arches
    made = {arch: state.compiled[n, arch] for arch in arches if state.compiled[n, arch].ok}
    sides = {a: KernelResources(original.registers if a == arches[0] else 0, original.static_smem) for a in arches}
    mine = {a: KernelResources(m.registers, m.static_smem) for a, m in made.items()}
    own = PortLaunches(request.port_path, state.text, request.case, instance, values, sm_count, sides, mine)
    port = made[arches[0]]
    texts = [_functions(b.ptx).get(b.entry, b.ptx) for b in (original, port)]
    extra = trials_of_texts(request.case, instance, values, texts[0], texts[1], state.seed)
    plan = own.plan(trials, pairs, extra, state.seed)
    state.unverified, state.undecided = [*state.unverified, *plan.against], [*state.undecided, *plan.undecided]
    return plan.trials, plan.pairs


def _subject(state: _Verification, n: int, values: Mapping[str, Value], ref: Reference | None) -> InstanceUnderTest:
    request, arch = state.request, state.request.arches[0]
    made, build = state.compiled[n, arch], state.originals[n]
    original = Build("original", build.ptx, build.entry, arch, build.cubin)
    port = Build("port", made.ptx, made.entry, arch, made.cubin)
    texts = [_kernel_text(b) for b in (original, port)]
    used = (approximations(texts[0]), approximations(texts[1]))
    reduces = any(has_reduction(t) for t in texts)
    contracts = any(adds_products(t) for t in texts)
    products = 0.0 if hasattr(request.backend, "fuses") else contraction.choice_of_products(original, port)
    case, variables = request.case, {}
    if request.oracle is None:
        case = with_declared_values(case, build.ptx, build.entry)
        variables = symbols_of(case, build.ptx, build.entry)
    elif any(b.declared for b in case.buffers):
        unit, instance = _unit(state), state.instances[n][0].instance
        case = declared_in_source(case, unit, request.info, instance) if unit is not None else case
    return InstanceUnderTest(
        case, request.info, values, original, port, used, reduces, ref, contracts, products, variables,
        request.oracle is not None,
    )  # fmt: skip


def _kernel_text(build: Build) -> str:
    """The kernel's PTX without its neighbours in the module (all instances of an original share one)."""
    return _functions(build.ptx).get(build.entry, build.ptx)


_functions = lru_cache(maxsize=16)(function_texts)
