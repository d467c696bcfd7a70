"""Counts of a launch: thread-instructions by kind and barriers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from porter.verify.emulator.decode.program import (
    Atomic,
    Barrier,
    Branch,
    Copy,
    Exit,
    Fence,
    Goto,
    Hint,
    Load,
    MatrixMove,
    MatrixMultiply,
    Program,
    Pure,
    Segment,
    Step,
    Store,
    Switch,
    Warp,
)

_FLOAT = {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "f32x2"}
_SPECIAL = {"ex2", "lg2", "rsqrt", "sin", "cos", "tanh"}


def kind_of(step: Step) -> str:
    """load.global, store.shared, atomic, warp, float, special, convert, integer, move, matrix, fence, hint, call."""
    match step:
        case Pure(source=source):
            if source.base == "cvt":
                return "convert"
            if source.base in ("mov", "cvta", "selp"):
                return "move"
            if source.base in _SPECIAL or (source.base in ("rcp", "sqrt", "div") and source.mods[-1] in _FLOAT):
                return "special"
            return "float" if source.mods and source.mods[-1] in _FLOAT else "integer"
        case Load(place=place):
            return f"load.{place.space or 'generic'}"
        case Store(place=place):
            return f"store.{place.space or 'generic'}"
        case Atomic():
            return "atomic"
        case Warp():
            return "warp"
        case Copy():
            return "copy"
        case MatrixMove() | MatrixMultiply():
            return "matrix"
        case Fence():
            return "fence"
        case Hint():
            return "hint"
    return "other"


def _end_kind(segment: Segment) -> str:
    match segment.end:
        case Branch() | Switch():
            return "branch"
        case Barrier():
            return "barrier"
        case Exit(source=source) if source is not None:
            return "exit"
        case Goto():
            return ""
    return ""


def summary(program: Program, executions: list[int], crossed: int) -> dict[str, Any]:
    """`thread_instructions` (a guarded one counts for every thread that reaches it), `by_kind`, `barriers`.

    `instructions` are those of the program as decoded, `instructions_reached` those that any thread reached.
    """
    kinds: Counter[str] = Counter()
    instructions = reached = 0
    for segment, threads in zip(program.segments, executions, strict=True):
        size = len(segment.steps) + bool(_end_kind(segment))
        instructions += size
        if not threads:
            continue
        reached += size
        for step in segment.steps:
            kinds[kind_of(step)] += threads
        end = _end_kind(segment)
        if end:
            kinds[end] += threads
    return {
        "thread_instructions": sum(kinds.values()),
        "by_kind": dict(sorted(kinds.items())),
        "barriers": crossed,
        "instructions": instructions,
        "instructions_reached": reached,
    }
