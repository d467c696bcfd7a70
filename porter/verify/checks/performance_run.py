"""Runs the `performance` check of one port: jobs for the GPU process, or counts where there is no GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from porter.case.expressions import Value
from porter.case.reader import Case, CaseInstance, LaunchShape
from porter.model import Verdict
from porter.model.facts import CountedLaunch
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import as_argument, as_variables
from porter.verify.backends.gpu import GpuBackend
from porter.verify.backends.gpu_timing import Neighbours, TimingJob
from porter.verify.backends.interface import Backend
from porter.verify.checks.performance import (
    COUNTED,
    Timed,
    TimedRow,
    counts_verdict,
    launch_counts,
    moved_bytes,
    neighbours,
    performance_verdict,
    points_to_time,
    time_points,
    timing_job,
)
from porter.verify.execute import InstanceUnderTest, given_to
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.port_launch import port_launches
from porter.verify.launches.trials import Trial

KIND_SECONDS = 2.0  # of asking for more rounds, for each kind of timing at a point


@dataclass(frozen=True)
class Performance:
    """What the check needs of a verification. `subjects` are by instance number; not all instances may have one."""

    case: Case
    instances: Sequence[tuple[CaseInstance, Mapping[str, Value]]]
    subjects: Mapping[int, InstanceUnderTest]
    port_path: Path
    arch: str
    seed: int

    def check(
        self,
        backend: Backend,
        sizes: Sequence[Mapping[str, int]],
        seconds: float,
        small: Sequence[tuple[InstanceUnderTest, Trial]],
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> Verdict:
        """Times of the points of `sizes` (or of the case) on a GPU. Elsewhere SKIP, with counts of a `small` launch.

        Raises PorterError where an expression of the case fails, or the helper kernels do not compile.
        """
        if not isinstance(backend, GpuBackend):
            return counts_verdict(self.counts(backend, small))
        near = neighbours(self.arch)
        chosen = [t for t in points_to_time(self.case, self.instances, sizes) if t.instance in self.subjects]
        wanted = [(self.instances[t.instance][1], t.point) for t in chosen]
        launches = port_launches(self.port_path, self.case, wanted, backend.sm_count) if wanted else []
        jobs = [self._job(t, shape, backend, near) for t, shape in zip(chosen, launches, strict=True)]
        jobs = [j for j in jobs if j is not None]

        def report_progress(done: int, total: int) -> None:
            if on_progress:
                on_progress("performance", done, total)

        rows = time_points(
            backend.process, [j for j in jobs if j is not None], time.perf_counter() + seconds, report_progress
        )
        return performance_verdict(self.case, rows, backend.facts.name)

    def _job(
        self, timed: Timed, port_shape: LaunchShape, backend: Backend, near: Neighbours
    ) -> tuple[TimedRow, Callable[[], TimingJob]] | None:
        instance, values = self.instances[timed.instance]
        subject, point = self.subjects[timed.instance], timed.point
        shapes = (self.case.launch_at(point, values, backend.sm_count), port_shape)
        if any(s.is_empty for s in shapes):
            return None
        sizes = {k: point.sizes[k] for k in self.case.base_sizes}
        row = TimedRow(str(instance.instance), sizes, shapes[0].grid, 0)

        def make() -> TimingJob:
            host = make_inputs(subject.case, point, values, "normal", self.seed)
            row.nbytes = moved_bytes(host)
            trial = Trial(point, "normal", self.seed)
            given = (given_to(subject, trial, host), given_to(subject, trial, host, port=True))
            return timing_job((subject.original, subject.port), shapes, given, host, near, KIND_SECONDS)

        return row, make

    def counts(self, backend: Backend, small: Sequence[tuple[InstanceUnderTest, Trial]]) -> CountedLaunch | None:
        """Counts of both sides for the largest launch that is small enough; None when none is."""
        fit = [s for s in small if 0 < s[1].point.elements <= COUNTED]
        for subject, trial in sorted(fit, key=lambda s: -s[1].point.elements)[:1]:
            shapes = (
                self.case.launch_at(trial.point, subject.values, backend.sm_count),
                port_launches(self.port_path, self.case, [(subject.values, trial.point)], backend.sm_count)[0],
            )
            counts: list[dict[str, int]] = []
            try:
                for build, shape in zip((subject.original, subject.port), shapes, strict=True):
                    host = make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed)
                    given = given_to(subject, trial, host, port=build is subject.port)
                    encoded = [as_argument(a) for a in given.arguments]
                    counts.append(launch_counts(build, shape, encoded, as_variables(given.variables)))
            except ptx.PtxError:
                continue
            original, port = counts
            return CountedLaunch(str(trial), original, port)
        return None
