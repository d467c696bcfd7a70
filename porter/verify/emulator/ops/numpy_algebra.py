"""The algebra over numpy arrays, the living definition: one element per thread, or one element for all threads."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.exact import round_fraction_f64, sqrt_f64

A = np.ndarray
_np: Any = np  # ufuncs as methods of the algebra: their own signatures are too narrow for it

_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_TO_SIGNED = {np.dtype(_UNSIGNED[b]): np.dtype(_SIGNED[b]) for b in _UNSIGNED}
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


@lru_cache(maxsize=4096)
def _constant(bits: int, value: int) -> A:
    if bits == 1:
        a: A = np.array([bool(value)])
    else:
        a = np.array([value & ((1 << bits) - 1)], dtype=_UNSIGNED[bits])
    a.flags.writeable = False
    return a


@lru_cache(maxsize=4096)
def _constant_f(bits: int, value: float) -> A:
    a: A = np.array([value], dtype=_F32 if bits == 32 else _F64)
    a.flags.writeable = False
    return a


def _signed(a: A) -> A:
    return a.view(_TO_SIGNED[a.dtype])


class NumpyAlgebra(Algebra):
    """`perturb(op, exact_f64) -> f64` replaces the result of approximate instructions (tolerance studies)."""

    def __init__(self, perturb: Any = None):
        self._perturb = perturb

    const = staticmethod(_constant)
    const_f = staticmethod(_constant_f)
    add = staticmethod(_np.add)
    sub = staticmethod(_np.subtract)
    mul = staticmethod(_np.multiply)
    and_ = staticmethod(_np.bitwise_and)
    or_ = staticmethod(_np.bitwise_or)
    xor = staticmethod(_np.bitwise_xor)
    not_ = staticmethod(_np.invert)
    shl = staticmethod(_np.left_shift)
    lshr = staticmethod(_np.right_shift)
    udiv = staticmethod(_np.floor_divide)
    urem = staticmethod(_np.remainder)
    eq = staticmethod(_np.equal)
    ne = staticmethod(_np.not_equal)
    ult = staticmethod(_np.less)
    ule = staticmethod(_np.less_equal)
    select = staticmethod(_np.where)
    fadd = staticmethod(_np.add)
    fsub = staticmethod(_np.subtract)
    fmul = staticmethod(_np.multiply)
    fdiv = staticmethod(_np.divide)
    fsqrt = staticmethod(_np.sqrt)
    feq = staticmethod(_np.equal)
    flt = staticmethod(_np.less)
    fle = staticmethod(_np.less_equal)
    isnan = staticmethod(_np.isnan)
    ffloor = staticmethod(_np.floor)
    fceil = staticmethod(_np.ceil)
    ftrunc = staticmethod(_np.trunc)
    frint = staticmethod(_np.rint)
    zero_like = staticmethod(_np.zeros_like)
    neg = staticmethod(_np.negative)
    umin = staticmethod(_np.minimum)
    umax = staticmethod(_np.maximum)

    def rarely(self, c: A, then: Any, x: A) -> A:
        return np.where(c, then(), x) if c.any() else x

    def zext(self, x: A, bits: int) -> A:
        return x.astype(_UNSIGNED[bits])

    trunc = zext

    def sext(self, x: A, bits: int) -> A:
        return _signed(x).astype(_SIGNED[bits]).view(_UNSIGNED[bits])

    def from_bool(self, x: A, bits: int) -> A:
        return x.astype(_UNSIGNED[bits])

    def bits_of(self, x: A) -> A:
        return x.view(_U32 if x.dtype == _F32 else _U64)

    def as_f32(self, x: A) -> A:
        return x.view(_F32)

    def as_f64(self, x: A) -> A:
        return x.view(_F64)

    def ashr(self, a: A, n: A) -> A:
        return np.right_shift(_signed(a), _signed(n)).view(a.dtype)

    def sdiv(self, a: A, b: A) -> A:
        sa, sb = _signed(a), _signed(b)
        q = np.floor_divide(sa, sb)
        fix = (np.remainder(sa, sb) != 0) & ((sa < 0) != (sb < 0))  # floor to truncation
        return (q + fix.astype(q.dtype)).view(a.dtype)

    def srem(self, a: A, b: A) -> A:
        return np.fmod(_signed(a), _signed(b)).view(a.dtype)

    def slt(self, a: A, b: A) -> A:
        return np.less(_signed(a), _signed(b))

    def sle(self, a: A, b: A) -> A:
        return np.less_equal(_signed(a), _signed(b))

    def smin(self, a: A, b: A) -> A:
        return np.minimum(_signed(a), _signed(b)).view(a.dtype)

    def smax(self, a: A, b: A) -> A:
        return np.maximum(_signed(a), _signed(b)).view(a.dtype)

    def popcount(self, a: A) -> A:
        return np.bitwise_count(a).astype(a.dtype)

    def clz(self, a: A) -> A:
        bits = a.dtype.itemsize * 8
        for shift in (1, 2, 4, 8, 16, 32):
            if shift < bits:
                a = a | (a >> a.dtype.type(shift))
        return (a.dtype.type(bits) - np.bitwise_count(a)).astype(a.dtype)

    def fma(self, a: A, b: A, c: A) -> A:
        if a.dtype == _F64:
            return self._fma64(a, b, c)
        a64, b64, c64 = a.astype(_F64), b.astype(_F64), c.astype(_F64)
        product = a64 * b64  # exact: 48 bits
        total = product + c64
        result = total.astype(_F32)
        # rounding twice goes wrong only if the f64 sum sits on the middle between two f32, or the result is subnormal
        low = total.view(_U64) & _constant(64, 0x1FFFFFFF)
        doubtful = (low == _constant(64, 0x10000000)) | ((np.abs(total) < _constant_f(64, 2.0**-125)) & (total != 0))
        which = np.flatnonzero(doubtful)
        if which.size:
            addend = c64 if c64.size == 1 else c64[which]
            odd = self.two_sum_odd(product if product.size == 1 else product[which], addend)
            result[which] = odd.astype(_F32)
        return result

    def _fma64(self, a: A, b: A, c: A) -> A:
        """f64 fma: exact rational arithmetic where the quick error-free transformation cannot prove its result."""
        a, b, c = np.broadcast_arrays(a, b, c)
        product = a * b
        plain = product + c
        split = _constant_f(64, 134217729.0)
        ah = a * split
        ah = ah - (ah - a)
        bh = b * split
        bh = bh - (bh - b)
        al, bl = a - ah, b - bh
        error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
        total = product + c
        bb = total - product
        rest = (product - (total - bb)) + (c - bb)
        tail = rest + error
        result = total + tail
        # `tail` rounds when both parts are nonzero; ranges near overflow or underflow break the transformation
        magnitude = np.abs(product)
        safe = (
            (magnitude < 1e290) & (magnitude > 1e-250) & (np.abs(a) < 1e290) & (np.abs(b) < 1e290) & (np.abs(c) < 1e290)
        )
        exact = safe & ((error == 0) | (rest == 0) | (self._exact_sum(rest, error, tail))) & (np.abs(total) > 1e-290)
        special = ~np.isfinite(plain) & ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
        trivial = special | ((a == 0) | (b == 0))
        result = np.where(trivial, plain, result)
        todo = np.flatnonzero(~(exact | trivial))
        if todo.size:
            result = np.array(result)
            for i in todo:
                result[i] = round_fraction_f64(Fraction(a[i]) * Fraction(b[i]) + Fraction(c[i]), "rn", 0.0)
        return result

    @staticmethod
    def _exact_sum(a: A, b: A, s: A) -> A:
        bb = s - a
        return ((a - (s - bb)) + (b - bb)) == 0

    def fpext(self, a: A) -> A:
        return a.astype(_F64)

    def fptrunc(self, a: A) -> A:
        return a.astype(_F32)

    def f64_to_s64(self, a: A) -> A:
        return a.astype(np.int64).view(_U64)

    def f64_to_u64(self, a: A) -> A:
        big = a >= 2.0**63
        low = np.where(big, a - 2.0**63, a).astype(np.int64).view(_U64)
        return low + (big.astype(_U64) << np.uint64(63))

    def s64_to_f64(self, a: A) -> A:
        return a.view(np.int64).astype(_F64)

    def u64_to_f64(self, a: A) -> A:
        return a.astype(_F64)

    def half_to_f32(self, a: A) -> A:
        return a.view(np.float16).astype(_F32)

    def f32_to_half(self, a: A) -> A:
        r = a.astype(np.float16).view(np.uint16)
        nan = np.isnan(a)
        return np.where(nan, np.uint16(0x7FFF), r) if nan.any() else r

    def exact64(self, op: str, mode: str, *args: A) -> A:
        arrays = np.broadcast_arrays(*args)
        formulas: dict[str, Any] = {
            "add": lambda x, y: x + y,
            "mul": lambda x, y: x * y,
            "div": lambda x, y: x / y,
            "fma": lambda x, y, z: x * y + z,
            "sqrt": np.sqrt,
            "rcp": lambda x: 1.0 / x,
        }
        result = np.array(formulas[op](*arrays), dtype=_F64)
        for i in range(result.size):
            values = [float(x.flat[i]) for x in arrays]
            if not all(np.isfinite(values)) or (op in ("div", "rcp") and values[-1] == 0):
                continue
            if op == "sqrt":
                if values[0] > 0:
                    result.flat[i] = sqrt_f64(values[0], mode)
                continue
            q = [Fraction(v) for v in values]
            exact = {
                "add": lambda q: q[0] + q[1],
                "mul": lambda q: q[0] * q[1],
                "div": lambda q: q[0] / q[1],
                "fma": lambda q: q[0] * q[1] + q[2],
                "rcp": lambda q: 1 / q[0],
            }[op](q)
            zero = float(result.flat[i])
            if op in ("add", "fma"):
                product_negative = (
                    (np.signbit(values[0]) != np.signbit(values[1])) if op == "fma" else np.signbit(values[0])
                )
                last_negative = np.signbit(values[-1])
                zero = (
                    -0.0
                    if (product_negative and last_negative) or (mode == "rm" and product_negative != last_negative)
                    else 0.0
                )
            result.flat[i] = round_fraction_f64(exact, mode, zero)
        return result

    def approximate(self, op: str, exact: A, x: A) -> A:
        return exact if self._perturb is None else self._perturb(op, exact, x)

    def pair128(self, low: A, high: A) -> A:
        """A 128-bit register from two u64."""
        low, high = np.broadcast_arrays(low, high)
        return np.stack((low, high), axis=1).view(np.complex128).reshape(-1)

    def split128(self, x: A) -> tuple[A, A]:
        both = np.ascontiguousarray(x).view(_U64).reshape(-1, 2)
        return both[:, 0].copy(), both[:, 1].copy()
