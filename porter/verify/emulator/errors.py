"""Why PTX could not be loaded or launched. What a kernel does wrong while it runs is a Violation
(checks/violations.py)."""

from __future__ import annotations


class PtxError(ValueError):
    """Base of everything this package raises on purpose. `line` is the 1-based PTX line, 0 when there is none."""

    def __init__(self, message: str, line: int = 0):
        super().__init__(f"PTX line {line}: {message}" if line else message)
        self.line = line


class PtxSyntaxError(PtxError):
    """The text is not PTX as this package understands it."""


class UnsupportedPtx(PtxError):
    """A valid instruction or feature that is not modelled. `opcode` names it."""

    def __init__(self, opcode: str, line: int = 0, reason: str = ""):
        super().__init__(f"{opcode} is not supported" + (f": {reason}" if reason else ""), line)
        self.opcode = opcode


class LaunchError(PtxError):
    """The launch itself is wrong: grid, block, arguments."""
