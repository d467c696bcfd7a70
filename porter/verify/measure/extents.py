"""How much of each buffer a launch touches, and the shapes that explain it over launches of several sizes.

Launchers with raw pointers do not say how long their buffers are. The kernel does: it is run on the emulator with
buffers that are long enough, and what it touches at several sizes is explained by a product of sizes. The verifier then
holds the original to that shape, so that one too small shows as an access of the original out of bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONSTANTS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256)
BLOCKS = (4, 8, 16, 32, 64, 128, 256)  # a size is rounded up to whole groups of so many
MOST_FACTORS = 4


@dataclass(frozen=True)
class Extent:
    """What launches touched of one buffer: one past the last byte read, and written; 0: none. `read_first`: some byte
    was read before anything had written it."""

    read: int = 0
    written: int = 0
    read_first: bool = False

    @property
    def bytes(self) -> int:
        return max(self.read, self.written)

    @property
    def role(self) -> str:
        """in, out or inout; "" where nothing was touched."""
        if self.written:
            return "inout" if self.read_first else "out"
        return "in" if self.read else ""


# ---------------------------------------------------------------- shapes


@dataclass(frozen=True)
class Measured:
    """The elements of a buffer that one launch touched, and the numbers that it had: sizes and template values."""

    numbers: Mapping[str, int]
    elements: int


@dataclass(frozen=True)
class Fit:
    """A shape, as expressions of a case. `exact`: it is what every launch touched; else none touched more."""

    shape: tuple[str, ...]
    exact: bool


def fit(measured: Sequence[Measured], names: Sequence[str]) -> Fit | None:
    """The simplest shape over `names` (outer dimensions first) that explains what launches touched.

    None where no shape is at least as long as what every launch touched, or where none touched anything.
    """
    rows = [m for m in measured if m.elements]
    if not rows:
        return None
    bounds: list[tuple[float, int, tuple[str, ...]]] = []
    for cost, shape in _candidates(names, rows):
        lengths = [_length(shape, m.numbers) for m in rows]
        if all(a == m.elements for a, m in zip(lengths, rows, strict=True)):
            return Fit(_texts(shape), True)
        if all(a >= m.elements for a, m in zip(lengths, rows, strict=True)):
            waste = sum(a / m.elements for a, m in zip(lengths, rows, strict=True)) / len(rows)
            bounds.append((waste, cost, _texts(shape)))
    return Fit(min(bounds)[2], False) if bounds else None


@dataclass(frozen=True)
class _Factor:
    """`name`, `name + 1`, `ceil_div(name, by)` or, without a name, the constant `by`."""

    name: str = ""
    by: int = 1
    plus: int = 0

    def at(self, numbers: Mapping[str, int]) -> int:
        return -(-numbers[self.name] // self.by) + self.plus if self.name else self.by

    @property
    def text(self) -> str:
        if not self.name:
            return str(self.by)
        inner = f"ceil_div({self.name}, {self.by})" if self.by > 1 else self.name
        return f"{inner} + {self.plus}" if self.plus else inner


_Shape = tuple[_Factor, ...]


def _candidates(names: Sequence[str], rows: Sequence[Measured]) -> list[tuple[int, _Shape]]:
    """Shapes, the simplest first."""
    varied = [n for n in names if all(n in m.numbers for m in rows)]
    found: list[tuple[int, _Shape]] = []
    for count in range(min(MOST_FACTORS, len(varied)) + 1):
        for chosen in itertools.combinations(varied, count):
            plain = tuple(_Factor(n) for n in chosen)
            for c in CONSTANTS:
                extra = (_Factor(by=c),) if c > 1 or not plain else ()
                found.append((4 * count + (2 + c.bit_length() if c > 1 else 0), (*plain, *extra)))
            for i, n in enumerate(chosen):
                others = (plain[:i], plain[i + 1 :])
                found.append((4 * count + 3, (*others[0], _Factor(n, plus=1), *others[1])))
                found += [(4 * count + 5, (*others[0], _Factor(n, by=b), *others[1])) for b in BLOCKS]
    if len({m.elements for m in rows}) == 1:  # the same at every size
        found.append((40, (_Factor(by=rows[0].elements),)))
    return sorted(found, key=lambda c: c[0])


def _length(shape: _Shape, numbers: Mapping[str, int]) -> int:
    return math.prod(f.at(numbers) for f in shape)


def _texts(shape: _Shape) -> tuple[str, ...]:
    return tuple(f.text for f in shape)
