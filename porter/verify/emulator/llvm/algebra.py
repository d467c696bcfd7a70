"""The algebra over LLVM vectors: each primitive appends one or two IR instructions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from porter.verify.emulator.llvm.text import BITS, Refused, Value, Writer
from porter.verify.emulator.ops.algebra import Algebra

V = Value


class LlvmAlgebra(Algebra):
    def __init__(self, writer: Writer):
        self.w = writer

    # helpers
    def _binary(self, op: str, a: V, b: V) -> V:
        w = self.w
        return Value(w.op(f"{op} {w.vec(a.type)} {a.name}, {b.name}"), a.type)

    def _compare(self, op: str, a: V, b: V) -> V:
        w = self.w
        return Value(w.op(f"{op} {w.vec(a.type)} {a.name}, {b.name}"), "i1")

    def _convert(self, op: str, a: V, t: str) -> V:
        if a.type == t:
            return a
        w = self.w
        return Value(w.op(f"{op} {w.vec(a.type)} {a.name} to {w.vec(t)}"), t)

    def _call(self, name: str, t: str, *args: V, extra: str = "") -> V:
        w = self.w
        suffix = {"i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "float": "f32", "double": "f64"}[args[0].type]
        function = f"@llvm.{name}.v{w.lanes}{suffix}"
        kinds = ", ".join(w.vec(a.type) for a in args) + (", i1" if extra else "")
        w.declare(f"declare {w.vec(t)} {function}({kinds})")
        operands = ", ".join(f"{w.vec(a.type)} {a.name}" for a in args) + extra
        return Value(w.op(f"call {w.vec(t)} {function}({operands})"), t)

    # constants and casts
    def const(self, bits: int, value: int) -> V:
        if bits == 1:
            return Value(f"splat (i1 {'true' if value else 'false'})", "i1")
        return Value(f"splat (i{bits} {value & ((1 << bits) - 1)})", f"i{bits}")

    def const_f(self, bits: int, value: float) -> V:
        raw = struct.unpack("<Q", struct.pack("<d", value))[0]
        t = "float" if bits == 32 else "double"
        return Value(f"splat ({t} 0x{raw:016X})", t)

    def zext(self, x: V, bits: int) -> V:
        return self._resize("zext", x, bits)

    def sext(self, x: V, bits: int) -> V:
        return self._resize("sext", x, bits)

    def trunc(self, x: V, bits: int) -> V:
        return self._resize("zext", x, bits)

    def _resize(self, widen: str, x: V, bits: int) -> V:
        have = BITS[x.type]
        return x if have == bits else self._convert(widen if have < bits else "trunc", x, f"i{bits}")

    def from_bool(self, x: V, bits: int) -> V:
        return self._convert("zext", x, f"i{bits}")

    def bits_of(self, x: V) -> V:
        return self._convert("bitcast", x, f"i{BITS[x.type]}")

    def as_f32(self, x: V) -> V:
        return self._convert("bitcast", x, "float")

    def as_f64(self, x: V) -> V:
        return self._convert("bitcast", x, "double")

    def zero_like(self, a: V) -> V:
        return Value("zeroinitializer", a.type)

    # integers
    def add(self, a: V, b: V) -> V:
        return self._binary("add", a, b)

    def sub(self, a: V, b: V) -> V:
        return self._binary("sub", a, b)

    def mul(self, a: V, b: V) -> V:
        return self._binary("mul", a, b)

    def and_(self, a: V, b: V) -> V:
        return self._binary("and", a, b)

    def or_(self, a: V, b: V) -> V:
        return self._binary("or", a, b)

    def xor(self, a: V, b: V) -> V:
        return self._binary("xor", a, b)

    def not_(self, a: V) -> V:
        return self._binary("xor", a, Value(f"splat ({a.type} {'true' if a.type == 'i1' else '-1'})", a.type))

    def shl(self, a: V, n: V) -> V:
        return self._binary("shl", a, n)

    def lshr(self, a: V, n: V) -> V:
        return self._binary("lshr", a, n)

    def ashr(self, a: V, n: V) -> V:
        return self._binary("ashr", a, n)

    def udiv(self, a: V, b: V) -> V:
        return self._binary("udiv", a, b)

    def urem(self, a: V, b: V) -> V:
        return self._binary("urem", a, b)

    def sdiv(self, a: V, b: V) -> V:
        return self._binary("sdiv", a, b)

    def srem(self, a: V, b: V) -> V:
        return self._binary("srem", a, b)

    def eq(self, a: V, b: V) -> V:
        return self._compare("icmp eq", a, b)

    def ne(self, a: V, b: V) -> V:
        return self._compare("icmp ne", a, b)

    def ult(self, a: V, b: V) -> V:
        return self._compare("icmp ult", a, b)

    def ule(self, a: V, b: V) -> V:
        return self._compare("icmp ule", a, b)

    def slt(self, a: V, b: V) -> V:
        return self._compare("icmp slt", a, b)

    def sle(self, a: V, b: V) -> V:
        return self._compare("icmp sle", a, b)

    def select(self, c: V, a: V, b: V) -> V:
        w = self.w
        if a.type != b.type:
            a, b = (self.bits_of(x) if BITS[x.type] > 1 else x for x in (a, b))
        return Value(w.op(f"select {w.vec('i1')} {c.name}, {w.vec(a.type)} {a.name}, {w.vec(b.type)} {b.name}"), a.type)

    def popcount(self, a: V) -> V:
        return self._call("ctpop", a.type, a)

    def clz(self, a: V) -> V:
        return self._call("ctlz", a.type, a, extra=", i1 false")

    def brev(self, a: V, bits: int) -> V:
        return self._call("bitreverse", a.type, a)

    def smin(self, a: V, b: V) -> V:
        return self._call("smin", a.type, a, b)

    def smax(self, a: V, b: V) -> V:
        return self._call("smax", a.type, a, b)

    def umin(self, a: V, b: V) -> V:
        return self._call("umin", a.type, a, b)

    def umax(self, a: V, b: V) -> V:
        return self._call("umax", a.type, a, b)

    # floats
    def fadd(self, a: V, b: V) -> V:
        return self._binary("fadd", a, b)

    def fsub(self, a: V, b: V) -> V:
        return self._binary("fsub", a, b)

    def fmul(self, a: V, b: V) -> V:
        return self._binary("fmul", a, b)

    def fdiv(self, a: V, b: V) -> V:
        return self._binary("fdiv", a, b)

    def fsqrt(self, a: V) -> V:
        return self._call("sqrt", a.type, a)

    def fma(self, a: V, b: V, c: V) -> V:
        return self._call("fma", a.type, a, b, c)

    def feq(self, a: V, b: V) -> V:
        return self._compare("fcmp oeq", a, b)

    def flt(self, a: V, b: V) -> V:
        return self._compare("fcmp olt", a, b)

    def fle(self, a: V, b: V) -> V:
        return self._compare("fcmp ole", a, b)

    def isnan(self, a: V) -> V:
        return self._compare("fcmp uno", a, a)

    def fpext(self, a: V) -> V:
        return self._convert("fpext", a, "double")

    def fptrunc(self, a: V) -> V:
        return self._convert("fptrunc", a, "float")

    def ffloor(self, a: V) -> V:
        return self._call("floor", a.type, a)

    def fceil(self, a: V) -> V:
        return self._call("ceil", a.type, a)

    def ftrunc(self, a: V) -> V:
        return self._call("trunc", a.type, a)

    def frint(self, a: V) -> V:
        return self._call("rint", a.type, a)

    def f64_to_s64(self, a: V) -> V:
        return self._convert("fptosi", a, "i64")

    def f64_to_u64(self, a: V) -> V:
        return self._convert("fptoui", a, "i64")

    def s64_to_f64(self, a: V) -> V:
        return self._convert("sitofp", a, "double")

    def u64_to_f64(self, a: V) -> V:
        return self._convert("uitofp", a, "double")

    def half_to_f32(self, a: V) -> V:
        w = self.w
        half = w.op(f"bitcast {w.vec('i16')} {a.name} to {w.vec('half')}")
        return Value(w.op(f"fpext {w.vec('half')} {half} to {w.vec('float')}"), "float")

    def f32_to_half(self, a: V) -> V:
        w = self.w
        half = w.op(f"fptrunc {w.vec('float')} {a.name} to {w.vec('half')}")
        bits = Value(w.op(f"bitcast {w.vec('half')} {half} to {w.vec('i16')}"), "i16")
        return self.select(self.isnan(a), self.const(16, 0x7FFF), bits)

    def exact64(self, op: str, mode: str, *args: V) -> V:
        raise Refused(f"f64 {op} rounded {mode}")

    def pair128(self, low: V, high: V) -> V:
        raise Refused("128-bit registers")

    split128 = pair128  # type: ignore[assignment]

    def rarely(self, c: V, then: Callable[[], Any], x: V) -> V:
        """A branch around `then`, taken when `c` holds in no lane."""
        w = self.w
        any_ = self.any_of(c)
        before, inside, after = w.label, w.new_label("rare"), w.new_label("common")
        w.branch(any_, inside, after)
        w.start(inside)
        other = then()
        if other.type != x.type:
            other = self._convert("bitcast", other, x.type)
        other = self.select(c, other, x)
        inside_end = w.label
        w.jump(after)
        w.start(after)
        merged = w.op(f"phi {w.vec(x.type)} [ {x.name}, %{before} ], [ {other.name}, %{inside_end} ]")
        return Value(merged, x.type)

    def any_of(self, c: V) -> str:
        """A scalar i1: does `c` hold in some lane?"""
        w = self.w
        bits = w.op(f"bitcast {w.vec('i1')} {c.name} to i{w.lanes}")
        return w.op(f"icmp ne i{w.lanes} {bits}, 0")
