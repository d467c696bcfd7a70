"""The `performance` check: which points are timed, the job for the GPU process, the gate, and counts without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from porter import codes
from porter.case.expressions import Value
from porter.case.reader import Case, CaseInstance, LaunchShape, Point
from porter.model import Diagnostic, PorterError, Severity, Status, Verdict
from porter.model.facts import CountedLaunch, PerformanceFacts, TimedPoint
from porter.source import Span
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import module_of
from porter.verify.backends.gpu import GpuProcess, GpuProcessDied
from porter.verify.backends.gpu_timing import Neighbours, TimingAnswer, TimingJob
from porter.verify.backends.gpu_work import call_of, image_of
from porter.verify.backends.interface import Build
from porter.verify.backends.timing import geomean
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.execute import LaunchArguments
from porter.verify.launches.buffers import Buffers, HostBuffer, is_integer
from porter.wording import plural

GEOMEAN_GATE, SHAPE_GATE, SUSPICIOUS = 1.05, 1.10, 0.5
MOST_POINTS = 4  # when neither the case nor the caller says what to time
TIMEOUT = 300.0  # seconds for one point
COUNTED = 4_000  # elements of a launch whose traffic is counted, at most: the interpreter is slow
KERNELS = Path(__file__).parents[1] / "backends" / "timing_kernels.py"
_PDL = "griddepcontrol.wait"


@dataclass(frozen=True)
class Timed:
    """One point to time: an instance (by number) at a point."""

    instance: int
    point: Point


@dataclass
class TimedRow:
    """What was timed at one point. `answer.error` says why nothing was."""

    label: str
    sizes: dict[str, int]
    grid: tuple[int, ...]
    nbytes: int
    answer: TimingAnswer = field(default_factory=TimingAnswer)

    @property
    def ratio(self) -> float:
        return self.answer.timings["graph_cold"].ratio("port")

    @property
    def spread(self) -> float:
        return self.answer.timings["graph_cold"].spread

    def facts(self) -> TimedPoint:
        a = self.answer
        timings = {kind: t.facts() for kind, t in a.timings.items()}
        host = {k: round(v, 2) for k, v in a.host_us.items()}
        return TimedPoint(
            self.label, self.sizes, tuple(self.grid), self.nbytes, a.sets, a.calls, timings, host,
            not_done=dict(a.not_done) or None, error=a.error or None,
        )  # fmt: skip


# ---------------------------------------------------------------- what to time


def points_to_time(
    case: Case,
    instances: Sequence[tuple[CaseInstance, Mapping[str, Value]]],
    sizes: Sequence[Mapping[str, int]] = (),
) -> list[Timed]:
    """One instance for each of `sizes` (default: the case's [[performance]]); where there are none, its largest points.

    The instance is the first that takes bf16, else the first of all, whose `when` holds at the sizes; operands are
    aligned and present. Sizes that no instance takes give nothing.
    """
    order = sorted(range(len(instances)), key=lambda n: "bf16" not in instances[n][1].values())
    found: list[Timed] = []
    for wanted in sizes or case.performance:
        first = {n: v[0] for n, v in case.sizes if not isinstance(v, str)}
        asked = replace(case, shapes=({**first, **wanted},), only_shapes=True)
        for n in order:
            instance, values = instances[n]
            points = [p for p in asked.instance_points(instance, values) if not p.null]
            if points:
                found.append(Timed(n, points[0]))
                break
    if sizes or case.performance:
        return found
    for n in order:
        instance, values = instances[n]
        points = [p for p in case.instance_points(instance, values) if not p.null and p.elements]
        if points:
            distinct = {tuple(p.sizes[s] for s in case.base_sizes): p for p in points}
            return [Timed(n, p) for p in list(distinct.values())[-MOST_POINTS:]]
    return []


def moved_bytes(host: Buffers) -> int:
    """Bytes that have to move: inputs read once, outputs written once, what is both twice; scratch not at all."""
    total = 0
    for b in host.values():
        times = {"in": 1, "out": 1, "inout": 2}.get(b.spec.role, 0)
        total += times * int(np.prod(b.shape, dtype=np.int64)) * b.itemsize
    return total


def neighbours(arch: str) -> Neighbours:
    """The kernels that stand beside the timed one, compiled for an architecture. Raises PorterError PRT811."""
    made = []
    for name in ("EMPTY", "TOUCH"):
        (result,) = compile_port(KERNELS, [CompileRequest({}, arch)], kernel=name)
        if not result.ok:
            raise PorterError(
                Diagnostic(codes.DOES_NOT_COMPILE, f"{KERNELS.name}: {result.error}", Span(str(KERNELS), result.line))
            )
        made.append(result)
    return Neighbours(made[0].cubin, made[0].entry, made[1].cubin, made[1].entry)


def timing_job(
    builds: tuple[Build, Build],
    shapes: tuple[LaunchShape, LaunchShape],
    given: tuple[LaunchArguments, LaunchArguments],
    host: Buffers,
    near: Neighbours,
    seconds: float,
) -> TimingJob:
    """The job of one point; `given` to original and port. Raises PtxError or ValueError where one does not fit."""
    original, own = call_of(builds[0], shapes[0], given[0].arguments, given[0].variables)
    port, buffers = call_of(builds[1], shapes[1], given[1].arguments, given[1].variables)
    numbers = {id(b): n for n, b in enumerate(buffers)}  # the port's buffers are the original's and its symbols
    original = replace(
        original, variables=tuple(replace(v, buffer=numbers[id(own[v.buffer])]) for v in original.variables)
    )
    written = [n for n, b in enumerate(buffers) if b.spec.role != "in"]
    once = any(_is_used_up(buffers[n]) for n in written)
    changed = tuple(n for n in written if buffers[n].spec.init is not None or buffers[n].spec.role == "inout")

    def largest(roles: tuple[str, ...]) -> int | None:
        fit = [n for n, b in enumerate(buffers) if b.spec.role in roles]
        return max(fit, key=lambda n: buffers[n].raw.nbytes, default=None)

    return TimingJob(
        original,
        port,
        tuple(image_of(b) for b in buffers),
        moved_bytes(host),
        near,
        restored=changed,
        once=once,
        read=largest(("in", "inout")),
        written=largest(("out", "inout")),
        pdl=all(_PDL in b.ptx for b in builds),
        seconds=seconds,
    )


def _is_used_up(buffer: HostBuffer) -> bool:
    """Would a second call on the same bytes do something else? Counters do; values that drift do not."""
    return buffer.spec.init is not None or (buffer.spec.role == "inout" and is_integer(buffer.dtype))


def time_points(
    process: GpuProcess,
    jobs: Sequence[tuple[TimedRow, Callable[[], TimingJob]]],
    deadline: float,
    on_row: Callable[[int, int], None] | None = None,
) -> list[TimedRow]:
    """The rows with their answers; jobs are made one at a time, since their buffers are large. `deadline` is a
    perf_counter time after which none is started."""
    rows = []
    for done, (row, make) in enumerate(jobs):
        if time.perf_counter() > deadline:
            row.answer = TimingAnswer(error="not timed: the time limit for performance was reached")
        else:
            try:
                row.answer = process.ask(make(), TIMEOUT)
            except (GpuProcessDied, ptx.PtxError, ValueError) as error:
                row.answer = TimingAnswer(error=str(error))
        rows.append(row)
        if on_row:
            on_row(done + 1, len(jobs))
    return rows


# ---------------------------------------------------------------- verdicts


def performance_verdict(case: Case, rows: Sequence[TimedRow], device: str) -> Verdict:
    """The gate: geometric mean of the cold times at most 1.05 of the original's, no point above 1.10.

    What lies inside twice the A-versus-A spread does not count: it neither fails a point nor makes the mean worse than
    the gate. A port in less than half the original's time passes, and is to be looked at (PRT871).
    """
    span = Span(str(case.path), 1)
    timed = [r for r in rows if not r.answer.error]
    errors = [
        Diagnostic(codes.UNCERTAIN_TIME, f"{r.label} at {_sizes(r)} was not timed: {r.answer.error}", span)
        for r in rows
        if r.answer.error
    ]
    facts = PerformanceFacts(device, tuple(r.facts() for r in rows))
    if not timed:
        reason = errors[0].message if errors else "no point of the case can be timed"
        return Verdict("performance", Status.ERROR, reason, tuple(errors[:8]), facts)
    mean = geomean([r.ratio for r in timed])
    doubt = 2.0 * geomean([1.0 + r.spread for r in timed]) - 2.0
    worst = max(timed, key=lambda r: r.ratio)
    facts = replace(facts, geomean=round(mean, 4), worst=round(worst.ratio, 4))
    slower = [r for r in timed if r.ratio > SHAPE_GATE and r.answer.timings["graph_cold"].counts("port")]
    failed = [
        Diagnostic(codes.SLOWER, f"{r.label} at {_sizes(r)}: {r.ratio:.2f}x the original's time ({_us(r)})", span)
        for r in slower
    ]
    points = plural(len(timed), "point")
    if mean > GEOMEAN_GATE and mean - 1.0 > doubt:
        failed.insert(0, Diagnostic(codes.SLOWER, f"{mean:.3f}x the original's time over {points}", span))
    notes = [
        Diagnostic(codes.SUSPICIOUSLY_FAST,
                   f"{r.label} at {_sizes(r)}: {r.ratio:.2f}x the original's time ({_us(r)})", span, Severity.WARNING)
        for r in timed
        if r.ratio < SUSPICIOUS
    ]  # fmt: skip
    unsettled = [r for r in timed if not r.answer.timings["graph_cold"].settled]
    if unsettled:
        far = max(r.spread for r in unsettled)
        text = f"{len(unsettled)} of {points}: the original differed from itself by up to {far:.1%}"
        notes.append(Diagnostic(codes.UNCERTAIN_TIME, text, span, Severity.NOTE))
    detail = f"{mean:.3f}x the original's time over {points}, worst {worst.ratio:.3f} at {_sizes(worst)}"
    detail += f", cold L2, {device}"
    found = (*failed[:8], *errors[:8], *notes[:8])
    if failed:
        return Verdict("performance", Status.FAIL, failed[0].message, found, facts)
    if errors:
        return Verdict("performance", Status.ERROR, f"{errors[0].message}; else {detail}", found, facts)
    return Verdict("performance", Status.PASS, detail, found, facts)


def _sizes(row: TimedRow) -> str:
    return " ".join(f"{k}={v}" for k, v in row.sizes.items())


def _us(row: TimedRow) -> str:
    t = row.answer.timings["graph_cold"]
    return f"{t.median('port'):.2f} us and {t.median('original'):.2f} us"


# ---------------------------------------------------------------- without a GPU


def launch_counts(
    build: Build, shape: LaunchShape, arguments: Sequence[object], variables: Mapping[str, ptx.Buffer] | None = None
) -> dict[str, int]:
    """What one launch does, counted by the emulator: no time. Raises PtxError."""
    result = ptx.launch(
        module_of(build.ptx), build.entry, shape.grid, shape.block, arguments, smem_bytes=shape.smem,
        cooperative=shape.cooperative, cluster=shape.cluster,
        checks=ptx.Checks(uninitialised=False, shared_races=False, global_races=False, counts=True),
        variables=variables,
    )  # fmt: skip
    traffic: dict[str, int] = result.counts.get("traffic", {})
    sectors = sum(v for k, v in traffic.items() if k.endswith(".sectors"))
    conflicts = sum(v for k, v in traffic.items() if k.endswith(".wavefronts"))
    conflicts -= sum(v for k, v in traffic.items() if k.startswith("shared.") and k.endswith(".accesses"))
    return {
        "instructions": int(result.counts.get("thread_instructions", 0)),
        "sectors": sectors,
        "barriers": int(result.counts.get("barriers", 0)),
        "bank_conflicts": max(0, conflicts),
    }


def counts_verdict(launch: CountedLaunch | None) -> Verdict:
    """SKIP, with counts of both sides where they were taken. They are counts, and say nothing about time."""
    if launch is None or launch.original is None or launch.port is None:
        return Verdict("performance", Status.SKIP, "needs a GPU")
    parts = []
    for key, port in launch.port.items():
        original = launch.original[key]
        if original or port:
            parts.append(f"{key.replace('_', ' ')} {port} ({original})")
    detail = f"needs a GPU; counts on the emulator, original's in brackets: {', '.join(parts)}"
    return Verdict("performance", Status.SKIP, detail, (), PerformanceFacts(counts=(launch,)))
