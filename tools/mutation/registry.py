"""The table of classes of mistakes: for each a generator of edits, and the checks that are meant to find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.mutation.port_text import Edit, PortText

Generator = Callable[[PortText], Iterator[Edit]]


@dataclass(frozen=True)
class MutantClass:
    """`checks`: the verdicts of which at least one must be FAIL. `most` of a port in the sweep."""

    name: str
    what: str
    checks: tuple[str, ...]
    edits: Generator
    most: int = 1


CLASSES: dict[str, MutantClass] = {}


def mutation(name: str, what: str, *checks: str, most: int = 1) -> Callable[[Generator], Generator]:
    def register(edits: Generator) -> Generator:
        CLASSES[name] = MutantClass(name, what, checks, edits, most)
        return edits

    return register


NUMERICS, SANITIZER = "numerics", "sanitizer"
