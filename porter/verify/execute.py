"""One trial: the same bytes through original and port, then every buffer compared; and repeats of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from porter import codes
from porter.case import expressions
from porter.case.expressions import Value
from porter.case.reader import FLOAT_NAMES, Case, LaunchShape
from porter.cxx.types import pointee
from porter.model import KernelInfo
from porter.verify.backends.interface import Argument, Backend, Build, RunOptions, RunResult
from porter.verify.emulator.checks.sums import ROUNDING
from porter.verify.emulator.decode import contraction
from porter.verify.launches.buffers import Buffers, HostBuffer, is_integer
from porter.verify.launches.inputs import LARGEST, conditioning, make_inputs, read_buffer
from porter.verify.launches.own_values import number_of
from porter.verify.launches.trials import Trial
from porter.verify.numerics.comparison import (
    Comparison,
    Finding,
    check_guards,
    check_input,
    compare_output,
    numbers,
    row_scale,
)
from porter.verify.numerics.formats import encode
from porter.verify.numerics.segments import canonical_rows, groups
from porter.verify.numerics.tolerance import Tolerance, derive

Reference = Callable[..., Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class InstanceUnderTest:
    """One instance, both sides of it, and what is known of them."""

    case: Case
    info: KernelInfo
    values: Mapping[str, Value]
    original: Build
    port: Build
    approximations: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    reduces: bool = True  # threads combine values in the original or in the port
    reference: Reference | None = None
    contracts: bool = False  # one side adds products, of which one is fused
    products: float = 0.0  # on a GPU: what ptxas's choice of the product to fuse may change, relative to a product
    variables: Mapping[str, str] = field(default_factory=dict)  # symbol's parameter -> module variable of the original
    oracle: bool = False  # the original is a port

    def launch(
        self,
        backend: Backend,
        trial: Trial,
        shape: LaunchShape,
        buffers: Buffers,
        port: bool = False,
        schedule: int = 0,
        checks: bool = True,
        fill: int = 0,
        fused: contraction.Fused = "",
    ) -> RunResult:
        """Run one side on these buffers. `fused`: with its sums as ptxas may fuse them."""
        given = given_to(self, trial, buffers, port)
        build = self.port if port else self.original
        build = replace(build, fused=fused) if fused else build
        return backend.run(build, shape, given.arguments, RunOptions(schedule, checks, fill, given.variables))


@dataclass
class TrialResult:
    """What one launch showed. `error` says which side could not be run, and why."""

    trial: Trial
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    original: RunResult = field(default_factory=RunResult)
    port: RunResult = field(default_factory=RunResult)
    error: str = ""
    error_in_port: bool = True
    skipped: str = ""
    endless: bool = False  # a side was ended before it was done: other launches of it would take as long
    contraction: list[Finding] = field(default_factory=list)  # where ptxas may fuse what it may not on the other side
    inputs: int = 0  # CRC-32 of what both sides were given


MORE_WORK = 512  # times the original's instructions are the port's: a step that few threads take counts as 256
LEAST_WORK = 50_000_000


def is_endless(result: RunResult) -> bool:
    """Was the launch ended for too much work, or time?"""
    return any(v.kind == "budget" for v in result.violations)


@dataclass(frozen=True)
class LaunchArguments:
    """What a launch is given: arguments in order of the parameters, module variables by their names in the PTX."""

    arguments: list[Argument]
    variables: dict[str, HostBuffer] = field(default_factory=dict)


def given_to(subject: InstanceUnderTest, trial: Trial, buffers: Buffers, port: bool = False) -> LaunchArguments:
    """What the original or the port is given of the buffers. Symbols are module variables of the original, and the last
    parameters of a port, by name."""
    found = arguments(subject, trial, buffers)
    symbols = sorted((b for b in buffers.values() if b.spec.symbol), key=lambda b: b.name)
    if port or subject.oracle:
        return LaunchArguments([*found, *symbols])
    return LaunchArguments(found, {subject.variables[b.name]: b for b in symbols if b.name in subject.variables})


def arguments(subject: InstanceUnderTest, trial: Trial, buffers: Buffers) -> list[Argument]:
    """The arguments of the kernel in the source, in order of its parameters: buffers (None: null), scalars by value."""
    found: list[Argument] = []
    for parameter in subject.info.params:
        if pointee(parameter.type) is not None:
            found.append(None if parameter.name in trial.point.null else buffers[parameter.name])
        else:
            found.append(trial.point.scalars[parameter.name])
    return found


def run_trial(
    subject: InstanceUnderTest,
    trial: Trial,
    backend: Backend,
    shapes: tuple[LaunchShape, LaunchShape],
    checks: bool = True,
) -> TrialResult:
    """Run both sides and compare. `shapes` are the launches of the original (the case's) and of the port (its own)."""
    result = TrialResult(trial)
    if trial.window:
        subject = replace(subject, reference=None)  # which is told of all rows and given two
        ending = getattr(backend, "ending", None)
        backend = ending(WINDOW_WORK) if ending is not None else backend
    if shapes[0].is_empty or shapes[1].is_empty:
        if shapes[0].is_empty != shapes[1].is_empty:
            side = "the original" if shapes[0].is_empty else "the port"
            result.findings.append(
                Finding(codes.PORT_LAUNCH, "", f"{side} launches no block at {trial.point}, the other does")
            )
        result.skipped = "a launch without blocks"
        return result
    try:
        before = make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed, trial.misaligned)
        original, port = copies(before), copies(before)
        result.inputs = checksum(before)
    except (OSError, MemoryError) as error:
        if not trial.far:
            raise
        result.skipped = f"no address space for rows that far apart ({error})"
        return result
    result.original = subject.launch(backend, trial, shapes[0], original, checks=checks)
    result.endless = is_endless(result.original)
    outside = any(b.broken_guards() for b in original.values())  # where nothing watches accesses, this is what tells
    if (trial.far or trial.derived) and (result.original.error or result.original.violations or outside):
        what = "rows that far apart" if trial.far else f"{trial.point}, which the case does not list"
        result.original = RunResult()
        result.skipped = f"the original does not take {what}"
        return result
    stopped = [v for v in result.original.violations if v.kind in STOPS]
    if stopped:  # the port would have to stop as well; what either left behind on the way is nobody's result
        result.skipped = f"the original stops: {stopped[0].kind}"
        return result
    result.original = _without_idle_reads(subject, trial, backend, shapes[0], False, before, original, result.original)
    if result.original.error:
        result.error, result.error_in_port = f"the original: {result.original.error}", False
        return result
    work = MORE_WORK * result.original.instructions + LEAST_WORK
    bounded = replace(subject, port=replace(subject.port, work=work)) if result.original.instructions else subject
    result.port = bounded.launch(backend, trial, shapes[1], port, port=True, checks=checks)
    if result.port.error:
        result.error = f"the port: {result.port.error}"
        return result
    result.endless = is_endless(result.port)
    if result.endless:
        return result
    result.port = _without_idle_reads(subject, trial, backend, shapes[1], True, before, port, result.port)
    compare(subject, trial, before, original, port, result)
    extreme = trial.scenario in EXTREME or number_of(trial.scenario) is not None
    if extreme and any(f.code == codes.REFERENCE_DISAGREES for f in [*result.findings, *_compared(result)]):
        result.findings, result.comparisons = [], {}
        compare(replace(subject, reference=None), trial, before, original, port, result)
    if trial.derived and any(f.code == codes.REFERENCE_DISAGREES for f in [*result.findings, *_compared(result)]):
        what = f"{trial.point}, which the case does not list"
        return TrialResult(trial, skipped=f"the reference does not describe {what}")
    return result


def _compared(result: TrialResult) -> list[Finding]:
    return [f for c in result.comparisons.values() for f in c.findings]


#: inputs at which float32 overflows, cancels or ties where float64 does not: there the original alone is right
EXTREME = ("rows", "shifted", "half_way", "steps")
WINDOW_WORK = 200_000_000  # of the emulator's budget: a few blocks do their share with a small part of it
#: a launch that does one of these does not come to its end
STOPS = ("assert", "trap", "deadlock", "budget")
FILLS = (0x7F, 0xFE, 0xFF)  # as float32: large, large and negative, NaN


def _without_idle_reads(
    subject: InstanceUnderTest,
    trial: Trial,
    backend: Backend,
    shape: LaunchShape,
    is_port: bool,
    before: Buffers,
    after: Buffers,
    result: RunResult,
) -> RunResult:
    """The result without reads of shared or local memory that was never written, and of lanes of a warp that are not
    there, where their values have no effect.

    Compilers load ahead of the branch that decides whether the value is used (measured: NVRTC on cub::BlockReduce of a
    partial block). Other contents of that memory then give the same bits in every buffer; a use would show.
    """
    idle = [v for v in result.violations if v.kind == "uninitialised-read" and v.space in ("shared", "local")]
    idle += [v for v in result.violations if v.kind == "absent-lane"]
    for fill in FILLS if idle else ():
        again = copies(before)
        other = subject.launch(backend, trial, shape, again, port=is_port, checks=False, fill=fill)
        if other.error or any(not np.array_equal(again[n].view(), after[n].view()) for n in after):
            return result
    return replace(result, violations=tuple(v for v in result.violations if v not in idle))


def checksum(buffers: Buffers) -> int:
    """CRC-32 of the buffers that a kernel reads; rows far apart are left out, their memory is not committed."""
    found = 0
    for buffer in buffers.values():
        if buffer.spec.is_read and not buffer.sparse:
            found = zlib.crc32(buffer.raw.tobytes(), found)
    return found


def compare(
    subject: InstanceUnderTest, trial: Trial, before: Buffers, original: Buffers, port: Buffers, result: TrialResult
) -> None:
    """Fill in comparisons and findings of every buffer that the launch was given."""
    present = {n: b for n, b in before.items() if n not in trial.point.null}
    truth, trouble = reference_values(subject, trial, before)
    result.findings += trouble
    canonical: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for segments, members in groups(present).items():
        names = [b.name for b in members]
        o = canonical_rows([original[n] for n in names], original[segments])
        p = canonical_rows([port[n] for n in names], original[segments])
        canonical |= {n: (o[n], p[n]) for n in names}
        ordered = _canonical_reference(names, truth, original, segments)
        truth = {n: v for n, v in truth.items() if n not in names} | ordered
    for name, buffer in present.items():
        result.findings += check_guards(original[name], port[name])
        if buffer.spec.role == "in":
            result.findings += check_input(buffer, original[name], port[name])
        elif buffer.spec.is_compared:
            tolerance = tolerance_of(subject, trial, buffer)
            result.tolerances[name] = tolerance
            result.comparisons[name] = compare_output(
                buffer,
                original[name],
                port[name],
                tolerance,
                truth.get(name),
                truth.get(f"{name}:pre"),
                canonical.get(name),
                slack_of(subject, trial, original[name], [result.original, result.port])
                if buffer.spec.compare == "sum"
                else None,
                trial.scenario == "half_way",
            )


def copies(buffers: Buffers) -> Buffers:
    """The same bytes once more."""
    return {name: b.copy() for name, b in buffers.items()}


def _canonical_reference(
    names: Sequence[str], truth: Mapping[str, np.ndarray], original: Buffers, segments: str
) -> dict[str, np.ndarray]:
    """References of jointly ordered buffers in the canonical order; none when one of them is missing or open."""
    made: list[HostBuffer] = []
    for name in names:
        values = truth.get(name)
        if values is None or (values.dtype.kind == "f" and not np.isfinite(values).all()):
            return {}
        twin = original[name].copy()
        whole = is_integer(twin.dtype)
        twin.view()[...] = values.astype(np.int64).astype(twin.raw.dtype) if whole else encode(values, twin.dtype)
        made.append(twin)
    ordered = canonical_rows(made, original[segments])
    found: dict[str, np.ndarray] = {}
    for twin in made:
        twin.view()[...] = ordered[twin.name]
        found[twin.name] = read_buffer(twin)
    return found


def reference_values(
    subject: InstanceUnderTest, trial: Trial, before: Buffers
) -> tuple[dict[str, np.ndarray], list[Finding]]:
    """The float64 reference at a trial ({} when the case names none), and what is wrong with it."""
    if subject.reference is None:
        return {}, []
    inputs = {n: read_buffer(b) for n, b in before.items() if b.spec.is_read and n not in trial.point.null}
    try:
        found = subject.reference(inputs, trial.point.scalars, trial.point.sizes, dict(subject.values))
        arrays = {k: np.asarray(v) for k, v in found.items()}
    except Exception as error:  # a case may name code of its author
        return {}, [
            Finding(
                codes.REFERENCE_DISAGREES, "", f"the reference fails: {type(error).__name__}: {error}", is_port=False
            )
        ]
    trouble = []
    for name in list(arrays):
        buffer = before.get(name.removesuffix(":pre"))
        if buffer is None or not _fits(arrays[name].shape, buffer.shape):
            have = f"shape {list(arrays[name].shape)}, the buffer {list(buffer.shape)}" if buffer else "no such buffer"
            text = f"the reference gives `{name}`: {have}"
            trouble.append(Finding(codes.REFERENCE_DISAGREES, name.removesuffix(":pre"), text, is_port=False))
            del arrays[name]
    return arrays, trouble


def _fits(shape: tuple[int, ...], want: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, want) == want
    except ValueError:
        return False


def tolerance_of(subject: InstanceUnderTest, trial: Trial, buffer: HostBuffer) -> Tolerance:
    """The tolerance of an output at a point. The longest sum is the longest input row, unless the case says more."""
    spec = dict(subject.case.tolerance).get(buffer.name)
    compare = buffer.spec.compare_at(subject.values)
    terms = 1
    if buffer.dtype in FLOAT_NAMES:
        terms = tolerance_terms(subject, trial)
    reduction = terms if subject.reduces else 1
    if spec is not None and spec.reduction is not None:
        reduction = int(expressions.evaluate(spec.reduction, trial.point.names(subject.values)))
    original, port = subject.approximations
    condition = conditioning(subject.case, subject.values, trial.scenario)
    how = (reduction, original, port, spec, subject.contracts, terms, subject.products, condition)
    return derive(buffer.dtype, compare, *how)


def slack_of(subject: InstanceUnderTest, trial: Trial, buffer: HostBuffer, results: Sequence[RunResult]) -> np.ndarray:
    """How much two orders of an element's sum may differ: 2 n u times the magnitudes of the n terms that atomics added.

    Infinite where a sum may overflow on its way. Where the backend counts no terms, as many as the longest row has are
    taken, as large as the row's largest sum.
    """
    slack = np.zeros(buffer.shape)
    if any(result.sums is None for result in results):
        terms = tolerance_terms(subject, trial)
        return slack + 2.0 * terms * ROUNDING.get(buffer.dtype, 0.0) * row_scale(numbers(buffer.view(), buffer.dtype))
    for result in results:
        sums = (result.sums or {}).get(buffer.name)
        if sums is None or not buffer.raw.size or sums.terms.size < buffer.raw.size:
            continue
        steps = tuple(s * 8 for s in buffer.strides)
        counted, magnitude = (
            np.lib.stride_tricks.as_strided(x, buffer.shape, steps)
            for x in (sums.terms.astype(np.float64), sums.magnitude)
        )
        with np.errstate(invalid="ignore", over="ignore"):
            bound = 2.0 * counted * (sums.rounding * magnitude + _LEAST_NORMAL)
            slack = np.maximum(slack, np.where(magnitude > LARGEST[buffer.dtype], np.inf, bound))
    return slack


def tolerance_terms(subject: InstanceUnderTest, trial: Trial) -> int:
    """Terms of the longest sum: the longest input row."""
    rows = [trial.point.shapes[b.name] for b in subject.case.buffers if b.is_read]
    return max((shape[-1] for shape in rows if shape), default=1)


_LEAST_NORMAL = 2.0**-126  # atomics on f32 in global memory may flush what is below
