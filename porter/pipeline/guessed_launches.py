"""Launches for a kernel whose launch is not in the file: blocks of the usual sizes, a grid of a few blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from porter.case.instances import instance_values
from porter.frontend.case.derived import DerivedCase, DerivedSize
from porter.model import Instance, KernelInfo, PorterError

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

BLOCKS = ((256,), (128,), (1024,), (32,), (16, 16), (32, 4), (32, 8))
GRID = "grid_blocks"
_COMMENT = "a guess: no launch of this kernel was found"


def guessed_launches(found: DerivedCase, unit: ParsedUnit, info: KernelInfo) -> list[DerivedCase]:
    """The case with each launch, the likeliest first: what the kernel's own text says of its threads, then the usual
    blocks."""
    threads = _threads(unit, info)
    first = ((threads,),) if threads else ()
    sizes = (DerivedSize(GRID, (1, 3)), *found.sizes)
    return [
        replace(
            found,
            sizes=sizes,
            launch=replace(found.launch, grid=(GRID,), block=tuple(map(str, block)), guess=_COMMENT),
        )
        for block in dict.fromkeys((*first, *BLOCKS))
    ]


def _threads(unit: ParsedUnit, info: KernelInfo) -> int:
    """The threads of a block that a block-wide function of cub, a constant or a template value names; else 0."""
    from porter.frontend.instances.choice import default_instances, instances_from_launches
    from porter.frontend.instances.lowered import lowered
    from porter.verify.launches.made_up import threads_of_block

    found = instances_from_launches(unit, info) or default_instances(info, unit) if info.is_template else [Instance()]
    instance = next(iter(found), Instance())
    try:
        (kernel,) = lowered(unit, info, (instance,), {})
    except PorterError:
        return 0
    return threads_of_block(kernel, unit.launches, unit.source.text, instance_values(info, instance))
