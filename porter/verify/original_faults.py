"""Launches in which the original itself is at fault: they prove nothing, so nothing is held against the port there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from porter import codes
from porter.verify.backends.interface import Violation
from porter.verify.execute import TrialResult
from porter.verify.numerics.comparison import Finding


def at_fault(result: TrialResult, known: Sequence[str]) -> tuple[Violation, ...]:
    """What the original does wrong in a launch, beyond what the case knows of it."""
    return tuple(v for v in result.original.violations if v.kind not in known)


def faulty_kinds(results: Iterable[TrialResult], known: Sequence[str]) -> frozenset[str]:
    """What the original does wrong in any of these launches of one instance."""
    return frozenset(v.kind for r in results for v in at_fault(r, known))


def own_violations(result: TrialResult, kinds: frozenset[str], known: Sequence[str]) -> tuple[Violation, ...]:
    """What the port does wrong in a launch in which the original does nothing wrong; none of the original's `kinds`.

    What the original does wrong in one launch, the port may do in another: whether it shows depends on sizes.
    """
    if at_fault(result, known):
        return ()
    shared = {v.kind for v in result.original.violations}  # which the case knows
    return tuple(v for v in result.port.violations if v.kind not in kinds | shared)


def excuse_port(results: Iterable[TrialResult], known: Sequence[str]) -> None:
    """Takes the port's findings out of the launches of one instance in which its original is at fault: one finding
    about the original stands for them."""
    for result in results:
        faults = at_fault(result, known)
        if not faults:
            continue
        blamed = [f for f in [*result.findings, *result.contraction] if f.is_port]
        blamed += [f for c in result.comparisons.values() for f in c.findings if f.is_port]
        differing = [n for n, c in result.comparisons.items() if c.different or c.failed]
        if not blamed and not differing and not (result.error and result.error_in_port):
            continue
        result.findings = [f for f in result.findings if not f.is_port]
        result.contraction = [f for f in result.contraction if not f.is_port]
        result.comparisons = {n: c for n, c in result.comparisons.items() if n not in differing}
        result.error, result.error_in_port = "", True
        what = ", ".join(dict.fromkeys(v.kind for v in faults))
        text = f"what the port computed is not judged, because the original itself is at fault there ({what})"
        result.findings.append(Finding(codes.ORIGINAL_VIOLATION, next(iter(differing), ""), text, is_port=False))
