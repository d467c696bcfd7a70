"""Launches for a kernel whose launch is not in the file: blocks of the usual sizes, a grid of a few blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from porter.case.instances import instance_values
from porter.model import Instance, KernelInfo, PorterError

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

BLOCKS = ((256,), (128,), (1024,), (32,), (16, 16), (32, 4), (32, 8))
GRID = "grid_blocks"
_COMMENT = "a guess: no launch of this kernel was found"


@dataclass(frozen=True)
class Way:
    """One guess, or (without a block) the launch that the draft has."""

    block: tuple[int, ...] = ()

    def applied(self, text: str) -> str:
        if not self.block:
            return text
        block = ", ".join(f'"{b}"' for b in self.block)
        text = re.sub(r"^block = .*$", f"block = [{block}]  # {_COMMENT}", text, count=1, flags=re.M)
        text = re.sub(r"^grid = .*$", f'grid = ["{GRID}"]  # {_COMMENT}', text, count=1, flags=re.M)
        text = re.sub(r"^TODO = \[1\].*\n", "", text, count=1, flags=re.M)
        return re.sub(r"^\[sizes\]\n", f"[sizes]\n{GRID} = [1, 3]\n", text, count=1, flags=re.M)


def guessed_ways(unit: ParsedUnit, info: KernelInfo) -> tuple[Way, ...]:
    """The likeliest first: what the kernel's own text says of its threads, then the usual blocks."""
    threads = _threads(unit, info)
    first = ((threads,),) if threads else ()
    return tuple(Way(block) for block in dict.fromkeys((*first, *BLOCKS)))


def _threads(unit: ParsedUnit, info: KernelInfo) -> int:
    """The threads of a block that a block-wide function of cub, a constant or a template value names; else 0."""
    from porter.frontend.instances.choice import default_instances, instances_from_launches
    from porter.frontend.instances.lowered import lowered
    from porter.verify.launches.made_up import launched_threads, threads_of_cub

    found = instances_from_launches(unit, info) or default_instances(info, unit) if info.is_template else [Instance()]
    instance = next(iter(found), Instance())
    try:
        (kernel,) = lowered(unit, info, (instance,), {})
    except PorterError:
        return 0
    blocks = [x.block for x in unit.launches if x.kernel.split("::")[-1] == info.name]
    return threads_of_cub(kernel) or launched_threads(blocks, unit.source.text, instance_values(info, instance))
