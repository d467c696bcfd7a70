"""Calls that need more than a row: printf, assert, address spaces, cub and cooperative groups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from porter import codes, ir
from porter.emit import spelling
from porter.emit.generic import ConstVariants

if TYPE_CHECKING:
    from porter.emit.expressions.expr import ExprWriter
    from porter.emit.text import Text


def special(w: ExprWriter, e: ir.Intrinsic) -> Text | None:
    """Text for the calls handled here, None for all others."""
    if e.name.startswith("lib."):
        args = [w.expr(a).text if w.is_pointer(a.type) else w.value(a).text for a in e.args]
        return _text(f"{e.name}({', '.join([*args, *(w._targ(t) for t in e.targs)])})")
    handler = _HANDLERS.get(e.name)
    return handler(w, e) if handler else None


def _text(s: str) -> Text:
    from porter.emit.text import Text

    return Text(s)


def _printf(w: ExprWriter, e: ir.Intrinsic) -> Text:
    fmt = e.args[0]
    if not isinstance(fmt, ir.Const) or not isinstance(fmt.value, str):
        return w.hole(codes.PRINTF_FORMAT, "printf", "the format is not a literal", e)
    text, args = _strings_written_in(fmt.value, list(e.args[1:]))
    return _text(f"cute.printf({', '.join([repr(text), *(w.value(a).text for a in args)])})")


_CONVERSION = re.compile(r"%(?:%|[-+ #0]*(\*|\d+)?(?:\.(\*|\d+)?)?(?:hh|h|ll|l|j|z|t|L)?([a-zA-Z]))")


def _strings_written_in(fmt: str, args: list[ir.Expr]) -> tuple[str, list[ir.Expr]]:
    """A printf format with its literal strings (`%s` of `__FILE__`) in place, and the arguments that are left."""
    left: list[ir.Expr] = []

    def conversion(m: re.Match[str]) -> str:
        taken = [args.pop(0) for star in m.group(1, 2) if star == "*" and args]
        if m.group(3) and args:
            taken.append(args.pop(0))
        last = taken[-1] if taken else None
        if m.group(3) == "s" and len(taken) == 1 and isinstance(last, ir.Const) and isinstance(last.value, str):
            return last.value.replace("%", "%%")
        left.extend(taken)
        return m.group()

    return _CONVERSION.sub(conversion, fmt), [*left, *args]


def _assert(w: ExprWriter, e: ir.Intrinsic) -> Text:
    return _text(f'cute.testing.assert_({w.boolean(e.args[0]).text}, "assertion failed")') if e.args else _text("None")


def _to_shared(w: ExprWriter, e: ir.Intrinsic) -> Text:
    text = f"lib.shared_address({w.expr(e.args[0]).text})"
    kinds = w.kinds(e.type)
    return _text(text if kinds == {"i32"} else f"{w.dtype(e.type)}(Uint32({text}))" if kinds else text)


def _to_global(w: ExprWriter, e: ir.Intrinsic) -> Text:
    """A number in the source: an address of global memory is its generic address."""
    return _text(f"{w.dtype(e.type)}(lib.address({w.expr(e.args[0]).text}))")


def _same_pointer(w: ExprWriter, e: ir.Intrinsic) -> Text:
    return w.expr(e.args[0])


def _fp8_type(w: ExprWriter, mode: ir.Expr) -> str | None:
    """The fp8 type that `__NV_E4M3` (0) or `__NV_E5M2` (1) names, by instance where it differs."""
    while isinstance(mode, ir.Cast):
        mode = mode.x
    values = mode.values if isinstance(mode, ConstVariants) else (getattr(mode, "value", None),) * w.s.params.count
    known = {0: ir.E4M3, 1: ir.E5M2, None: None}
    if any(v not in known for v in values) or all(v is None for v in values):
        return None
    return w.s.params.type_text(tuple(known[v] for v in values), spelling.dtype)


def _saturating_fp8(w: ExprWriter, e: ir.Intrinsic) -> Text:
    """`__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3)`: storage byte of a saturating conversion."""
    saturate = e.args[1] if len(e.args) > 2 else None
    while isinstance(saturate, ir.Cast):
        saturate = saturate.x
    t = _fp8_type(w, e.args[2]) if len(e.args) > 2 else None
    if t is None or not isinstance(saturate, ir.Const) or saturate.value != 1:
        return w.hole(codes.UNKNOWN_FP8_CONVERSION, e.name, "only saturating conversion to E4M3 or E5M2 is known", e)
    return _text(f"lib.bits({t}(Float32({w.value(e.args[0]).text})), Uint8)")


def _fp8_to_half(w: ExprWriter, e: ir.Intrinsic) -> Text:
    t = _fp8_type(w, e.args[1]) if len(e.args) > 1 else None
    if t is None:
        return w.hole(codes.UNKNOWN_FP8_CONVERSION, e.name, "the fp8 format is not a constant", e)
    return _text(f"lib.bits(Float16(Float32(lib.bits({w.value(e.args[0]).text}, {t}))), Uint16)")


def _bits(w: ExprWriter, e: ir.Intrinsic) -> Text:
    x = w.value(e.args[0]).text
    return _text(x if e.args[0].type == e.type else f"lib.bits({x}, {w.dtype(e.type)})")


_HANDLERS: dict[str, Any] = {
    "porter.bits": _bits,
    "printf": _printf,
    "assert": _assert,
    "__assert": _assert,
    "__cvta_generic_to_shared": _to_shared,
    "__cvta_generic_to_global": _to_global,
    "__builtin_assume_aligned": _same_pointer,
    "__nv_cvt_float_to_fp8": _saturating_fp8,
    "__porter_fp8_half_bits": _fp8_to_half,
}
