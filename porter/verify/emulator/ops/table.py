"""PureOp and the registry: opcode base name -> builder that reads the modifiers and returns the typed operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.types import TYPES, PtxType
from porter.verify.emulator.errors import UnsupportedPtx


@dataclass(frozen=True, slots=True)
class PureOp:
    """`fn(algebra, *sources)` gives one value, or a tuple when there are several results.

    `carry_in`: the carry flag is passed as a last source; `carry_out`: the last result is the new carry flag.
    """

    dsts: tuple[PtxType, ...]
    srcs: tuple[PtxType, ...]
    fn: Callable[..., Any]
    carry_in: bool = False
    carry_out: bool = False


Builder = Callable[[Instr], PureOp]
_TABLE: dict[str, Builder] = {}


def pure(*bases: str) -> Callable[[Builder], Builder]:
    """Registers a builder for opcode base names."""

    def register(builder: Builder) -> Builder:
        for base in bases:
            if base in _TABLE:
                raise ValueError(f"{base} is registered twice")
            _TABLE[base] = builder
        return builder

    return register


def supported_bases() -> frozenset[str]:
    return frozenset(_TABLE)


def resolve(instr: Instr) -> PureOp | None:
    """The typed operation, or None if the base is no pure instruction. Raises UnsupportedPtx for unknown modifiers."""
    builder = _TABLE.get(instr.base)
    return builder(instr) if builder else None


class Mods:
    """Reads an instruction's modifiers, and insists that each one is read."""

    def __init__(self, instr: Instr):
        self.instr = instr
        self.left = list(instr.mods)

    def flag(self, name: str) -> bool:
        if name in self.left:
            self.left.remove(name)
            return True
        return False

    def one_of(self, *names: str, default: str = "") -> str:
        for name in names:
            if name in self.left:
                self.left.remove(name)
                return name
        return default

    def type(self) -> PtxType:
        """The next type in order."""
        for mod in self.left:
            if mod in TYPES:
                self.left.remove(mod)
                return TYPES[mod]
        raise self.unsupported("it has no type")

    def done(self) -> None:
        if self.left:
            raise self.unsupported(f"unknown modifier .{self.left[0]}")

    def unsupported(self, reason: str = "") -> UnsupportedPtx:
        return UnsupportedPtx(self.instr.opcode, self.instr.line, reason)
