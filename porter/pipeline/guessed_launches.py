"""Launches for a kernel whose launch is not in the file: blocks of the usual sizes, a grid of a few blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from porter.case.instances import instance_values
from porter.frontend.case.derived import DerivedCase, DerivedSize

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

BLOCKS = ((256,), (128,), (1024,), (32,), (16, 16), (32, 4), (32, 8))
GRID = "grid_blocks"
_COMMENT = "a guess: no launch of this kernel was found"


def guessed_launches(found: DerivedCase, unit: ParsedUnit) -> list[DerivedCase]:
    """The case with each launch, the likeliest first: what the kernel's own text says of its threads, then the usual
    blocks."""
    threads = _threads(found, unit)
    first = ((threads,),) if threads else ()
    return [with_launch(found, block) for block in dict.fromkeys((*first, *BLOCKS))]


def with_launch(found: DerivedCase, block: tuple[int, ...]) -> DerivedCase:
    """The case with a grid of a few blocks of this shape."""
    launch = replace(found.launch, grid=(GRID,), block=tuple(map(str, block)), guess=_COMMENT)
    return replace(found, sizes=(DerivedSize(GRID, (1, 3)), *found.sizes), launch=launch)


def _threads(found: DerivedCase, unit: ParsedUnit) -> int:
    """The threads of a block that a block-wide function of cub, a constant or a template value names; else 0."""
    from porter.verify.launches.made_up import threads_of_block

    if found.lowered is None:
        return 0
    values = instance_values(found.info, found.instances[0].instance) if found.instances else {}
    return threads_of_block(found.lowered, unit.launches, unit.source.text, values)
