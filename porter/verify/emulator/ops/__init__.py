"""The table of typed operations: what each pure PTX instruction computes, written once over the algebra."""

from porter.verify.emulator.ops import bits, compare, convert, floating, half, integer, move, packed  # noqa: F401  (fill the table)
from porter.verify.emulator.ops.table import PureOp, resolve, supported_bases

__all__ = ["PureOp", "resolve", "supported_bases"]
