"""Integer arithmetic with C semantics, and bit intrinsics. Python's `//` and `%` floor; C truncates."""

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64, Uint32, Uint64
from cutlass._mlir.dialects import arith
from cutlass.cutlass_dsl import dsl_user_op

from porter.corpus.lib.inline import pure


def _is_static(*xs):
    return all(isinstance(x, (int, bool)) for x in xs)


@dsl_user_op
def _div_s(a, b, *, loc=None, ip=None):
    return type(a)(arith.divsi(a.ir_value(loc=loc, ip=ip), b.ir_value(loc=loc, ip=ip), loc=loc, ip=ip))


@dsl_user_op
def _rem_s(a, b, *, loc=None, ip=None):
    return type(a)(arith.remsi(a.ir_value(loc=loc, ip=ip), b.ir_value(loc=loc, ip=ip), loc=loc, ip=ip))


def _same(a, b):
    t = type(b) if _is_static(a) else type(a)
    return t(a), t(b)


def c_div(a, b):
    """C `/` on integers: truncates towards zero (`div.s32`); unsigned types and Python ints as C would."""
    if _is_static(a, b):
        return -(-a // b) if (a < 0) != (b < 0) else a // b
    a, b = _same(a, b)
    return _div_s(a, b) if type(a).signed else a // b


def c_mod(a, b):
    """C `%` on integers: the remainder has the sign of the dividend (`rem.s32`)."""
    if _is_static(a, b):
        return a - b * c_div(a, b)
    a, b = _same(a, b)
    return _rem_s(a, b) if type(a).signed else a % b


def mul_hi(a, b):
    """High 32 bits of the product of two Uint32 (`mul.hi.u32`) or Int32 (`mul.hi.s32`)."""
    if type(a) is Uint32:
        return Uint32((Uint64(a) * Uint64(Uint32(b))) >> 32)
    return Int32((Int64(a) * Int64(Int32(b))) >> 32)


def mul_hi64(a, b):
    """High 64 bits of the product of two Uint64 (`mul.hi.u64`)."""
    return pure("mul.hi.u64 $0, $1, $2;", Uint64, Uint64(a), Uint64(b))


def popc(x):
    """Number of set bits, Int32 (`popc.b32`)."""
    return pure("popc.b32 $0, $1;", Int32, Uint32(x))


def popc64(x):
    """Number of set bits of a 64-bit value, Int32 (`popc.b64`)."""
    return pure("popc.b64 $0, $1;", Int32, Uint64(x))


def clz(x):
    """Leading zero bits of a 32-bit value, 32 for zero (`clz.b32`)."""
    return pure("clz.b32 $0, $1;", Int32, Uint32(x))


def clz64(x):
    """Leading zero bits of a 64-bit value (`clz.b64`)."""
    return pure("clz.b64 $0, $1;", Int32, Uint64(x))


def ffs(x):
    """1-based position of the lowest set bit, 0 for zero."""
    return Int32(32) - clz(Uint32(x) & (Uint32(0) - Uint32(x)))


def ffs64(x):
    """1-based position of the lowest set bit of a 64-bit value, 0 for zero."""
    return Int32(64) - clz64(Uint64(x) & (Uint64(0) - Uint64(x)))


def brev(x):
    """Bits in reverse order, Uint32 (`brev.b32`)."""
    return pure("brev.b32 $0, $1;", Uint32, Uint32(x))


def byte_perm(a, b, selector):
    """`__byte_perm`: four bytes picked from the eight of a and b (`prmt.b32`), Uint32. The uppermost bit of each digit
    of the selector, which makes `prmt` spread a sign, counts for nothing."""
    return prmt(a, b, Uint32(selector) & Uint32(0x7777))


def prmt(a, b, selector):
    """Four bytes, or the signs of bytes, of a and b (`prmt.b32`), Uint32."""
    return pure("prmt.b32 $0, $1, $2, $3;", Uint32, Uint32(a), Uint32(b), Uint32(selector))


def funnel_shift_l(lo, hi, shift):
    """`__funnelshift_l` (`shf.l.wrap.b32`), Uint32."""
    return pure("shf.l.wrap.b32 $0, $1, $2, $3;", Uint32, Uint32(lo), Uint32(hi), Uint32(shift))


def funnel_shift_r(lo, hi, shift):
    """`__funnelshift_r` (`shf.r.wrap.b32`), Uint32."""
    return pure("shf.r.wrap.b32 $0, $1, $2, $3;", Uint32, Uint32(lo), Uint32(hi), Uint32(shift))


def dp4a(a, b, c):
    """Signed 4-way byte dot product with accumulate (`dp4a.s32.s32`), Int32."""
    return pure("dp4a.s32.s32 $0, $1, $2, $3;", Int32, Int32(a), Int32(b), Int32(c))


def sad(a, b, c):
    """|a - b| + c for Int32 operands, Uint32 (`sad.s32`)."""
    return pure("sad.s32 $0, $1, $2, $3;", Uint32, Int32(a), Int32(b), Uint32(c))


def imin(a, b):
    """Integer minimum (`min.s32`, `min.u32`, 64-bit forms)."""
    return min(a, b) if _is_static(a, b) else cute.math.min(*_same(a, b))


def imax(a, b):
    """Integer maximum (`max.s32`, `max.u32`, 64-bit forms)."""
    return max(a, b) if _is_static(a, b) else cute.math.max(*_same(a, b))


def iabs(x):
    """Absolute value of a signed integer (`abs.s32`)."""
    return cute.math.max(x, type(x)(0) - x)


def select(condition, a, b):
    """a where the condition holds, else b, both evaluated (`selp`)."""
    return type(a)(arith.select(condition.ir_value(), a.ir_value(), b.ir_value()))


def smid():
    """The multiprocessor this thread runs on, Uint32 (`%smid`)."""
    return Uint32(cute.arch.smid())


@cute.jit
def trips(start, stop, step: cutlass.Constexpr):
    """How often `for (i = start; i < stop; i += step)` turns, for Int64 and a Python int from 1 on (`add.s64`,
    `shr.u64` for powers of two).

    A loop over this number is one that the compiler can count, so it unrolls it and advances pointers. Of `i < stop`
    with an `i` that grows by more than one it has to think that `i` may wrap, which C++ says a signed one does not.
    """
    return Int64(Uint64(stop - start - 1) // step) + 1 if start < stop else Int64(0)


def halving(start):
    """[start, start/2, ..., 1] for a Python int: the offsets of a halving loop, unrolled at trace time."""
    out = []
    while start > 0:
        out.append(start)
        start >>= 1
    return out
