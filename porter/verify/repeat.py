"""Launches repeated under other schedules, of both sides: what depends on the order of execution, and whose it is.

The original comes first: what its order leaves open says nothing about the port. A sum of floats whose order the case
leaves open (`compare = "sum"`) may differ by its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from porter import codes
from porter.case.reader import LaunchShape
from porter.verify.backends.interface import Backend, Build, RunResult, Violation
from porter.verify.execute import InstanceUnderTest, TrialResult, copies, slack_of
from porter.verify.launches.buffers import Buffers, is_integer
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import PLANTED, Trial
from porter.verify.numerics.comparison import Comparison, Finding, numbers
from porter.verify.numerics.segments import canonical_rows, groups

Pair = tuple[LaunchShape, LaunchShape]
ENOUGH = 20_000  # elements of a launch that is repeated
REPEATED = 2  # launches an instance that are repeated under other schedules
SMALL = 100_000_000  # thread instructions: of larger launches the least one is repeated, and none is counted
FEW = (
    3  # launches in which the port differs at which the original is run again, to see whether it always gives the same
)

#: what a schedule shows by itself; the rest is looked for in the launches that are compared
DECISIVE = frozenset(
    ("out-of-bounds", "misaligned", "read-only-write", "skipped-lane", "divergent-barrier", "divergent-sync",
     "deadlock", "trap", "assert", "budget")
)  # fmt: skip


@dataclass
class Repeated:
    """What repeats of one launch showed. Violations are those that only other schedules have."""

    trial: Trial
    findings: list[Finding] = field(default_factory=list)
    original: list[Violation] = field(default_factory=list)
    port: list[Violation] = field(default_factory=list)
    schedules: int = 0


@dataclass
class _Runs:
    """One side under all schedules: what each left, and where they differ."""

    buffers: list[Buffers] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)
    error: str = ""

    def violations(self) -> list[Violation]:
        """What other schedules show beside the first one, which is that of the launches that are compared."""
        usual = {v.kind for v in self.results[0].violations}
        found = (v for r in self.results[1:] for v in r.violations if v.kind in DECISIVE and v.kind not in usual)
        return list({v.kind: v for v in reversed(list(found))}.values())


@dataclass(frozen=True)
class Repeats:
    """Launches of one instance that gave something to compare, and how to run them again."""

    subject: InstanceUnderTest
    backend: Backend
    ready: Sequence[tuple[TrialResult, Pair]]

    def directed(self, build: Build) -> tuple[int, ...]:
        """Chosen orders in which a kernel may do something else; () where the backend has none."""
        directed = getattr(self.backend, "directed", None)
        return tuple(directed(build)) if directed is not None else ()

    @cached_property
    def schedules(self) -> tuple[int, ...]:
        """What repeats are run under."""
        chosen = {*self.directed(self.subject.original), *self.directed(self.subject.port)}
        return (*self.backend.schedules, *sorted(chosen, reverse=True))

    def chosen(self) -> list[tuple[TrialResult, Pair]]:
        """Launches worth repeating: several blocks, few elements; one with planted values, which show an order best."""
        near = sorted((r for r in self.ready if not r[0].trial.far), key=lambda r: r[0].trial.point.elements)
        blocks = [r for r in near if max(r[1][1].grid) > 1] or near
        light = [r for r in blocks if r[0].port.instructions <= SMALL]
        if blocks and not light:
            return [min(blocks, key=lambda r: r[0].port.instructions)]
        blocks = light
        chosen = [r for r in blocks if r[0].trial.point.elements < ENOUGH][-REPEATED:] or blocks[:REPEATED]
        planted = [r for r in blocks if r[0].trial.scenario in PLANTED]
        if planted and not any(r[0].trial.scenario in PLANTED for r in chosen):
            chosen = [*chosen[1:], planted[-1]]
        return chosen

    def smallest(self) -> tuple[TrialResult, Pair]:
        """The cheapest launch of several blocks, of ordinary inputs, where there is one: zeros or rows of NaN give the
        same results whatever else goes wrong."""

        def rank(ready: tuple[TrialResult, Pair]) -> tuple[bool, bool, bool, bool, int]:
            trial, (_, port) = ready[0].trial, ready[1]
            elements = trial.point.elements
            return trial.far, max(port.grid) == 1, elements >= ENOUGH, trial.scenario != "normal", elements

        return min(self.ready, key=rank)

    def repeat(self, trial: Trial, pair: Pair) -> Repeated:
        """One launch of both sides under all schedules."""
        return repeat_trial(self.subject, trial, self.backend, pair, self.schedules)

    def excuse_open_order(self) -> None:
        """Take what the original's own order leaves open out of the comparisons in which the port differs."""
        differ = [(r, pair) for r, pair in self.ready if any(_differs(c) for c in r.comparisons.values())]
        differ.sort(key=lambda item: item[0].trial.point.elements)
        open_: dict[str, str] = {}
        chosen = self.directed(self.subject.original)
        if not chosen and hasattr(self.backend, "directed"):
            return  # nothing in it can tell an order
        schedules = (*self.backend.schedules, *chosen, *getattr(self.backend, "more_schedules", ()))
        for result, pair in differ[:FEW]:
            runs = _run(self.subject, result.trial, self.backend, pair[0], False, schedules)
            if not runs.error:
                open_ = _differing(self.subject, result.trial, runs, schedules) | open_
        for result, _ in differ if open_ else ():
            for name in [n for n, c in result.comparisons.items() if n in open_ and _differs(c)]:
                del result.comparisons[name]
                text = f"the original itself depends on the order: {open_[name]}; the port is not judged by it"
                result.findings.append(Finding(codes.ORDER_DEPENDENT, name, text, is_port=False))


def repeat_trial(
    subject: InstanceUnderTest, trial: Trial, backend: Backend, shapes: Pair, schedules: Sequence[int]
) -> Repeated:
    """Run both sides under several schedules: outputs must be the same bits (the same sets, sums within their bound).

    What the original's own order leaves open, or what it does wrong under a schedule, is not held against the port.
    """
    found = Repeated(trial, schedules=len(schedules))
    known = frozenset(subject.case.known_violations)
    original = _run(subject, trial, backend, shapes[0], False, schedules)
    if original.error:
        text = f"{original.error.replace('SIDE', 'the original')}"
        found.findings.append(Finding(codes.ORDER_DEPENDENT, "", text, str(trial), is_port=False))
        return found
    found.original = [v for v in original.violations() if v.kind not in known]
    if found.original:
        return found
    open_ = _differing(subject, trial, original, schedules)
    for name, text in open_.items():
        message = f"the original itself depends on the order: {text}"
        found.findings.append(Finding(codes.ORDER_DEPENDENT, name, message, str(trial), is_port=False))
    if shapes[0].cooperative and not shapes[1].cooperative and hasattr(backend, "alone"):
        schedules = (*schedules, backend.alone)
    port = _run(subject, trial, backend, shapes[1], True, schedules)
    if port.error:
        found.findings.append(Finding(codes.ORDER_DEPENDENT, "", port.error.replace("SIDE", "the port"), str(trial)))
        return found
    shared = {v.kind for r in original.results for v in r.violations}
    found.port = [v for v in port.violations() if v.kind not in shared]
    if found.port:
        return found
    for name, text in _differing(subject, trial, port, schedules).items():
        if name not in open_:
            found.findings.append(Finding(codes.ORDER_DEPENDENT, name, text, str(trial)))
    return found


def _differs(comparison: Comparison) -> bool:
    return comparison.failed or comparison.different > 0


def _run(
    subject: InstanceUnderTest, trial: Trial, backend: Backend, shape: LaunchShape, port: bool, schedules: Sequence[int]
) -> _Runs:
    before = make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed, trial.misaligned)
    runs = _Runs()
    for schedule in schedules:
        buffers = copies(before)
        result = subject.launch(backend, trial, shape, buffers, port=port, schedule=schedule, checks=False)
        if result.error:
            return _Runs(error=f"under schedule {schedule} SIDE fails: {result.error}")
        runs.buffers.append(buffers)
        runs.results.append(result)
    return runs


def _differing(subject: InstanceUnderTest, trial: Trial, runs: _Runs, schedules: Sequence[int]) -> dict[str, str]:
    """Outputs that change with the schedule, with a text about the first change."""
    found: dict[str, str] = {}
    first = comparable(runs.buffers[0], trial)
    for k, schedule in enumerate(schedules[1:], 1):
        for name, words in comparable(runs.buffers[k], trial).items():
            different = words != first[name]
            if name in found or not different.any():
                continue
            buffer = runs.buffers[k][name]
            if buffer.spec.compare == "sum" and not is_integer(buffer.dtype):
                slack = slack_of(subject, trial, buffer, [runs.results[0], runs.results[k]])
                a, b = numbers(first[name], buffer.dtype), numbers(words, buffer.dtype)
                with np.errstate(invalid="ignore", over="ignore"):
                    close = (np.abs(a - b) <= slack) | np.isposinf(slack)
                different &= ~(close | (np.isnan(a) & np.isnan(b)))
            count = int(np.count_nonzero(different))
            if count:
                text = f"{count} of {words.size} elements change with the order in which blocks and warps run"
                found[name] = f"{text} (schedules {schedules[0]} and {schedule})"
    return found


def comparable(buffers: Buffers, trial: Trial) -> dict[str, np.ndarray]:
    """The words of each output, in an order of their own where the case leaves it open."""
    present = {n: b for n, b in buffers.items() if n not in trial.point.null}
    words = {n: b.view() for n, b in present.items() if b.spec.is_compared}
    for segments, members in groups(present).items():
        words |= canonical_rows(members, buffers[segments])
    return words
