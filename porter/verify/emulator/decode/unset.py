"""What a register holds before anything is written to it: on a GPU whatever was there, here a value that shows.

Compilers leave a register unset where the program never says what it holds (a local without a value, of which one
branch stores nothing). With zeros in it such a kernel may look right. What is only read ahead, and not used, has no
effect with any value.
"""

from __future__ import annotations

from collections.abc import Sequence

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Const, Dst, Pure, Step
from porter.verify.emulator.decode.types import PRED, TYPES, PtxType
from porter.verify.emulator.ops import PureOp

# as a float of 32 or 16 bits large, as a code of 8 bits 20, as a whole number neither small nor negative
_BYTE = 0x5A


def unset(live: int, registers: Sequence[PtxType]) -> list[Step]:
    """Moves of odd values into the registers of the bit set `live`: those read somewhere before they are written."""
    found: list[Step] = []
    for index, type_ in enumerate(registers):
        if live >> index & 1 and type_.bits <= 64:
            bits = type_.bits
            value = 1 if bits == 1 else int.from_bytes(bytes([_BYTE]) * type_.bytes)
            raw = PRED if bits == 1 else TYPES[f"b{bits}"]
            op = PureOp((raw,), (raw,), lambda b, x: x)
            move = Instr(f"mov.{raw.name}", (), 0)
            found.append(Pure(move, op=op, dsts=(Dst(index, type_),), srcs=(Const(value, bits),)))
    return found
