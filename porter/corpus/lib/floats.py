"""Floating-point functions with CUDA's names and exact instruction choices (no fast-math unless the name says so).

Accurate functions (`exp`, `log`, `tanh`, ...) are `cute.math`'s, which expand to the same sequences as CUDA's
libdevice.
"""

import cutlass.cute as cute
from cutlass import Boolean, Float16, Float32, Float64, Int8, Int32, Int64, Uint8, Uint16, Uint32, Uint64

from porter.corpus.lib.inline import pure

LOG2E = 1.4426950216293335  # float32 value of log2(e), what CUDA multiplies by in __expf
LN2 = 0.6931471824645996
LOG2_10 = 3.321928024291992
LN2_OVER_LN10 = 0.3010300099849701


def constant(dtype, value):
    """A constant as an instruction's result, so that arithmetic on it rounds as the type does.

    The DSL computes with plain constants at trace time, in double precision, and rounds only what reaches memory.
    """
    return dtype(dtype(value).ir_value())


def exp2_approx(x):
    """2**x (`ex2.approx.f32`), at most 2 ulp."""
    return pure("ex2.approx.f32 $0, $1;", Float32, x)


def exp2_approx_ftz(x):
    """2**x, results below 2**-126 flushed to zero (`ex2.approx.ftz.f32`): one instruction, where `exp2_approx` takes
    four on hardware."""
    return pure("ex2.approx.ftz.f32 $0, $1;", Float32, x)


def exp_approx(x):
    """`__expf`: `mul.f32` by log2(e), then `ex2.approx.f32`."""
    return exp2_approx(x * Float32(LOG2E))


def exp10_approx(x):
    """`__exp10f`: `mul.f32` by log2(10), then `ex2.approx.f32`."""
    return exp2_approx(x * Float32(LOG2_10))


def log2_approx(x):
    """`__log2f` (`lg2.approx.f32`)."""
    return pure("lg2.approx.f32 $0, $1;", Float32, x)


def log_approx(x):
    """`__logf`: `lg2.approx.f32` times ln(2)."""
    return log2_approx(x) * Float32(LN2)


def log10_approx(x):
    """`__log10f`: `lg2.approx.f32` times log10(2)."""
    return log2_approx(x) * Float32(LN2_OVER_LN10)


def pow_approx(x, y):
    """`__powf`: `ex2.approx(y * lg2.approx(x))`."""
    return exp2_approx(y * log2_approx(x))


def sin_approx(x):
    """`__sinf` (`sin.approx.f32`)."""
    return pure("sin.approx.f32 $0, $1;", Float32, x)


def cos_approx(x):
    """`__cosf` (`cos.approx.f32`)."""
    return pure("cos.approx.f32 $0, $1;", Float32, x)


def tanh_approx(x):
    """`tanh.approx.f32` (`__tanhf`)."""
    return pure("tanh.approx.f32 $0, $1;", Float32, x)


def div_approx(a, b):
    """`__fdividef` (`div.approx.f32`)."""
    return pure("div.approx.f32 $0, $1, $2;", Float32, a, b)


def rcp_approx(x):
    """1/x (`rcp.approx.f32`)."""
    return pure("rcp.approx.f32 $0, $1;", Float32, x)


def rcp_approx_ftz(x):
    """1/x (`rcp.approx.ftz.f32`)."""
    return pure("rcp.approx.ftz.f32 $0, $1;", Float32, x)


def rsqrt(x):
    """1/sqrt(x) (`rsqrt.approx.f32`), what `rsqrtf` is."""
    return pure("rsqrt.approx.f32 $0, $1;", Float32, x)


def rsqrt_rn(x):
    """1/sqrt(x) rounded to nearest (`__frsqrt_rn`): through float64 (`sqrt.rn.f64`, `rcp.rn.f64`), whose error cannot
    reach a tie of float32."""
    return Float32(Float64(1.0) / cute.math.sqrt(Float64(x)))


def rcp_rn(x):
    """1/x rounded to nearest (`rcp.rn.f32`)."""
    return pure("rcp.rn.f32 $0, $1;", Float32, x)


def sqrt_rn(x):
    """Square root rounded to nearest (`sqrt.rn.f32`)."""
    return pure("sqrt.rn.f32 $0, $1;", Float32, x)


def sqrt_approx(x):
    """`sqrt.approx.f32`."""
    return pure("sqrt.approx.f32 $0, $1;", Float32, x)


def add_rn(a, b):
    """a + b that is never fused into an fma (`add.rn.f32`)."""
    return pure("add.rn.f32 $0, $1, $2;", Float32, a, b)


def sub_rn(a, b):
    """a - b that is never fused into an fma (`sub.rn.f32`)."""
    return pure("sub.rn.f32 $0, $1, $2;", Float32, a, b)


def mul_rn(a, b):
    """a * b that is never fused into an fma (`mul.rn.f32`)."""
    return pure("mul.rn.f32 $0, $1, $2;", Float32, a, b)


def div_rn(a, b):
    """a / b rounded to nearest (`div.rn.f32`)."""
    return pure("div.rn.f32 $0, $1, $2;", Float32, a, b)


def fma(a, b, c):
    """a * b + c with one rounding (`fma.rn.f32`)."""
    return cute.math.fma(a, b, c)


def fma_half(a, b, c):
    """a * b + c in half or bfloat16 with one rounding (`fma.rn.f16`, `fma.rn.bf16`)."""
    kind = "f16" if type(a) is Float16 else "bf16"
    args = [v.bitcast(Uint16) for v in (a, b, c)]
    return pure(f"fma.rn.{kind} $0, $1, $2, $3;", Uint16, *args).bitcast(type(a))


def fmax(a, b):
    """Larger of two floats, the number when one is NaN (`max.f32`)."""
    return cute.arch.fmax(a, b)


def fmin(a, b):
    """Smaller of two floats, the number when one is NaN (`min.f32`)."""
    return cute.arch.fmin(a, b)


def fmax_nan(a, b):
    """Larger of two floats, NaN when either is (`max.NaN.f32`)."""
    return pure("max.NaN.f32 $0, $1, $2;", Float32, a, b)


def fmin_nan(a, b):
    """Smaller of two floats, NaN when either is (`min.NaN.f32`)."""
    return pure("min.NaN.f32 $0, $1, $2;", Float32, a, b)


def fmax64(a, b):
    """Larger of two doubles, the number when one is NaN (`max.f64`)."""
    return pure("max.f64 $0, $1, $2;", Float64, a, b)


def fmin64(a, b):
    """Smaller of two doubles, the number when one is NaN (`min.f64`)."""
    return pure("min.f64 $0, $1, $2;", Float64, a, b)


def hmax(a, b):
    """`__hmax` of halves or bfloat16s (`max.f16`, `max.bf16`): the number when one is NaN."""
    return type(a)(fmax(Float32(a), Float32(b)))


def hmin(a, b):
    """`__hmin` of halves or bfloat16s (`min.f16`, `min.bf16`): the number when one is NaN."""
    return type(a)(fmin(Float32(a), Float32(b)))


def larger(a, b):
    """Larger of two values of one type: `fmaxf` on floats (the number when one is NaN), `max` on integers."""
    kind = type(a)
    if kind is Float32:
        return fmax(a, b)
    if kind is Float64:
        return fmax64(a, b)
    return hmax(a, b) if kind.is_float else cute.math.max(a, b)


def smaller(a, b):
    """Smaller of two values of one type: `fminf` on floats (the number when one is NaN), `min` on integers."""
    kind = type(a)
    if kind is Float32:
        return fmin(a, b)
    if kind is Float64:
        return fmin64(a, b)
    return hmin(a, b) if kind.is_float else cute.math.min(a, b)


@cute.jit
def next_after(x, y):
    """`nextafterf`: the float32 next to x in the direction of y; y when they are equal, NaN when one is."""
    bits_x = x.bitcast(Int32)
    tiny = (y.bitcast(Int32) & Int32(-0x80000000)) | Int32(1)  # from zero: the smallest number with y's sign
    away = bits_x + Int32(1) if (x < y) == (x > Float32(0.0)) else bits_x - Int32(1)
    moved = (tiny if x == Float32(0.0) else away).bitcast(Float32)
    result = y if x == y else moved
    return x + y if (x != x) | (y != y) else result


def saturate(x):
    """Clamp to [0, 1], NaN to 0 (`cvt.sat.f32.f32`)."""
    return pure("cvt.sat.f32.f32 $0, $1;", Float32, x)


def float_to_int(x, dtype, rounding):
    """float32 to an integer type with rounding `rni`, `rzi`, `rmi` or `rpi` (`cvt.rni.s32.f32`, ...)."""
    name = {Int32: "s32", Uint32: "u32", Int64: "s64", Uint64: "u64"}[dtype]
    return pure(f"cvt.{rounding}.{name}.f32 $0, $1;", dtype, x)


def float_to_int8_sat(x):
    """float32 to int8, round half to even, saturating (`cvt.rni.sat.s8.f32`)."""
    return Int8(pure("{ .reg .b16 t; cvt.rni.sat.s8.f32 t, $1; cvt.s32.s8 $0, t; }", Int32, x))


def float_to_uint8_sat(x):
    """float32 to uint8, round half to even, saturating (`cvt.rni.sat.u8.f32`)."""
    return Uint8(pure("{ .reg .b16 t; cvt.rni.sat.u8.f32 t, $1; cvt.u32.u8 $0, t; }", Uint32, x))


def rint(x):
    """Round half to even to an integral float (`cvt.rni.f32.f32`)."""
    return pure("cvt.rni.f32.f32 $0, $1;", Float32, x)


def int_to_float(x, rounding="rn"):
    """int32/uint32/int64/uint64 to float32 with rounding `rn`, `rz`, `rm` or `rp` (`cvt.rn.f32.s32`, ...)."""
    name = {Int32: "s32", Uint32: "u32", Int64: "s64", Uint64: "u64"}[type(x)]
    return pure(f"cvt.{rounding}.f32.{name} $0, $1;", Float32, x)


def float_to_half(x, dtype, rounding):
    """float32 to Float16/BFloat16 with rounding `rn`, `rz`, `rm` or `rp`."""
    name = "f16" if dtype is Float16 else "bf16"
    return pure(f"cvt.{rounding}.{name}.f32 $0, $1;", Uint16, x).bitcast(dtype)


def rounded(x, dtype):
    """float32 to Float16 or BFloat16, to nearest, by an instruction that nothing is fused with (`cvt.rn.f16.f32`,
    `cvt.rn.bf16.f32`). ptxas may make `dtype(x)` of a product or sum of halves a half operation, and fuse that."""
    if dtype is Float32 or type(x) is not Float32:
        return dtype(x)
    return float_to_half(x, dtype, "rn")


def half_rn(operation, a, b):
    """a and b of Float16 or BFloat16 added ("add"), subtracted or multiplied, and never fused into an fma
    (`add.rn.f16`, `sub.rn.bf16`, `mul.rn.f16`)."""
    kind = "f16" if type(a) is Float16 else "bf16"
    args = [v.bitcast(Uint16) for v in (a, b)]
    return pure(f"{operation}.rn.{kind} $0, $1, $2;", Uint16, *args).bitcast(type(a))


def bits(x, dtype):
    """The same bits as another type of the same width (`__float_as_int`, `__half_as_ushort`, ...); no instruction."""
    return x.bitcast(dtype)


def isnan(x):
    """True for NaN, for float32 (`setp.nan.f32`) and narrower types."""
    y = Float64(x) if type(x) is Float64 else Float32(x)
    return y != y


def isinf(x):
    """True for an infinity."""
    y = Float64(x) if type(x) is Float64 else Float32(x)
    return cute.math.isinf(y)


def isfinite(x):
    """True for neither NaN nor infinity."""
    y = Float64(x) if type(x) is Float64 else Float32(x)
    return cute.math.isfinite(y)


def to_bool(x):
    """C's conversion to bool: unequal to zero (NaN is true)."""
    return Boolean(x) if isinstance(x, (bool, int)) else x != type(x)(0)
