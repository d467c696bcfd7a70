"""What steps read: each class lists it once, for liveness and for constants alike."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

import pytest

from porter.verify.emulator.decode import program
from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.liveness import step_reads
from porter.verify.emulator.decode.program import Const, Copy, Guard, MemoryOperand, Multimem, RegSrc, Src, Store
from porter.verify.emulator.decode.sources import replace_sources
from porter.verify.emulator.decode.types import TYPES

SOURCES = ("Src", "RegSrc", "MemoryOperand", "Load", "Store", "Atomic")
INSTRUCTION = Instr("nop", (), 1)
CLASSES = [c for c in vars(program).values() if isinstance(c, type) and is_dataclass(c) and hasattr(c, "reads")]


def register(index: int) -> RegSrc:
    return RegSrc(index, TYPES["u32"])


@pytest.mark.parametrize("of", CLASSES, ids=lambda c: c.__name__)
def test_every_field_with_a_source_is_listed(of: type) -> None:
    with_sources = [f.name for f in fields(of) if {*re.findall(r"\w+", str(f.type))} & {*SOURCES}]
    assert sorted(of.reads) == sorted(with_sources)  # type: ignore[attr-defined]


def test_operands_in_places_tuples_and_steps_within_are_read_and_replaced() -> None:
    at = MemoryOperand("global", register(3), 8)
    store = Store(INSTRUCTION, place=at, type=TYPES["u32"], srcs=(register(1), Const(7, 32), register(2)))
    everywhere = Multimem(INSTRUCTION, access=store)
    assert step_reads(everywhere) == 0b1110

    def new(source: Src) -> Src:
        return Const(9, 32) if source == register(2) else source

    replace_sources(everywhere, new)
    assert store.srcs == (register(1), Const(7, 32), Const(9, 32)) and store.place == at
    assert step_reads(everywhere) == 0b1010


def test_an_address_that_is_constant_and_one_that_is_absent() -> None:
    place = MemoryOperand("shared", register(1), 0)
    copy = Copy(INSTRUCTION, target=place, origin=MemoryOperand("global", None, 64), room=register(2), size=None)
    copy.guard = Guard(5, False)
    assert step_reads(copy) == 0b100110
    replace_sources(copy, lambda source: Const(4, 64))
    assert (copy.target.base, copy.origin.base, copy.room, copy.size) == (Const(4, 64), None, Const(4, 64), None)
