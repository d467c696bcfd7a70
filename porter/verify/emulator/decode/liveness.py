"""Which registers are live at the end of each segment, and which segments lie in loops (or in spin loops)."""

from __future__ import annotations

from collections.abc import Collection

from porter.verify.emulator.decode.program import (
    Atomic,
    Barrier,
    Branch,
    Copy,
    Exit,
    Goto,
    Hint,
    HostCall,
    Load,
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


def _place_use(place: MemoryOperand | None) -> int:
    return 1 << place.base.index if place is not None and isinstance(place.base, RegSrc) else 0


def _uses(*sources: Src | None) -> int:
    bits = 0
    for source in sources:
        if isinstance(source, RegSrc):
            bits |= 1 << source.index
    return bits


def step_reads(step: Step) -> int:
    """Bit set of the registers a step reads; a guarded step also reads what it writes."""
    bits = 0
    match step:
        case Pure(needless=True):
            return 0
        case Pure(srcs=srcs):
            bits = _uses(*srcs)
        case Load(place=place):
            bits = _place_use(place)
        case Store(place=place, srcs=srcs):
            bits = _place_use(place) | _uses(*srcs)
        case Atomic(place=place, srcs=srcs, compare=compare):
            bits = _place_use(place) | _uses(*srcs, compare)
        case Multimem(access=access):
            bits = step_reads(access)
        case Warp(srcs=srcs, mask=mask):
            bits = _uses(*srcs, mask)
        case Copy(target=target, origin=origin, room=room, size=size, mbarrier=mbarrier):
            bits = _place_use(target) | _place_use(origin) | _place_use(mbarrier) | _uses(room, size)
        case Mbarrier(place=place, srcs=srcs):
            bits = _place_use(place) | _uses(*srcs)
        case MatrixMove(place=place, srcs=srcs):
            bits = _place_use(place) | _uses(*srcs)
        case MatrixMultiply(a=a, b=b, c=c):
            bits = _uses(*a, *b, *c)
        case HostCall(args=args, result=result):
            for place in args:
                bits |= _place_use(place)
            bits |= _place_use(result)
    if step.guard is not None:
        bits |= 1 << step.guard.index | step_writes(step)
    return bits


def step_writes(step: Step) -> int:
    bits = 0
    if isinstance(step, Pure) and step.needless:
        return 0
    for dst in getattr(step, "dsts", ()):
        if dst is not None:
            bits |= 1 << dst.index
    return bits


def mark_liveness(segments: list[Segment]) -> None:
    use: list[int] = []
    for segment in segments:
        read = written = 0
        for step in segment.steps:
            read |= step_reads(step) & ~written
            written |= step_writes(step)
        match segment.end:
            case Branch(guard=guard):
                read |= (1 << guard.index) & ~written
            case Switch(index=index):
                read |= _uses(index) & ~written
            case Barrier(id=id_, count=count, value=value):
                read |= _uses(id_, count, value) & ~written
        segment.defines = written
        use.append(read)
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
        # what the terminator reads must survive the segment too
        match segment.end:
            case Branch(guard=guard):
                segment.live_out |= 1 << guard.index
            case Switch(index=index):
                segment.live_out |= _uses(index)
            case Barrier(id=id_, count=count, value=value):
                segment.live_out |= _uses(id_, count, value)


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
