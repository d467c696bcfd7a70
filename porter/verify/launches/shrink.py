"""A failing launch made small: the least sizes, plainest inputs and scalars at which the port still fails that way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from porter.case import expressions
from porter.case.expressions import ExprError
from porter.case.reader import Case, CaseInstance, LaunchShape, Point
from porter.model import PorterError
from porter.verify.backends.interface import Backend
from porter.verify.execute import InstanceUnderTest, TrialResult, run_trial
from porter.verify.launches.derived import is_legal, listed_sizes, point_of
from porter.verify.launches.port_launch import port_launches
from porter.verify.launches.trials import Trial

SECONDS = 8.0  # for one failure
LAUNCHES = 48

Fails = Callable[[TrialResult], bool]


@dataclass(frozen=True)
class Shrinker:
    """What is needed to launch one instance at other points."""

    port_path: Path
    case: Case
    instance: CaseInstance
    subject: InstanceUnderTest
    backend: Backend
    sm_count: int

    def shrink(self, result: TrialResult, fails: Fails, seconds: float = SECONDS) -> TrialResult:
        """The smallest launch found that still fails; `result` itself where nothing smaller does.

        Deterministic but for the time limit: sizes are halved towards the least that the case allows, then counted
        down; before that the inputs become normal, pointers aligned, scalars the first of their variants.
        """
        deadline = time.perf_counter() + seconds
        left = LAUNCHES
        best = result
        while left > 0 and time.perf_counter() < deadline:
            for trial, shapes in self._launchable(self._smaller(best.trial)):
                if left <= 0 or time.perf_counter() > deadline:
                    break
                left -= 1
                made = run_trial(self.subject, trial, self.backend, shapes)
                if not made.skipped and fails(made):
                    best = made
                    break
            else:
                break
        return best

    def _launchable(self, trials: Sequence[Trial]) -> list[tuple[Trial, tuple[LaunchShape, LaunchShape]]]:
        values = self.subject.values
        try:
            shapes = port_launches(self.port_path, self.case, [(values, t.point) for t in trials], self.sm_count)
            return [
                (t, (self.case.launch_at(t.point, values, self.sm_count), s))
                for t, s in zip(trials, shapes, strict=True)
            ]
        except PorterError:
            return []

    def _smaller(self, trial: Trial) -> list[Trial]:
        """Trials one step plainer or smaller, the boldest first."""
        found: list[Trial] = []
        if trial.far:
            return found
        if trial.scenario != "normal":
            found.append(replace(trial, scenario="normal"))
        if trial.misaligned:
            found.append(replace(trial, misaligned=frozenset()))
        base = {n: trial.point.sizes[n] for n in self.case.base_sizes}
        texts = self._scalar_texts(trial.point)
        first_values = {n: v[0] for n, v in self.case.scalars}
        points = [self._point(base, first_values, trial.point)] if first_values != texts else []
        steps = {n: self._less(n, v) for n, v in base.items()}
        if sum(bool(s) for s in steps.values()) > 1:
            points.append(self._point({n: (steps[n] or [v])[0] for n, v in base.items()}, texts, trial.point))
        for rank in range(max((len(s) for s in steps.values()), default=0)):
            for name, less in steps.items():
                if rank < len(less):
                    points.append(self._point({**base, name: less[rank]}, texts, trial.point))
        seen = {str(trial.point)}
        for point in points:
            if point is not None and str(point) not in seen and point.elements <= trial.point.elements:
                seen.add(str(point))
                found.append(replace(trial, point=point, derived=True))
        return found

    def _less(self, name: str, value: int) -> list[int]:
        """Smaller legal values of a size: the least, a half, three quarters, ... one step down."""
        listed = listed_sizes(self.case, name)
        step = math.gcd(*listed) or 1
        least = max(min(listed), step)
        tried = (least, value // 2, value * 3 // 4, value * 7 // 8, value * 15 // 16, value - step)
        down = dict.fromkeys(v // step * step for v in tried)
        return [v for v in down if least <= v < value and is_legal(v, listed)]

    def _point(self, sizes: dict[str, int], texts: dict[str, str], like: Point) -> Point | None:
        return point_of(self.case, self.instance, self.subject.values, sizes, texts, like.null)

    def _scalar_texts(self, point: Point) -> dict[str, str]:
        """Which of its variants each scalar has at a point."""
        names = point.names(self.subject.values)
        found = {}
        for name, variants in self.case.scalars:
            found[name] = variants[0]
            for text in variants:
                try:
                    if expressions.evaluate(text, names) == point.scalars[name]:
                        found[name] = text
                        break
                except ExprError:
                    continue
        return found
