"""The operands that steps and ends of segments read: to list them, and to put others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from porter.verify.emulator.decode.program import Barrier, MemoryOperand, RegSrc, Src, Step, Switch, Terminator

T = TypeVar("T")


def registers_read(of: Step | Terminator) -> Iterator[int]:
    """Numbers of the registers that operands and addresses name; guards are not among them."""
    for name in getattr(of, "reads", ()):
        value = getattr(of, name)
        for operand in value if isinstance(value, tuple) else (value,):
            if isinstance(operand, Step):
                yield from registers_read(operand)
                continue
            source = operand.base if isinstance(operand, MemoryOperand) else operand
            if isinstance(source, RegSrc):
                yield source.index


def replace_sources(step: Step, new: Callable[[Src], Src]) -> None:
    """Puts `new` of each source in its place, in the step itself."""
    for name in step.reads:
        setattr(step, name, _replaced(getattr(step, name), new))


def with_sources(end: Terminator, new: Callable[[Src], Src]) -> Terminator:
    """The end of a segment with `new` of each source."""
    if not isinstance(end, (Switch, Barrier)):
        return end
    return replace(end, **{name: _replaced(getattr(end, name), new) for name in end.reads})


def _replaced(value: T, new: Callable[[Src], Src]) -> T:
    match value:
        case None:
            return value
        case tuple():
            return tuple(_replaced(x, new) for x in value)  # type: ignore[return-value]
        case MemoryOperand():
            return replace(value, base=_replaced(value.base, new))
        case Step():
            replace_sources(value, new)
            return value
    return new(value)  # type: ignore[arg-type, return-value]
