"""Constants into their uses: a register that is set once, by a mov of a literal, is that literal everywhere.

Predicates stay registers: guards and branches name them.
"""

from __future__ import annotations

from dataclasses import replace

from porter.verify.emulator.decode.program import (
    Atomic,
    Barrier,
    Const,
    Copy,
    MatrixMove,
    MatrixMultiply,
    Mbarrier,
    MemoryOperand,
    Multimem,
    Pure,
    RegSrc,
    Segment,
    Src,
    Step,
    Store,
    Switch,
    Warp,
)


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

    def maybe(source: Src | None) -> Src | None:
        return None if source is None else swap(source)

    def place(p: MemoryOperand) -> MemoryOperand:
        return replace(p, base=maybe(p.base)) if p.base is not None else p

    for segment in segments:
        for step in segment.steps:
            _rewrite(step, swap, maybe, place)
        match segment.end:
            case Switch(index=selector, targets=targets):
                segment.end = Switch(swap(selector), targets)
            case Barrier():
                segment.end = replace(segment.end, id=maybe(segment.end.id), count=maybe(segment.end.count))


def _rewrite(step: Step, swap, maybe, place) -> None:  # type: ignore[no-untyped-def]
    if isinstance(step, (Pure, Store, Atomic, Warp, Mbarrier, MatrixMove)):
        step.srcs = tuple(swap(s) for s in step.srcs)
    where = getattr(step, "place", None)
    if where is not None:
        step.place = place(where)  # type: ignore[attr-defined]
    match step:
        case Multimem():
            _rewrite(step.access, swap, maybe, place)
        case Atomic():
            step.compare = maybe(step.compare)
        case Warp():
            step.mask = maybe(step.mask)
        case Copy():
            step.room, step.size = maybe(step.room), maybe(step.size)
            step.target, step.origin = place(step.target), place(step.origin)
            if step.mbarrier is not None:
                step.mbarrier = place(step.mbarrier)
        case MatrixMultiply():
            step.a, step.b, step.c = (tuple(swap(s) for s in part) for part in (step.a, step.b, step.c))
