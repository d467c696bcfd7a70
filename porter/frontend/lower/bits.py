"""Bit-fields: the storage they share as an unsigned member, reading as shifts, writing as a change of the whole."""

from __future__ import annotations

from dataclasses import dataclass

from porter import codes, ir
from porter.frontend.lower.types import SCALAR_KINDS, UnsupportedType
from porter.frontend.parse.clang_compat import Cursor
from porter.frontend.parse.clang_compat import Type as ClangType


@dataclass(frozen=True)
class Bits:
    """Where a bit-field lies: `width` bits from `shift` (bits) of the unsigned storage at byte `offset`."""

    storage: ir.Scalar
    offset: int
    shift: int
    width: int
    type: ir.Scalar  # of the field as declared

    @property
    def member(self) -> str:
        """Name of the IR member that stands for the storage."""
        return f"bits_{self.offset}"


def bits_of(f: Cursor) -> Bits:
    """The place of a bit-field; UnsupportedType when it crosses the units of its type (packed classes)."""
    t = f.type.get_canonical()
    declared = SCALAR_KINDS.get(t.kind) or SCALAR_KINDS.get(t.get_declaration().enum_type.get_canonical().kind)
    if declared is None:
        raise UnsupportedType(f"bit-field {f.spelling!r}", codes.BIT_FIELD)
    size = ir.sizeof(declared)
    at, width = f.get_field_offsetof(), f.get_bitfield_width()
    offset = at // (8 * size) * size
    if at - 8 * offset + width > 8 * size:
        raise UnsupportedType(f"bit-field {f.spelling!r} that crosses its storage", codes.BIT_FIELD)
    return Bits(ir.Scalar(f"u{8 * size}"), offset, at - 8 * offset, width, declared)


def storage_members(t: ClangType) -> dict[str, Bits]:
    """Member name -> one of its bit-fields, in order, for the storage units that the fields of a class share."""
    out: dict[str, Bits] = {}
    for f in t.get_canonical().get_fields():
        if f.is_bitfield() and f.spelling:
            b = bits_of(f)
            known = out.setdefault(b.member, b)
            if known.storage != b.storage:
                raise UnsupportedType(f"bit-field {f.spelling!r} that shares storage of another width", codes.BIT_FIELD)
    return out


def _wide(b: Bits, signed: bool) -> ir.Scalar:
    """The type that shifts are computed in."""
    return ir.Scalar(f"{'i' if signed else 'u'}{64 if ir.sizeof(b.storage) == 8 else 32}")


def read_bits(base: ir.Expr, f: Cursor) -> ir.Expr:
    """The value of a bit-field of an object."""
    from porter.frontend.lower.convert import const, to_type

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
    from porter.frontend.lower.convert import const, to_type

    b = bits_of(f)
    wide = _wide(b, False)
    mask = const((1 << b.width) - 1, wide)
    x: ir.Expr = ir.Binary("&", to_type(to_type(value, b.type), wide), mask, type=wide)
    if b.shift:
        x = ir.Binary("<<", x, const(b.shift, ir.I32), type=wide)
    return to_type(x, b.storage)


def combined(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """The bits of two values of one storage unit."""
    from porter.frontend.lower.convert import to_type

    storage = a.type
    assert isinstance(storage, ir.Scalar)
    wide = ir.U64 if ir.sizeof(storage) == 8 else ir.U32
    return to_type(ir.Binary("|", to_type(a, wide), to_type(b, wide), type=wide), storage)


def with_bits(base: ir.Expr, f: Cursor, value: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """(place, new value) of the assignment that sets a bit-field of an object."""
    from porter.frontend.lower.convert import const, to_type

    b = bits_of(f)
    wide = _wide(b, False)
    place = ir.Field(base, b.member, type=b.storage)
    keep = (1 << 8 * ir.sizeof(b.storage)) - 1 & ~(((1 << b.width) - 1) << b.shift)
    kept = to_type(ir.Binary("&", to_type(place, wide), const(keep, wide), type=wide), b.storage)
    return place, combined(kept, in_storage(value, f))
