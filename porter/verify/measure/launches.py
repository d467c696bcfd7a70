"""The original alone, launched at a few points with buffers that are long enough: what it touches of each, and which
sizes it does not take."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from porter.case.expressions import Value
from porter.case.model import Case, Point
from porter.model import KernelInfo, PorterError
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import Build
from porter.verify.execute import InstanceUnderTest, copies, given_to
from porter.verify.launches.buffers import Buffers, host_buffer
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import Trial
from porter.verify.measure.extents import Extent

ELEMENTS = 1 << 20  # of a buffer whose length nobody says
PERIOD = 10_007  # of these, after which what they hold is repeated
BUDGET = 20_000_000  # thread-instructions of a launch, about
OBSERVED = 2_000_000  # of a launch that is watched access by access, where others have been
MOST_POINTS = 12
SECONDS = 3.0  # of CPU time for a kernel's first instance
SEED = 1
_BUFFER = re.compile(r"at offset -?\d+ of (\w+) \(")


@dataclass(frozen=True)
class Measurement:
    """One launch. `fault` says what the original did wrong, or why it could not be run."""

    sizes: Mapping[str, int]
    numbers: Mapping[str, int]  # sizes, whole scalars and template values: what a shape may be made of
    fault: str = ""
    outside: str = ""  # the buffer that was accessed beyond its end first
    empty: bool = False  # a launch without blocks
    touched: Mapping[str, Extent] = field(default_factory=dict)


def probes(case: Case) -> list[dict[str, int]]:
    """Base sizes for launches that tell sizes apart: a small one of each, then each changed alone, then all of them."""
    if case.only_shapes:
        return [dict(shape) for shape in case.shapes[:MOST_POINTS]]
    listed = {n: sorted(v for v in values if v > 0) for n, values in case.sizes if not isinstance(values, str)}
    listed = {n: v or [1] for n, v in listed.items()}
    base = {n: v[min(1, len(v) - 1)] if v[0] == 1 else v[0] for n, v in listed.items()}
    others = {n: [x for x in v if x != base[n]] or [2 * base[n]] for n, v in listed.items()}
    found = [base]
    found += [{**base, n: v[0]} for n, v in others.items()]
    found += [{**base, n: v[1]} for n, v in others.items() if len(v) > 1]
    found.append({n: v[-1] if v[-1] < 256 else v[0] for n, v in others.items()})
    once = {tuple(sorted(sizes.items())): sizes for sizes in found}
    return list(once.values())[:MOST_POINTS]


def measure(
    case: Case,
    info: KernelInfo,
    values: Mapping[str, Value],
    original: Build,
    sizes: Sequence[Mapping[str, int]],
    unknown: Sequence[str] = (),
    seconds: float = SECONDS,
) -> list[Measurement]:
    """Launches of the original at these sizes, with buffers of ELEMENTS elements in the place of those whose length is
    `unknown`. At most `seconds` of CPU time, but for the first. Never raises for what the kernel does or the case
    cannot give."""
    subject = InstanceUnderTest(case, info, dict(values), original, original)
    found: list[Measurement] = []
    watched = 0
    began = time.process_time()
    for given in sizes:
        if found and time.process_time() - began > seconds:
            break
        most = OBSERVED if watched else BUDGET
        if not unknown and watched >= _ENOUGH:
            most = 0
        try:
            point = case.point_at(dict(given), dict(values))
            made = _measured(subject, given, point, unknown, most)
        except PorterError as error:
            made = Measurement(given, given, error.diagnostics[0].message)
        except (ptx.PtxError, MemoryError, OverflowError) as error:
            made = Measurement(given, given, str(error))
        watched += bool(made.touched)
        found.append(made)
    return found


_ENOUGH = 2  # launches that are watched where only the roles are asked for


def _measured(
    subject: InstanceUnderTest, sizes: Mapping[str, int], point: Point, unknown: Sequence[str], most: int
) -> Measurement:
    case, backend = subject.case, EmulatorBackend(BUDGET)
    whole = {n: v for n, v in point.names(subject.values).items() if isinstance(v, int) and not isinstance(v, bool)}
    measurement = Measurement(sizes, whole)
    shape = case.launch_at(point, subject.values, backend.sm_count)
    if shape.is_empty:
        return replace(measurement, empty=True)
    trial = Trial(point, "normal", SEED)
    before = _inputs(case, sizes, subject.values, unknown)
    run = subject.launch(backend, trial, shape, copies(before))
    if run.error:
        return replace(measurement, fault=run.error)
    # Values that nobody wrote may have no effect: the verification decides that, with the shapes measured here.
    bad = [v for v in run.violations if not (v.kind == "uninitialised-read" and v.space in ("shared", "local"))]
    if bad:
        first = bad[0]
        beyond = next((x for v in bad if v.kind == "out-of-bounds" and (x := _BUFFER.search(v.message))), None)
        outside = beyond.group(1) if beyond else ""
        return replace(measurement, fault=f"{first.kind}: {first.message}", outside=outside)
    if run.instructions > most:
        return measurement
    given = given_to(subject, trial, before)
    reached = backend.touched(subject.original, shape, given.arguments, given.variables)
    seen = {n: reached[n] for n in before if n in reached}
    return replace(measurement, touched={n: Extent(r.read, r.written, r.read_first) for n, r in seen.items()})


def _inputs(case: Case, sizes: Mapping[str, int], values: Mapping[str, Value], unknown: Sequence[str]) -> Buffers:
    """Filled buffers; what those of unknown length hold repeats itself."""
    short = tuple(replace(b, shape=(str(PERIOD),), strides=None) if b.name in unknown else b for b in case.buffers)
    case = replace(case, buffers=short)
    made = make_inputs(case, case.point_at(dict(sizes), dict(values)), values, "normal", SEED)
    for name in unknown:
        part = made[name]
        made[name] = host_buffer(part.spec, part.dtype, np.resize(part.raw, ELEMENTS))
    return made
