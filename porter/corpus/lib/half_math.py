"""Functions of half and bfloat16 as CUDA's headers define them: approximate instructions in float32, rounded once.

In half some results are one unit off that way on hardware; CUDA corrects these inputs, and so does this.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Uint16

from porter.corpus.lib.floats import fma, mul_rn
from porter.corpus.lib.inline import pure


def approximate(name, x):
    """`name` ("ex2", "lg2", "rcp", "rsqrt", "sqrt") of a half or bfloat16, in float32: `.approx.ftz` for half,
    `.approx` for bfloat16."""
    ftz = ".ftz" if type(x) is Float16 else ""
    return approximate_f32(name + ".approx" + ftz, Float32(x))


def approximate_f32(instruction, x):
    """One approximate float32 instruction."""
    return pure(f"{instruction}.f32 $0, $1;", Float32, x)


@cute.jit
def corrected(r, x, table: cutlass.Constexpr):
    """r plus a unit where x has the bits of a table entry (bits of x, the unit)."""
    word = x.bitcast(Uint16)
    for k in cutlass.range_constexpr(len(table)):
        if word == Uint16(table[k][0]):
            r = Float16(Float32(r) + Float32(table[k][1]))
    return r


def hexp(x):
    """`hexp`: `ex2.approx` of x times log2(e)."""
    if cutlass.const_expr(type(x) is BFloat16):
        return BFloat16(approximate_f32("ex2.approx", mul_rn(Float32(x), Float32(1.4426951408386230))))
    r = Float16(approximate_f32("ex2.approx.ftz", mul_rn(Float32(x), Float32(1.4426950216293335))))
    return corrected(
        r, x, ((0x1F79, -0.0009765625), (0x25CF, -0.0009765625), (0xC13B, 6.103515625e-05), (0xC1EF, 3.0517578125e-05))
    )


def hexp2(x):
    """`hexp2`: `ex2.approx`; in half nudged up by 2**-24 relative before the rounding."""
    f = approximate("ex2", x)
    return type(x)(f if type(x) is BFloat16 else fma(f, Float32(2.0**-24), f))


def hlog2(x):
    """`hlog2` (`lg2.approx`)."""
    r = type(x)(approximate("lg2", x))
    if cutlass.const_expr(type(x) is BFloat16):
        return r
    return corrected(corrected(r, r, ((0xA2E2, -7.62939453125e-06),)), r, ((0xBF46, -0.0009765625),))


def hlog(x):
    """`hlog`: `lg2.approx` times ln(2)."""
    r = type(x)(mul_rn(approximate("lg2", x), Float32(0.6931471824645996)))
    if cutlass.const_expr(type(x) is BFloat16):
        return r
    return corrected(
        r,
        x,
        ((0x160D, -0.00390625), (0x3BFE, -9.5367431640625e-07), (0x3C0B, -7.62939453125e-06), (0x6051, 0.00390625)),
    )


def hlog10(x):
    """`hlog10`: `lg2.approx` times log10(2)."""
    r = type(x)(mul_rn(approximate("lg2", x), Float32(0.3010300099849701)))
    if cutlass.const_expr(type(x) is BFloat16):
        return r
    return corrected(
        r, x, ((0x338F, 0.00048828125), (0x33F8, -0.00048828125), (0x57E1, -0.001953125), (0x719D, -0.00390625))
    )


def hrcp(x):
    """`hrcp` (`rcp.approx`)."""
    return type(x)(approximate("rcp", x))


def hrsqrt(x):
    """`hrsqrt` (`rsqrt.approx`)."""
    return type(x)(approximate("rsqrt", x))


def hsqrt(x):
    """`hsqrt` (`sqrt.approx`)."""
    return type(x)(approximate("sqrt", x))


def htanh_approx(x):
    """`htanh_approx` (`tanh.approx.f16`, `tanh.approx.bf16`)."""
    name = "bf16" if type(x) is BFloat16 else "f16"
    return pure(f"tanh.approx.{name} $0, $1;", Uint16, x.bitcast(Uint16)).bitcast(type(x))
