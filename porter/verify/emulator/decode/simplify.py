"""Constants into their uses: a register that is set once, by a mov of a literal, is that literal everywhere.

Predicates stay registers: guards and branches name them.
"""

from __future__ import annotations

from porter.verify.emulator.decode.program import Barrier, Const, Pure, RegSrc, Segment, Src
from porter.verify.emulator.decode.sources import replace_sources, with_sources


def propagate_constants(segments: list[Segment]) -> None:
    """Replaces reads; the movs stay in the program (they are counted) but are marked as needless."""
    definitions: dict[int, int] = {}
    constants: dict[int, tuple[Pure, Const]] = {}
    for segment in segments:
        for step in segment.steps:
            for dst in getattr(step, "dsts", ()):
                if dst is not None:
                    definitions[dst.index] = definitions.get(dst.index, 0) + 1
            if isinstance(step, Pure) and step.source.base == "mov" and step.guard is None and len(step.dsts) == 1:
                source, dst = step.srcs[0], step.dsts[0]
                if (
                    isinstance(source, Const)
                    and source.bits > 1
                    and dst is not None
                    and dst.type.bits == source.bits
                    and len(step.srcs) == 1
                ):
                    constants[dst.index] = (step, source)
        if isinstance(segment.end, Barrier) and segment.end.dst is not None:
            definitions[segment.end.dst.index] = definitions.get(segment.end.dst.index, 0) + 1
    known = {index: const for index, (_, const) in constants.items() if definitions[index] == 1}
    if not known:
        return
    for index in known:
        constants[index][0].needless = True

    def swap(source: Src) -> Src:
        return known.get(source.index, source) if isinstance(source, RegSrc) and not source.negated else source

    for segment in segments:
        for step in segment.steps:
            replace_sources(step, swap)
        segment.end = with_sources(segment.end, swap)
