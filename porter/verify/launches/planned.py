"""All launches of one instance that a run verifies, before the port's own launch adds its own."""

from __future__ import annotations

from collections.abc import Mapping

from porter.case.expressions import Value
from porter.case.reader import Case, CaseInstance
from porter.model import KernelInfo
from porter.verify.launches.constants import constant_trials, own_constants
from porter.verify.launches.derived import derived_trials, tail_trials
from porter.verify.launches.far_rows import far_rows_trial
from porter.verify.launches.own_values import own_numbers
from porter.verify.launches.scalars import own_value_trials, scalar_trials
from porter.verify.launches.trials import Trial, choose_trials, far_trial


def planned_trials(
    case: Case,
    instance: CaseInstance,
    values: Mapping[str, Value],
    info: KernelInfo,
    constants: frozenset[int],
    seed: int,
    launches: int,
    thorough: bool,
    partly: bool,
) -> list[Trial]:
    """Points of the case, sizes and numbers that it does not list, rows far apart. Empty where no point is for it.

    `partly`: the backend can run some blocks of a grid.
    """
    trials = choose_trials(case, instance, values, seed, launches, thorough)
    trials += derived_trials(case, instance, values, constants, seed)
    trials += tail_trials(case, instance, values, seed)
    trials += scalar_trials(case, instance, values, seed)
    far = [far_trial(case, instance, values, info, seed)]
    if partly:
        far.append(far_rows_trial(case, instance, values, info, seed))
    return [*trials, *(f for f in far if f is not None)] if trials else []


def trials_of_texts(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], original: str, port: str, seed: int
) -> list[Trial]:
    """Launches at the numbers that one side's PTX compares with and the other's does not."""
    trials = constant_trials(case, instance, values, own_constants(original, port), seed)
    return trials + own_value_trials(case, instance, values, own_numbers(original, port), seed)
