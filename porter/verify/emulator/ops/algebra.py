"""The small set of operations on vectors of values in which every PTX instruction is defined.

An Algebra implements the primitives (numpy: numpy_algebra.py; LLVM IR: llvm_algebra.py). What is composed here is
shared, so both backends compute the same bits. Integers are unsigned, of 8/16/32/64 bits; booleans, f32 and f64 are
their own kind; 16-bit floats travel as their bits. A value stands for one number per thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

V = Any  # a value of the backend


class Algebra(ABC):
    """Primitives. Callers see to it that shift counts are below the width, divisors not 0, and never INT_MIN / -1."""

    # constants and casts
    @abstractmethod
    def const(self, bits: int, value: int) -> V: ...
    @abstractmethod
    def const_f(self, bits: int, value: float) -> V: ...
    @abstractmethod
    def zext(self, x: V, bits: int) -> V: ...
    @abstractmethod
    def sext(self, x: V, bits: int) -> V: ...
    @abstractmethod
    def trunc(self, x: V, bits: int) -> V: ...
    @abstractmethod
    def from_bool(self, x: V, bits: int) -> V: ...
    @abstractmethod
    def bits_of(self, x: V) -> V: ...
    @abstractmethod
    def as_f32(self, x: V) -> V: ...
    @abstractmethod
    def as_f64(self, x: V) -> V: ...

    # integers
    @abstractmethod
    def add(self, a: V, b: V) -> V: ...
    @abstractmethod
    def sub(self, a: V, b: V) -> V: ...
    @abstractmethod
    def mul(self, a: V, b: V) -> V: ...
    @abstractmethod
    def and_(self, a: V, b: V) -> V: ...
    @abstractmethod
    def or_(self, a: V, b: V) -> V: ...
    @abstractmethod
    def xor(self, a: V, b: V) -> V: ...
    @abstractmethod
    def not_(self, a: V) -> V: ...
    @abstractmethod
    def shl(self, a: V, n: V) -> V: ...
    @abstractmethod
    def lshr(self, a: V, n: V) -> V: ...
    @abstractmethod
    def ashr(self, a: V, n: V) -> V: ...
    @abstractmethod
    def udiv(self, a: V, b: V) -> V: ...
    @abstractmethod
    def urem(self, a: V, b: V) -> V: ...
    @abstractmethod
    def sdiv(self, a: V, b: V) -> V: ...
    @abstractmethod
    def srem(self, a: V, b: V) -> V: ...
    @abstractmethod
    def eq(self, a: V, b: V) -> V: ...
    @abstractmethod
    def ne(self, a: V, b: V) -> V: ...
    @abstractmethod
    def ult(self, a: V, b: V) -> V: ...
    @abstractmethod
    def ule(self, a: V, b: V) -> V: ...
    @abstractmethod
    def slt(self, a: V, b: V) -> V: ...
    @abstractmethod
    def sle(self, a: V, b: V) -> V: ...
    @abstractmethod
    def select(self, c: V, a: V, b: V) -> V: ...
    @abstractmethod
    def popcount(self, a: V) -> V: ...
    @abstractmethod
    def clz(self, a: V) -> V: ...

    # floats
    @abstractmethod
    def fadd(self, a: V, b: V) -> V: ...
    @abstractmethod
    def fsub(self, a: V, b: V) -> V: ...
    @abstractmethod
    def fmul(self, a: V, b: V) -> V: ...
    @abstractmethod
    def fdiv(self, a: V, b: V) -> V: ...
    @abstractmethod
    def fsqrt(self, a: V) -> V: ...
    @abstractmethod
    def fma(self, a: V, b: V, c: V) -> V:
        """a*b+c with one rounding to nearest even, for f32 or f64."""

    @abstractmethod
    def feq(self, a: V, b: V) -> V: ...
    @abstractmethod
    def flt(self, a: V, b: V) -> V: ...
    @abstractmethod
    def fle(self, a: V, b: V) -> V: ...
    @abstractmethod
    def isnan(self, a: V) -> V: ...
    @abstractmethod
    def fpext(self, a: V) -> V: ...
    @abstractmethod
    def fptrunc(self, a: V) -> V: ...
    @abstractmethod
    def ffloor(self, a: V) -> V: ...
    @abstractmethod
    def fceil(self, a: V) -> V: ...
    @abstractmethod
    def ftrunc(self, a: V) -> V: ...
    @abstractmethod
    def frint(self, a: V) -> V: ...
    @abstractmethod
    def f64_to_s64(self, a: V) -> V:
        """Truncation; the caller keeps the value inside the range."""

    @abstractmethod
    def f64_to_u64(self, a: V) -> V: ...
    @abstractmethod
    def s64_to_f64(self, a: V) -> V:
        """Rounded to nearest even."""

    @abstractmethod
    def u64_to_f64(self, a: V) -> V: ...
    @abstractmethod
    def half_to_f32(self, a: V) -> V: ...
    @abstractmethod
    def f32_to_half(self, a: V) -> V:
        """Nearest even; overflow to infinity; any NaN becomes 0x7fff."""

    @abstractmethod
    def exact64(self, op: str, mode: str, *args: V) -> V:
        """f64 add/mul/fma/div/sqrt/rcp in a directed rounding mode (rz, rm, rp). Backends may refuse."""

    def approximate(self, op: str, exact: V, x: V) -> V:
        """The hook for error perturbation: `exact` is the f64 result of approximate instruction `op` for `x`."""
        return exact

    # composed, the same for every backend
    @abstractmethod
    def rarely(self, c: V, then: Callable[[], V], x: V) -> V:
        """select(c, then(), x), where `c` is nearly always false everywhere: `then` is worth skipping."""

    def neg(self, a: V) -> V:
        return self.sub(self.zero_like(a), a)

    @abstractmethod
    def zero_like(self, a: V) -> V: ...

    def brev(self, a: V, bits: int) -> V:
        for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F),
                            (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF)):  # fmt: skip
            if shift >= bits:
                break
            m, n = self.const(bits, mask & ((1 << bits) - 1)), self.const(bits, shift)
            a = self.or_(self.and_(self.lshr(a, n), m), self.shl(self.and_(a, m), n))
        return a

    def umulh64(self, a: V, b: V) -> V:
        """High 64 bits of the 128-bit unsigned product."""
        k32, low = self.const(64, 32), self.const(64, 0xFFFFFFFF)
        a0, a1, b0, b1 = self.and_(a, low), self.lshr(a, k32), self.and_(b, low), self.lshr(b, k32)
        p00, p01, p10, p11 = self.mul(a0, b0), self.mul(a0, b1), self.mul(a1, b0), self.mul(a1, b1)
        mid = self.add(self.add(self.lshr(p00, k32), self.and_(p01, low)), self.and_(p10, low))
        return self.add(self.add(p11, self.lshr(mid, k32)), self.add(self.lshr(p01, k32), self.lshr(p10, k32)))

    def smulh64(self, a: V, b: V) -> V:
        k63 = self.const(64, 63)
        high = self.umulh64(a, b)
        high = self.sub(high, self.and_(self.ashr(a, k63), b))
        return self.sub(high, self.and_(self.ashr(b, k63), a))

    def smin(self, a: V, b: V) -> V:
        return self.select(self.slt(b, a), b, a)

    def smax(self, a: V, b: V) -> V:
        return self.select(self.slt(a, b), b, a)

    def umin(self, a: V, b: V) -> V:
        return self.select(self.ult(b, a), b, a)

    def umax(self, a: V, b: V) -> V:
        return self.select(self.ult(a, b), b, a)

    def fabs(self, a: V) -> V:
        """|a| of f32 (as f32)."""
        return self.as_f32(self.and_(self.bits_of(a), self.const(32, 0x7FFFFFFF)))

    def fabs64(self, a: V) -> V:
        return self.as_f64(self.and_(self.bits_of(a), self.const(64, (1 << 63) - 1)))

    def ftz(self, x: V) -> V:
        """f32 with subnormals replaced by zeros of the same sign."""
        u = self.bits_of(x)
        tiny = self.eq(self.and_(u, self.const(32, 0x7F800000)), self.const(32, 0))
        return self.as_f32(self.rarely(tiny, lambda: self.and_(u, self.const(32, 0x80000000)), u))

    def two_sum_odd(self, a: V, b: V) -> V:
        """a + b of f64 rounded to odd: exact sums stay, others get an odd last bit (so a later rounding is right)."""
        s = self.fadd(a, b)
        bb = self.fsub(s, a)
        err = self.fadd(self.fsub(a, self.fsub(s, bb)), self.fsub(b, bb))
        zero = self.const_f(64, 0.0)
        u = self.bits_of(s)
        odd = self.ne(self.and_(u, self.const(64, 1)), self.const(64, 0))
        inexact = self.or_(self.flt(zero, err), self.flt(err, zero))  # false for NaN errors of infinities
        # toward zero when the error points there, away otherwise: magnitude -1 or +1 of an even significand
        same = self.eq(self.lshr(u, self.const(64, 63)), self.lshr(self.bits_of(err), self.const(64, 63)))
        step = self.select(same, self.const(64, 1), self.const(64, (1 << 64) - 1))
        fix = self.and_(inexact, self.not_(odd))
        return self.as_f64(self.add(u, self.select(fix, step, self.const(64, 0))))

    def f64_to_f32_odd(self, x: V) -> V:
        """f64 to f32 rounded to odd, as f32."""
        t = self.fptrunc(x)
        back = self.fpext(t)
        u = self.bits_of(t)
        above = self.flt(self.fabs64(x), self.fabs64(back))
        u = self.sub(u, self.from_bool(above, 32))
        inexact = self.not_(self.feq(back, x))
        return self.as_f32(self.or_(u, self.from_bool(inexact, 32)))

    def f64_to_f32(self, x: V, mode: str) -> V:
        """f64 (exact or rounded to odd) to f32 in mode rn, rz, rm or rp."""
        t = self.fptrunc(x)
        if mode == "rn":
            return t
        back, u = self.fpext(t), self.bits_of(t)
        one = self.const(32, 1)
        if mode == "rz":
            return self.as_f32(self.sub(u, self.from_bool(self.flt(self.fabs64(x), self.fabs64(back)), 32)))
        negative = self.ne(self.lshr(u, self.const(32, 31)), self.const(32, 0))
        minus = self.const(32, 0xFFFFFFFF)
        if mode == "rp":
            wrong, step = self.flt(back, x), self.select(negative, minus, one)
        else:
            wrong, step = self.flt(x, back), self.select(negative, one, minus)
        # only exact results are zero here, except a subnormal that rounded to zero; its sign bit is right
        return self.as_f32(self.add(u, self.select(wrong, step, self.const(32, 0))))

    def bf16_to_f32(self, a: V) -> V:
        return self.as_f32(self.shl(self.zext(a, 32), self.const(32, 16)))

    def f32_to_bf16(self, x: V) -> V:
        """Nearest even; any NaN becomes 0x7fff."""
        u = self.bits_of(x)
        lsb = self.and_(self.lshr(u, self.const(32, 16)), self.const(32, 1))
        r = self.lshr(self.add(u, self.add(lsb, self.const(32, 0x7FFF))), self.const(32, 16))
        return self.rarely(self.isnan(x), lambda: self.const(16, 0x7FFF), self.trunc(r, 16))

    def canonical(self, x: V) -> V:
        """f32 as bits with every NaN replaced by 0x7fffffff."""
        return self.rarely(self.isnan(x), lambda: self.const(32, 0x7FFFFFFF), self.bits_of(x))

    def canonical64(self, x: V, *operands: V) -> V:
        """f64 result with hardware's NaN: the first NaN among `operands`, quieted, else 0xfff8000000000000."""

        def nan() -> V:
            value = self.const(64, 0xFFF8000000000000)
            for operand in reversed(operands):
                quiet = self.or_(self.bits_of(operand), self.const(64, 1 << 51))
                value = self.select(self.isnan(operand), quiet, value)
            return value

        return self.as_f64(self.rarely(self.isnan(x), nan, self.bits_of(x)))
