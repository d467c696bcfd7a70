"""Bit-fields: reading as shifts of the storage that they share, writing as a change of the whole of it."""

from __future__ import annotations

from porter import ir
from porter.frontend.lower.convert import const, to_type
from porter.frontend.lower.types import Bits, bits_of
from porter.frontend.parse.clang_compat import Cursor


def _wide(b: Bits, signed: bool) -> ir.Scalar:
    """The type that shifts are computed in."""
    return ir.Scalar(f"{'i' if signed else 'u'}{64 if ir.sizeof(b.storage) == 8 else 32}")


def read_bits(base: ir.Expr, f: Cursor) -> ir.Expr:
    """The value of a bit-field of an object."""
    b = bits_of(f)
    signed = not b.type.is_unsigned
    wide = _wide(b, signed)
    total = 8 * ir.sizeof(wide)
    x = to_type(ir.Field(base, b.member, type=b.storage), wide)
    up, down = total - b.shift - b.width, total - b.width
    if up:
        x = ir.Binary("<<", x, const(up, ir.I32), type=wide)
    if down:
        x = ir.Binary(">>", x, const(down, ir.I32), type=wide)
    return to_type(x, b.type)


def in_storage(value: ir.Expr, f: Cursor) -> ir.Expr:
    """A value as the bits of a bit-field in its storage, the other bits zero."""
    b = bits_of(f)
    wide = _wide(b, False)
    mask = const((1 << b.width) - 1, wide)
    x: ir.Expr = ir.Binary("&", to_type(to_type(value, b.type), wide), mask, type=wide)
    if b.shift:
        x = ir.Binary("<<", x, const(b.shift, ir.I32), type=wide)
    return to_type(x, b.storage)


def combined(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """The bits of two values of one storage unit."""
    storage = a.type
    assert isinstance(storage, ir.Scalar)
    wide = ir.U64 if ir.sizeof(storage) == 8 else ir.U32
    return to_type(ir.Binary("|", to_type(a, wide), to_type(b, wide), type=wide), storage)


def with_bits(base: ir.Expr, f: Cursor, value: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """(place, new value) of the assignment that sets a bit-field of an object."""
    b = bits_of(f)
    wide = _wide(b, False)
    place = ir.Field(base, b.member, type=b.storage)
    keep = (1 << 8 * ir.sizeof(b.storage)) - 1 & ~(((1 << b.width) - 1) << b.shift)
    kept = to_type(ir.Binary("&", to_type(place, wide), const(keep, wide), type=wide), b.storage)
    return place, combined(kept, in_storage(value, f))
