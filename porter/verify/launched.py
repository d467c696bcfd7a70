"""Every launch of an instance on a backend: once on both sides, then some of them again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from porter.model import Instance
from porter.verify.again import launch_again
from porter.verify.backends.interface import Backend
from porter.verify.checks import contraction
from porter.verify.execute import InstanceUnderTest, is_endless, run_trial
from porter.verify.launches.trials import Trial
from porter.verify.original_faults import excuse_port
from porter.verify.repeat import SMALL, Pair, Repeats
from porter.verify.verdicts import InstanceRun

Launched = tuple[InstanceRun, Repeats]


def launch_instance(
    subject: InstanceUnderTest,
    instance: Instance,
    trials: Sequence[Trial],
    pairs: Sequence[Pair],
    backend: Backend,
    deadline: float,
    on_launch: Callable[[], None] = lambda: None,
) -> Launched:
    """Run every trial until `deadline` (time.perf_counter). What the original is to blame for, the port is not."""
    dtypes = {b.name: b.dtype_at(subject.values) for b in subject.case.buffers}
    run = InstanceRun(instance, dtypes, planned=len(trials))
    taken: list[Pair] = []
    listed_only = False  # the original does not end at a size of porter's: the others would take as long
    for trial, pair in zip(trials, pairs, strict=True):
        if time.perf_counter() > deadline or ends_here(run):
            break
        on_launch()
        if listed_only and (trial.derived or trial.far):
            run.planned -= 1
            continue
        run.results.append(run_trial(subject, trial, backend, pair))
        taken.append(pair)
        listed_only |= run.results[-1].endless and not ends_here(run) and not trial.window
    contraction.check(subject, run.results, taken, backend)
    excuse_port(run.results, subject.case.known_violations)
    ready = [(r, pair) for r, pair in zip(run.results, taken, strict=True) if r.comparisons]
    again = Repeats(subject, backend, ready)
    again.excuse_open_order()
    return run, again


def ends_here(run: InstanceRun) -> bool:
    """Whether a launch was ended before it was done: no other one is worth its time."""
    return any(is_endless(side) for r in run.results[-1:] for side in (r.original, r.port))


def small_launches(launched: Sequence[Launched]) -> list[tuple[InstanceUnderTest, Trial]]:
    """The launches that were compared and did little work, which can be counted."""
    return [
        (again.subject, r.trial)
        for run, again in launched
        for r in run.results
        if r.comparisons and r.port.instructions <= SMALL
    ]


def repeat_launches(
    launched: Sequence[Launched], on_repeat: Callable[[int, int], None] = lambda done, all_: None
) -> None:
    """Run some launches of each instance under other schedules, and one on scratch that was used before."""
    wanted = [(run, again, *chosen) for run, again in launched for chosen in again.chosen()]
    for at, (run, again, result, pair) in enumerate(wanted):
        run.repeats.append(again.repeat(result.trial, pair))
        if len(run.repeats) == 1:
            result, pair = again.smallest()
            found = launch_again(again.subject, result.trial, again.backend, pair, again.schedules)
            run.repeats[0].findings += found
        on_repeat(at + 1, len(wanted))
