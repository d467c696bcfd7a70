"""What a failed check adds for a person: the smallest launch that still fails, and where the port first parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from porter import codes
from porter.case.reader import Case, LaunchShape
from porter.model import Diagnostic, LineMapEntry, PorterError, Severity, Verdict
from porter.model.facts import FirstDivergence, NumericsFacts, SanitizerFacts, SmallestLaunch
from porter.source import Span
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.checks.divergence import Divergence, Side, first_divergence, source_line
from porter.verify.emulator import PtxError
from porter.verify.execute import InstanceUnderTest, TrialResult, given_to
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.port_launch import port_launches
from porter.verify.launches.shrink import SECONDS, Fails, Shrinker
from porter.verify.launches.trials import LARGE, Trial
from porter.verify.original_faults import own_violations


@dataclass(frozen=True)
class Failure:
    """A launch that failed a check, and what is needed to repeat it at other sizes."""

    result: TrialResult
    shrinker: Shrinker
    label: str  # of the instance


def fails_numerics(result: TrialResult) -> bool:
    """Did the port of this launch write something else, or not run?"""
    found = [*result.findings, *(f for c in result.comparisons.values() for f in c.findings)]
    return any(f.is_port for f in found) or bool(result.error and result.error_in_port)


def fails_sanitizer(kind: str, known: Sequence[str]) -> Fails:
    """Does the port do what is forbidden, of this kind?"""
    return lambda r: any(v.kind == kind for v in own_violations(r, frozenset(), known))


def smallest(
    verdict: Verdict, failure: Failure, fails: Fails, seconds: float, seed: int
) -> tuple[Verdict, TrialResult]:
    """The verdict with the smallest launch that still fails in it, and that launch."""
    budget = min(SECONDS, seconds)
    best = failure.shrinker.shrink(failure.result, fails, budget) if budget > 0.2 else failure.result
    trial = best.trial
    what = "the smallest launch found that fails" if best is not failure.result else "nothing smaller was found to fail"
    message = f"{failure.label} {what}: {trial}".strip()
    note = Diagnostic(
        codes.SMALLEST_FAILING_LAUNCH, message, _case_span(failure.shrinker.case), Severity.NOTE, _replay(seed)
    )
    assert isinstance(verdict.facts, NumericsFacts | SanitizerFacts)
    facts = replace(verdict.facts, smallest=_launch_facts(failure.label, trial))
    detail = f"{verdict.detail}; smallest: {trial.point} {trial.scenario}"
    return replace(verdict, detail=detail, diagnostics=(*verdict.diagnostics, note), facts=facts), best


def diverging(
    verdict: Verdict, failure: Failure, result: TrialResult, line_map: tuple[LineMapEntry, ...], cuda_file: str
) -> Verdict:
    """The verdict with the first place where port and original part, where one is found in the emulator."""
    found = _divergence(failure.shrinker, result.trial, line_map, cuda_file)
    if found is None:
        return verdict
    port = failure.shrinker.port_path
    theirs, ours = source_line(cuda_file, found.cuda_line), source_line(port, found.port_line)
    place = f"line {found.cuda_line} of {cuda_file.rsplit('/', 1)[-1]}" if found.cuda_line else "the original"
    message = f"{failure.label} original and port first diverge at {place}: {found.message}"
    message += f" (block {found.block}, thread {found.thread})"
    notes = tuple(f"{who}: {text}" for who, text in (("original", theirs), ("port", ours)) if text)
    note = Diagnostic(
        codes.FIRST_DIVERGENCE, message.strip(), Span(str(port), found.port_line), Severity.NOTE, notes=notes
    )
    assert isinstance(verdict.facts, NumericsFacts)
    parted = FirstDivergence(
        found.kind, found.cuda_line, found.port_line, found.block, found.thread, found.message, str(result.trial)
    )
    return replace(verdict, diagnostics=(*verdict.diagnostics, note), facts=replace(verdict.facts, divergence=parted))


def _divergence(at: Shrinker, trial: Trial, line_map: tuple[LineMapEntry, ...], cuda_file: str) -> Divergence | None:
    case, subject = at.case, at.subject
    if trial.point.elements > LARGE or trial.far:
        return None
    try:
        (shape,) = port_launches(at.port_path, case, [(subject.values, trial.point)], at.sm_count)
        shapes = (case.launch_at(trial.point, subject.values, at.sm_count), shape)
        if any(s.is_empty for s in shapes) or shapes[0].block != shapes[1].block:
            return None
        original = _side(subject, trial, shapes[0], port=False, file=cuda_file)
        port = _side(subject, trial, shapes[1], port=True, file=str(at.port_path))
    except (PtxError, PorterError):
        return None
    padded = -(-shapes[0].block[0] * shapes[0].block[1] * shapes[0].block[2] // 32) * 32
    return first_divergence(original, port, line_map, padded)


def _side(subject: InstanceUnderTest, trial: Trial, shape: LaunchShape, port: bool, file: str) -> Side:
    buffers = make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed, trial.misaligned)
    build, given = subject.port if port else subject.original, given_to(subject, trial, buffers, port)
    taps, module = EmulatorBackend().tapped(build, shape, given.arguments, given.variables)
    return Side(taps, module, file)


def _launch_facts(label: str, trial: Trial) -> SmallestLaunch:
    point = trial.point
    null = tuple(sorted(point.null))
    return SmallestLaunch(label, dict(point.sizes), dict(point.scalars), null, trial.scenario, trial.seed)


def _replay(seed: int) -> str:
    return f"run again with --seed {seed} to get the same launches"


def _case_span(case: Case) -> Span:
    return Span(str(case.path), 1)
