"""Conversions between types, and unsigned arithmetic that the port can do in Int32."""

from __future__ import annotations

from porter import ir
from porter.emit.expressions.places import PlaceWriter
from porter.emit.expressions.ranges import INT_MAX, upper
from porter.emit.generic import ConstVariants
from porter.emit.text import ADD, AND, COMPARE, OR, PRECEDENCE, Text, is_null_constant

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")


class CastWriter(PlaceWriter):
    """Writes conversions in one scope."""

    def _cast(self, e: ir.Cast) -> Text:
        to, src = e.type, e.x.type
        if self.is_pointer(to):
            return self._pointer_cast(e)
        if self.is_pointer(src):
            inner = f"lib.address({self.expr(e.x).text})"
            if self.kinds(to) == {"bool"}:
                return self.null_test(e.x, "!=")
            return Text(inner if self.kinds(to) == {"i64"} else f"{self.dtype(to)}({inner})")
        kinds, from_kinds = self.kinds(to), self.kinds(src)
        x = self.expr(e.x)
        if kinds == {"bool"}:
            if from_kinds == {"bool"}:
                return x
            if x.static:
                return Text(f"{x.at(OR)} != 0", COMPARE, static=True)
            if self.is_half(src) or "f32" in from_kinds:
                return Text(f"Float32({x.text}) != 0.0" if self.is_half(src) else f"{x.at(OR)} != 0.0", COMPARE)
            return Text(f"{x.at(OR)} != 0", COMPARE)
        if x.static:
            return self._static_cast(e, x, kinds, from_kinds)
        if kinds == {"i32"} and from_kinds <= {"u32"}:
            low = self.low32(e.x)
            if low is not None:
                return low if not low.static else Text(f"Int32({low.text})")
        if (
            kinds == {"u32"}
            and from_kinds <= {"i32"}
            and isinstance(e.x, ir.Cast)
            and self.kinds(e.x.x.type) <= {"u32"}
        ):
            return self.expr(e.x.x)
        if kinds == from_kinds and to == src:
            return x
        if self.is_float(src) and kinds & {"i8", "u8", "i16", "u16"}:
            return Text(f"{self.dtype(to)}(Int32({self._as_f32(e.x, x)}))")
        if self.is_float(src) and not self.is_float(to) and self.is_half(src):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        if kinds & {"f16", "bf16", "e4m3", "e5m2"} and not self.is_float(src):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        if (
            kinds & {"f16", "bf16", "e4m3", "e5m2"}
            and from_kinds & {"f16", "bf16", "e4m3", "e5m2"}
            and kinds != from_kinds
        ):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        if e.rounded and self.is_half(to):
            return Text(f"lib.rounded({x.text}, {self.dtype(to)})")
        return Text(f"{self.dtype(to)}({self._sign_extended(e.x, x, kinds, from_kinds)})")

    def _sign_extended(self, e: ir.Expr, x: Text, kinds: set[str], from_kinds: set[str]) -> str:
        """The operand of a conversion to `kinds`: CuTeDSL fills a signed number that becomes a wider unsigned one with
        zeros, C with its sign."""
        signed = [ir.SCALAR_BYTES[k] for k in from_kinds if k in SIGNED]
        widest = max((ir.SCALAR_BYTES[k] for k in kinds if k in UNSIGNED), default=0)
        if not signed or min(signed) >= widest or self.upper(e) is not None:
            return x.text
        return f"Int{8 * widest}({x.text})"

    def _as_f32(self, e: ir.Expr, x: Text) -> str:
        return x.text if self.kinds(e.type) == {"f32"} else f"Float32({x.text})"

    def _static_cast(self, e: ir.Cast, x: Text, kinds: set[str], from_kinds: set[str]) -> Text:
        ints = {"i32", "u32", "i64", "u64", "i16", "u16", "i8", "u8"}
        if kinds <= ints and from_kinds <= ints | {"bool"}:
            if isinstance(e.x, ir.Const) and int(e.x.value) < 0 and any(k.startswith("u") for k in kinds):
                return self.expr(ir.Const(int(e.x.value) % (1 << (8 * ir.sizeof(e.type))), type=e.type))
            if from_kinds == {"bool"}:
                return (
                    Text(f"int({x.text})", static=True)
                    if not isinstance(e.x, ir.Const)
                    else Text(str(int(e.x.value)), static=True)
                )
            return self.wrapped(e, x)
        if self.is_float(e.type) and kinds <= {"f32", "f64"} and isinstance(e.x, ir.Const | ConstVariants):
            if isinstance(e.x, ir.Const) and e.x.origin not in self.s.params.names:
                return self.expr(ir.Const(float(e.x.value), type=e.type))
            return Text(f"float({x.text})", static=True)
        return Text(f"{self.dtype(e.type)}({self.value(e.x).text})")

    def wrapped(self, e: ir.Expr, text: Text) -> Text:
        """Integer arithmetic at trace time, wrapped to the type of `e` where its exact result may not fit in it."""
        kinds = self.kinds(e.type)
        if kinds <= {"bool"} or self.is_float(e.type) or self.fits(e):
            return text
        if len(kinds) > 1:
            return Text(f"{self.dtype(e.type)}({text.text})")
        bits = 8 * ir.SCALAR_BYTES[next(iter(kinds))]
        if next(iter(kinds)).startswith("u"):
            return Text(f"{text.at(AND)} & {hex((1 << bits) - 1)}", AND, static=True)
        half = hex(1 << (bits - 1))
        return Text(f"({text.at(ADD)} + {half} & {hex((1 << bits) - 1)}) - {half}", ADD, static=True)

    def _pointer_cast(self, e: ir.Cast) -> Text:
        to = self.pointer_dtype(e.type)
        if not self.is_pointer(e.x.type):
            if is_null_constant(e.x):
                return Text(f"lib.pointer({to}, 0)")
            return Text(f"lib.pointer({to}, {self.value(e.x).text})")
        inner = e.x
        while isinstance(inner, ir.Cast) and self.is_pointer(inner.x.type):
            inner = inner.x
        if self.pointer_dtype(inner.type) == to:
            return self.expr(inner)
        return Text(f"lib.view({self.expr(inner).text}, {to})")

    def low32(self, e: ir.Expr) -> Text | None:
        """Int32 text with the same low 32 bits as the u32/i32 expression, or None; exact modulo 2^32."""
        return self.once(self._low32, e)

    def _low32(self, e: ir.Expr) -> Text | None:
        if isinstance(e, ir.Builtin):
            if e.name == "warpSize":
                return Text("32", static=True)
            return Text(self.builtin_i32(e))
        if isinstance(e, ir.Const) and isinstance(e.value, int) and not isinstance(e.value, bool):
            v = e.value & 0xFFFFFFFF
            v = v - (1 << 32) if v > INT_MAX else v
            return self.expr(ir.Const(v, e.origin, type=ir.I32))
        if isinstance(e, ConstVariants) and upper(e, {}) is not None:
            return self.expr(e)
        if isinstance(e, ir.Var) and e.name in self.s.static and self.upper(e) is not None:
            return self.expr(e)
        if isinstance(e, ir.Cast) and self.kinds(e.type) <= {"u32", "i32"} and self.kinds(e.x.type) <= {"u32", "i32"}:
            if self.kinds(e.x.type) <= {"i32"}:
                return self.expr(e.x)
            return self.low32(e.x)
        if self.kinds(e.type) <= {"i32"}:
            return self.expr(e)
        if isinstance(e, ir.Binary) and e.op in ("+", "-", "*", "&", "|", "^"):
            a, b = self.low32(e.a), self.low32(e.b)
            if a is None or b is None:
                return None
            prec = PRECEDENCE[e.op]
            return Text(f"{a.at(prec)} {e.op} {b.at(prec - 1)}", prec, static=a.static and b.static)
        if isinstance(e, ir.Binary) and e.op in ("/", "%", ">>"):
            if self.upper(e.a) is None or self.upper(e.b) is None:
                return None
            a, b = self.low32(e.a), self.low32(e.b)
            if a is None or b is None:
                return None
            op = "//" if e.op == "/" else e.op
            prec = PRECEDENCE[op]
            return Text(f"{a.at(prec)} {op} {b.at(prec - 1)}", prec, static=a.static and b.static)
        if isinstance(e, ir.Var) and e.name not in self.s.memory:
            return Text(f"Int32({self.expr(e).text})")
        return None
