"""The launches that a port's own launch asks for beside those of the case, and what no GPU would launch.

Three things add launches: numbers that only the port compares with, ways through its launch_config (ways), and the
number of multiprocessors where one of the launches scales with it. What a GPU refuses is found before anything is run.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from porter import codes
from porter.case.expressions import Value
from porter.case.model import LaunchShape
from porter.case.reader import Case, CaseInstance, Point
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.verify.emulator.machine.drawn import SM_COUNTS
from porter.verify.launches.derived import listed_sizes
from porter.verify.launches.limits import KernelResources, broken_limit
from porter.verify.launches.port_launch import Failed, answered
from porter.verify.launches.trials import Trial
from porter.verify.launches.ways import MOST, OwnLaunch, ways_of

NEAR = 24  # points at which launches are compared for each number of multiprocessors
MACHINES = 6  # numbers of multiprocessors beside the usual ones, from constants in the text

Pair = tuple[LaunchShape, LaunchShape]  # of the original and of the port


@dataclass
class OwnPlan:
    """Launches of one instance with their shapes, and what stands against them. `undecided`: the case is at fault."""

    trials: list[Trial] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    against: list[Diagnostic] = field(default_factory=list)
    undecided: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True)
class PortLaunches:
    """What is known of one instance when its launches are planned. Kernels by architecture."""

    port: Path
    text: str
    case: Case
    instance: CaseInstance
    values: Mapping[str, Value]
    sm_count: int
    original_kernels: Mapping[str, KernelResources]
    port_kernels: Mapping[str, KernelResources]

    def plan(self, trials: Sequence[Trial], pairs: Sequence[Pair], extra: Sequence[Trial], seed: int) -> OwnPlan:
        """`trials` with their shapes, `extra` trials beyond the case that the port may refuse, and all that it adds."""
        plan = OwnPlan(list(trials), list(pairs))
        self._add(plan, extra, self.sm_count)
        ways = ways_of(self.text)
        launch = OwnLaunch(self.case, self.instance, self.values, ways, self.sm_count, self._ask)
        if any(theirs != mine for theirs, mine in plan.pairs) or launch.differs():
            added, unverified = launch.more_trials(plan.trials, seed)
            if unverified:
                message = f"at {unverified} the launch takes a branch that no launch can verify"
                help_ = "a bound or a condition of the grid has to show at sizes of at most some 500,000 elements"
                plan.against.append(Diagnostic(codes.UNVERIFIABLE_BRANCH, message, Span(str(self.port), 1), help=help_))
            self._add(plan, added, self.sm_count)
        if "sm_count" in self.text or any("sm_count" in e for e in (*self.case.launch.grid, *self.case.launch.block)):
            constants = sorted(c for c in (ways.constants if ways else ()) if 8 < c <= 1024)[:MACHINES]
            for sms in sorted({*SM_COUNTS, *(c + d for c in constants for d in (-1, 0, 1))}):
                self._machine(plan, launch, sms, seed)
        self._limits(plan, launch)
        return plan

    def _ask(self, points: Sequence[Point]) -> list[LaunchShape | None]:
        answers = answered(self.port, self.case, [(self.values, p) for p in points], self.sm_count)
        return [None if isinstance(a, Failed) else a for a in answers]

    def _case_launch(self, point: Point, sm_count: int) -> LaunchShape | None:
        try:
            return self.case.launch_at(point, self.values, sm_count)
        except PorterError:
            return None

    def _add(self, plan: OwnPlan, trials: Sequence[Trial], sm_count: int) -> None:
        """Trials beyond the case: those that port and case have a launch for."""
        if not trials:
            return
        known = {str(t) for t in plan.trials}
        answers = answered(self.port, self.case, [(self.values, t.point) for t in trials], sm_count)
        for trial, mine in zip(trials, answers, strict=True):
            theirs = self._case_launch(trial.point, sm_count)
            if not isinstance(mine, Failed) and theirs is not None and str(trial) not in known:
                plan.trials.append(trial)
                plan.pairs.append((theirs, mine))

    def _machine(self, plan: OwnPlan, launch: OwnLaunch, sms: int, seed: int) -> None:
        """Launches with another number of multiprocessors: where port and case differ there, else where it counts."""
        points = sorted({str(t.point): t.point for t in plan.trials}.values(), key=lambda p: p.elements)[-NEAR // 2 :]
        around = sorted((p for p in launch.around if p.elements <= MOST), key=lambda p: p.elements)
        points += around[:: max(1, len(around) // NEAR)]
        wanted = [(self.values, p) for p in points]
        here = answered(self.port, self.case, wanted, self.sm_count)
        there = answered(self.port, self.case, wanted, sms)
        differ: list[tuple[Point, Pair]] = []
        counts: list[tuple[Point, Pair]] = []
        for point, before, mine in zip(points, here, there, strict=True):
            theirs = self._case_launch(point, sms)
            if isinstance(mine, Failed) or theirs is None:
                continue
            if mine != theirs:
                differ.append((point, (theirs, mine)))
            elif mine != before:
                counts.append((point, (theirs, mine)))
            scaled = sms if mine != before else 0
            self._refuse(plan, point, (theirs, mine), scaled)
        chosen = [*differ[:1], *differ[1:][-1:]] or counts[-1:]
        rng = random.Random(f"machine {seed} {sms} {self.instance.args}")
        for point, pair in chosen:
            plan.trials.append(Trial(point, "normal", rng.randrange(1 << 31), derived=True))
            plan.pairs.append(pair)

    def _limits(self, plan: OwnPlan, launch: OwnLaunch) -> None:
        """Takes out what no GPU accepts. What the case does not list and the original could not launch is dropped."""
        for point in launch.around:  # grids and attributes of the port's own, also where nothing is run
            mine, theirs = launch.asked[str(point)], launch.cases(point)
            if mine is not None and theirs is not None and mine != theirs and point.elements <= MOST << 4:
                self._refuse(plan, point, (theirs, mine), 0, beyond=True)
        kept: list[tuple[Trial, Pair]] = []
        for trial, pair in zip(plan.trials, plan.pairs, strict=True):
            broken = self._broken(pair[0], self.original_kernels)
            if broken and not (trial.derived or trial.far):
                self._say(
                    plan.undecided, codes.CASE_LAUNCH_LIMIT, "the case asks for", trial.point, broken, self._case_span()
                )
            elif not broken and not self._refuse(plan, trial.point, pair, 0, trial.derived):
                kept.append((trial, pair))
        plan.trials, plan.pairs = [t for t, _ in kept], [p for _, p in kept]
        listed = self.case.instance_points(self.instance, self.values)
        largest = sorted(listed, key=lambda p: -p.elements)[:1]  # which is not always among those that are run
        for point in largest:
            theirs = self._case_launch(point, self.sm_count)
            broken = self._broken(theirs, self.original_kernels) if theirs is not None else ""
            if broken:
                self._say(
                    plan.undecided, codes.CASE_LAUNCH_LIMIT, "the case asks for", point, broken, self._case_span()
                )

    def _refuse(self, plan: OwnPlan, point: Point, pair: Pair, sm_count: int, beyond: bool = False) -> bool:
        """Says what no GPU accepts of a port's launch, where the original's can be launched.

        `beyond` the case a port may need more shared memory than there is: such a launch fails where it is made.
        """
        if self._broken(pair[0], self.original_kernels, sm_count):
            return False
        broken = self._broken(pair[1], self.port_kernels, sm_count)
        if broken and not (beyond and "shared memory" in broken and not self._is_listed(point)):
            self._say(
                plan.against, codes.PORT_LAUNCH_LIMIT, "the port launches", point, broken, Span(str(self.port), 1)
            )
        return bool(broken)

    def _is_listed(self, point: Point) -> bool:
        sizes = {n: listed_sizes(self.case, n) for n in self.case.base_sizes}
        return all(min(v) <= point.sizes[n] <= max(v) for n, v in sizes.items() if v)

    def _broken(self, shape: LaunchShape, kernels: Mapping[str, KernelResources], sm_count: int = 0) -> str:
        found = (broken_limit(shape, kernel, arch, sm_count) for arch, kernel in kernels.items())
        return next((text for text in found if text), "")

    def _case_span(self) -> Span:
        return Span(str(self.case.path), 1)

    def _say(self, to: list[Diagnostic], code: str, who: str, point: Point, broken: str, span: Span) -> None:
        label = str(self.instance.instance)
        message = f"{label}: ".lstrip(": ") + f"{who} {broken} (at {point})"
        help_ = (
            "no GPU accepts such a launch"
            if code == codes.PORT_LAUNCH_LIMIT
            else "give the case sizes that can be launched"
        )
        if not any(d.code == code for d in to):
            to.append(Diagnostic(code, message, span, help=help_))
