"""The rewrites that a port may show, each with a kernel that has its idiom. `porter patterns` and docs/patterns.md show
these kernels as they are ported today; tests/patterns/test_catalogue.py ports every one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from porter.patterns.idioms import control_flow, libraries, places, tensors, values
from porter.patterns.idioms.pattern import Assumption, Pattern

__all__ = ["Assumption", "Pattern", "all_patterns", "assumptions_of"]

PATTERNS = (*control_flow.PATTERNS, *places.PATTERNS, *values.PATTERNS, *libraries.PATTERNS, *tensors.PATTERNS)


def all_patterns() -> tuple[Pattern, ...]:
    """Every pattern, in the order of the documentation."""
    return PATTERNS


def assumptions_of(names: Iterable[str]) -> tuple[Assumption, ...]:
    """What these patterns take for granted, in the order of the catalogue."""
    wanted = set(names)
    return tuple(replace(a, pattern=p.name) for p in PATTERNS if p.name in wanted for a in p.assumes)
