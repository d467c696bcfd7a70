"""Which registers are live at the end of each segment, and which segments lie in loops (or in spin loops)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from porter.verify.emulator.decode.program import (
    Atomic,
    Barrier,
    Branch,
    Exit,
    Goto,
    Hint,
    Load,
    Mbarrier,
    Multimem,
    Pure,
    Segment,
    Step,
    Terminator,
)
from porter.verify.emulator.decode.sources import registers_read


def _bits(indices: Iterable[int]) -> int:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def step_reads(step: Step) -> int:
    """Bit set of the registers a step reads; a guarded step also reads what it writes."""
    if isinstance(step, Pure) and step.needless:
        return 0
    bits = _bits(registers_read(step))
    if step.guard is not None:
        bits |= 1 << step.guard.index | step_writes(step)
    return bits


def _end_reads(end: Terminator) -> int:
    return 1 << end.guard.index if isinstance(end, Branch) else _bits(registers_read(end))


def step_writes(step: Step) -> int:
    if isinstance(step, Pure) and step.needless:
        return 0
    return _bits(dst.index for dst in getattr(step, "dsts", ()) if dst is not None)


def mark_liveness(segments: list[Segment]) -> None:
    use: list[int] = []
    for segment in segments:
        read = written = 0
        for step in segment.steps:
            read |= step_reads(step) & ~written
            written |= step_writes(step)
        segment.defines = written
        use.append(read | (_end_reads(segment.end) & ~written))
    live_in = list(use)
    changed = True
    while changed:
        changed = False
        for segment in reversed(segments):
            out = 0
            for successor in segment.successors:
                out |= live_in[successor]
            if isinstance(segment.end, Barrier) and segment.end.dst is not None:
                out &= ~(1 << segment.end.dst.index)
            segment.live_out = out
            into = use[segment.index] | (out & ~segment.defines)
            if into != live_in[segment.index]:
                live_in[segment.index] = into
                changed = True
    for segment in segments:
        segment.live_in = live_in[segment.index]
        segment.live_out |= _end_reads(segment.end)  # which must survive the segment too


MOST_LOOPS = 16  # nested; what lies deeper counts as one loop


def mark_loops(segments: list[Segment]) -> None:
    """Gives each segment its innermost loop; a loop that reads volatile memory or atomics may spin.

    Loops are strongly connected components; without their first segment, their header, the loops inside are found.
    """
    work = [(1, c) for c in _components(segments, range(len(segments)))]
    while work:
        depth, component = work.pop()
        _mark_component(segments, component)
        inside = set(component) - {min(component)}
        if inside and depth < MOST_LOOPS:
            work += [(depth + 1, c) for c in _components(segments, inside)]


def _components(segments: list[Segment], among: Collection[int]) -> list[list[int]]:
    """Strongly connected components of some segments that are loops (Tarjan, iterative)."""
    found: list[list[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in among:
        if root in index:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            node, edge = work.pop()
            if edge == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            successors = segments[node].successors
            descended = False
            for position in range(edge, len(successors)):
                target = successors[position]
                if target not in among:
                    continue
                if target not in index:
                    work.append((node, position + 1))
                    work.append((target, 0))
                    descended = True
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            if descended:
                continue
            if low[node] == index[node]:
                component = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == node:
                        break
                if len(component) > 1 or node in segments[node].successors:
                    found.append(component)
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return found


def mark_leaving(segments: list[Segment]) -> None:
    """Marks the segments from which a thread does nothing but exit."""
    changed = True
    while changed:
        changed = False
        for segment in segments:
            if segment.leaves or any(not isinstance(s, Hint) for s in segment.steps):
                continue
            end = segment.end
            if (isinstance(end, Exit) and not end.trap) or (isinstance(end, Goto) and segments[end.target].leaves):
                segment.leaves = changed = True


def _mark_component(segments: list[Segment], component: list[int]) -> None:
    spins = any(
        (isinstance(step, Load) and step.order != "weak") or isinstance(step, (Atomic, Mbarrier, Multimem))
        for member in component
        for step in segments[member].steps
    )
    for member in component:
        segments[member].loop = min(component)
        segments[member].spins = spins
