"""cp.async of compiled code: a load and a store at once, zeroes behind the bytes that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.verify.emulator.decode.program import Const, Copy
from porter.verify.emulator.decode.types import U32
from porter.verify.emulator.llvm.accesses import Access, interleave, split
from porter.verify.emulator.llvm.text import Refused

if TYPE_CHECKING:
    from porter.verify.emulator.llvm.chunk import Chunk

WORD = 4


def emit_copy(chunk: Chunk, step: Copy, guard: str | None) -> None:
    """Raises Refused for bulk copies and those that an mbarrier counts."""
    if step.bulk or step.mbarrier is not None or not isinstance(step.room, Const) or step.room.value not in (4, 8, 16):
        raise Refused(step.source.opcode)
    assert step.size is not None
    w, b, room = chunk.w, chunk.b, step.room.value
    per = room // WORD
    lanes = chunk.lanes_of(guard)
    whole = isinstance(step.size, Const) and step.size.value >= room
    readers = lanes
    size = chunk.get(step.size, U32)
    if not whole:
        some = b.ne(size, b.const(32, 0))
        here = w.op(f"bitcast {w.vec('i1')} {some.name} to i{w.lanes}")
        readers = w.op(f"and i{w.lanes} {lanes}, {here}")
    parts = split(chunk, Access(chunk, step.origin, 0, WORD, per, room, readers, 0).load(), per, "i32")
    if not whole:
        for k, part in enumerate(parts):
            start, end = b.const(32, WORD * k), b.const(32, WORD * (k + 1))
            bits = b.shl(b.sub(size, start), b.const(32, 3))
            some_of = b.sub(b.shl(b.const(32, 1), b.and_(bits, b.const(32, 31))), b.const(32, 1))
            tail = b.select(b.ult(start, size), some_of, b.const(32, 0))
            mask = b.select(b.ule(end, size), b.const(32, 0xFFFFFFFF), tail)
            parts[k] = b.and_(part, mask)
    items = interleave(chunk, [p.name for p in parts], "i32")
    Access(chunk, step.target, 0, WORD, per, room, lanes, 0).store(items)
