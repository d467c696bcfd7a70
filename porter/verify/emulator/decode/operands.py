"""Turns parsed operands of one frame into sources, destinations and places of a Program."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from porter.verify.emulator.decode.body import VECTOR_SPECIALS
from porter.verify.emulator.decode.ir import (
    Address,
    Function,
    Imm,
    Instr,
    Module,
    Not,
    Operand,
    Reg,
    Sink,
    Special,
    Sym,
)
from porter.verify.emulator.decode.program import Const, Dst, MemoryOperand, RegSrc, SpecialSrc, Src
from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.errors import PtxSyntaxError, UnsupportedPtx
from porter.verify.emulator.memory.layout import FUNCTION_BASE

SPECIAL_BITS = {"clock64": 64, "globaltimer": 64, "gridid": 64, "current_graph_exec": 64}


@dataclass(slots=True)
class Frame:
    """One inlined instance of a function: where its registers start and what its names mean."""

    tag: str
    base: int
    symbols: dict[str, tuple[str, int]]  # name -> (space or "shared:key", offset)
    function: Function
    carry: int = 0

    def symbol(self, name: str, instr: Instr) -> tuple[str, int]:
        if name not in self.symbols:
            raise PtxSyntaxError(f"unknown parameter {name}", instr.line)
        return self.symbols[name]


@dataclass(slots=True)
class Site:
    module: Module
    shared: dict[str, int]
    globals: dict[str, int]
    used: set[str] = field(default_factory=set)  # module variables that were named

    def resolve(self, frame: Frame, instr: Instr, symbol: Sym) -> tuple[str, int]:
        """Space and address (inside that space) of a symbol."""
        space, offset = frame.symbols.get(symbol.name, ("", 0))
        if space.startswith("shared:"):
            return "shared", self.shared[space[7:]] + symbol.offset
        if space:
            return space, offset + symbol.offset
        if symbol.name in self.shared:
            return "shared", self.shared[symbol.name] + symbol.offset
        if symbol.name in self.globals:
            self.used.add(symbol.name)
            return "global", self.globals[symbol.name] + symbol.offset
        if symbol.name in self.module.declarations:
            order = list(self.module.declarations).index(symbol.name)
            return "function", FUNCTION_BASE + 16 * order
        raise PtxSyntaxError(f"unknown name {symbol.name}", instr.line)

    def source(self, frame: Frame, instr: Instr, operand: Operand, bits: int, type_: PtxType | None = None) -> Src:
        """An operand read as `bits` bits (of `type_`, when it matters for literals)."""
        if isinstance(operand, Reg):
            return RegSrc(frame.base + operand.index, operand.type)
        if isinstance(operand, Not):
            return RegSrc(frame.base + operand.operand.index, operand.operand.type, True)
        if isinstance(operand, Imm):
            return Const(literal_bits(operand, bits, type_), bits)
        if isinstance(operand, Special):
            name = operand.name[1:]
            if name in VECTOR_SPECIALS:
                raise UnsupportedPtx(instr.opcode, instr.line, "vector special registers")
            return SpecialSrc(name, SPECIAL_BITS.get(name, 32))
        if isinstance(operand, Sym):
            return Const(self.resolve(frame, instr, operand)[1] & ((1 << bits) - 1), bits)
        raise UnsupportedPtx(instr.opcode, instr.line, f"operand {type(operand).__name__.lower()} not expected here")

    def destination(self, frame: Frame, instr: Instr, operand: Operand) -> Dst | None:
        if isinstance(operand, Sink):
            return None
        if isinstance(operand, Reg):
            return Dst(frame.base + operand.index, operand.type)
        raise UnsupportedPtx(instr.opcode, instr.line, "the destination must be a register")

    def place(self, frame: Frame, instr: Instr, operand: Operand, space: str) -> MemoryOperand:
        if not isinstance(operand, Address):
            raise PtxSyntaxError(f"{instr.opcode} needs an address", instr.line)
        base = operand.base
        if isinstance(base, Sym):
            found, address = self.resolve(frame, instr, base)
            if found == "function":
                raise PtxSyntaxError("a function's address cannot be accessed", instr.line)
            if space in ("", "param") or found == "local":
                space = found
            elif space == "const":
                space = "global"
            if found != space:
                raise PtxSyntaxError(f"{base.name} is in .{found}, not in .{space}", instr.line)
            return MemoryOperand(space, None, address + operand.offset)
        if space == "const":
            space = "global"
        if isinstance(base, Imm):
            return MemoryOperand(space, None, base.value + operand.offset)
        return MemoryOperand(space, RegSrc(frame.base + base.index, base.type), operand.offset)


def literal_bits(literal: Imm, bits: int, type_: PtxType | None) -> int:
    """The bits of a literal read as `type_`: float literals change width, integers are cut."""
    value = literal.value
    if bits == 1:  # a predicate: LLVM writes true as -1
        return int(value != 0)
    if literal.float_bits and literal.float_bits != bits and type_ is not None and type_.kind in "fh":
        number = (
            struct.unpack("<f", struct.pack("<I", value))[0]
            if literal.float_bits == 32
            else struct.unpack("<d", struct.pack("<Q", value))[0]
        )
        if bits == 64:
            return int(struct.unpack("<Q", struct.pack("<d", number))[0])
        if bits == 32:
            return int(struct.unpack("<I", struct.pack("<f", number))[0])
    if not literal.float_bits and type_ is not None and type_.name in ("f32", "f64"):
        code, size = ("<f", "<I") if bits == 32 else ("<d", "<Q")
        return int(struct.unpack(size, struct.pack(code, float(value)))[0])
    return value & ((1 << bits) - 1)
