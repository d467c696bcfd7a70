"""Vectors of a row in 32-bit registers: wide loads and stores with cache hints, and 16-bit values two to a register.

A vector is a tuple of Uint32 words. A vector of 2 bytes is one word whose upper half is zero. The loads are ordered
with barriers and with `pdl_wait`, unlike `ldg`, so they are safe for data that the kernel before this one writes.
"""

import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Int64, Uint16, Uint32

from porter.corpus.lib.floats import fmin
from porter.corpus.lib.inline import asm, pure
from porter.corpus.lib.memory import address

_HALF_NAME = {Float16: "f16", BFloat16: "bf16"}


def words_of(count, dtype):
    """Words that `count` values of `dtype` take (2 bytes take one), a Python int."""
    return max(count * dtype.width // 32, 1)


def load_words(ptr, nbytes, hint=".L1::no_allocate"):
    """`nbytes` (2, 4, 8, 16; 32 from sm_100 on) of read-only global memory at a pointer aligned to as many
    (`ld.global.nc.L1::no_allocate.v4.b32`). `hint` "" lets L1 keep the line: for what several warps read."""
    if nbytes == 2:
        return (Uint32(asm(f"ld.global.nc{hint}.b16 $0, [$1];", (Uint16,), [address(ptr)], volatile=True)),)
    count = nbytes // 4
    if count == 1:
        return (asm(f"ld.global.nc{hint}.b32 $0, [$1];", (Uint32,), [address(ptr)], volatile=True),)
    registers = ", ".join(f"${i}" for i in range(count))
    text = f"ld.global.nc{hint}.v{count}.b32 {{{registers}}}, [${count}];"
    return asm(text, (Uint32,) * count, [address(ptr)], volatile=True)


def load_words_rw(ptr, nbytes):
    """As `load_words`, of memory that this kernel also writes, in place for example (`ld.global.v4.b32`)."""
    if nbytes == 2:
        return (Uint32(asm("ld.global.b16 $0, [$1];", (Uint16,), [address(ptr)], volatile=True)),)
    count = nbytes // 4
    if count == 1:
        return (asm("ld.global.b32 $0, [$1];", (Uint32,), [address(ptr)], volatile=True),)
    registers = ", ".join(f"${i}" for i in range(count))
    text = f"ld.global.v{count}.b32 {{{registers}}}, [${count}];"
    return asm(text, (Uint32,) * count, [address(ptr)], volatile=True)


def store_words(ptr, words, nbytes, hint=""):
    """Store `nbytes` (1, 2, 4, 8, 16; 32 from sm_100 on) of words at a pointer aligned to as many
    (`st.global.v4.b32`)."""
    if nbytes <= 2:
        low = f"{{ .reg .b16 t; cvt.u16.u32 t, $1; st.global{hint}.b{8 * nbytes} [$0], t; }}"
        asm(low, (), [address(ptr), words[0]], volatile=True)
        return
    count = nbytes // 4
    vector = f".v{count}" if count > 1 else ""
    registers = ", ".join(f"${i + 1}" for i in range(count))
    registers = f"{{{registers}}}" if count > 1 else registers
    asm(f"st.global{hint}{vector}.b32 [$0], {registers};", (), [address(ptr), *words], volatile=True)


def unpack(words, count, dtype):
    """The `count` values of a vector as Float32: bfloat16 by `shl.b32` and `and.b32`, half by `cvt.f32.f16`."""
    if dtype is Float32:
        return [w.bitcast(Float32) for w in words]
    values = []
    for w in words:
        if dtype is BFloat16:
            values += [(w << 16).bitcast(Float32), (w & Uint32(0xFFFF0000)).bitcast(Float32)]
        else:
            values += [
                pure("{ .reg .b16 l, h; mov.b32 {l, h}, $1; cvt.f32.f16 $0, l; }", Float32, w),
                pure("{ .reg .b16 l, h; mov.b32 {l, h}, $1; cvt.f32.f16 $0, h; }", Float32, w),
            ]
    return values[:count]


def pack(values, dtype):
    """Float32 values rounded to nearest even into a vector of `dtype` (`cvt.rn.bf16x2.f32`, `cvt.rn.f16x2.f32`)."""
    if dtype is Float32:
        return tuple(v.bitcast(Uint32) for v in values)
    name = _HALF_NAME[dtype]
    if len(values) == 1:
        return (pack2(values[0], Float32(0.0), dtype),)
    return tuple(
        pure(f"cvt.rn.{name}x2.f32 $0, $1, $2;", Uint32, high, low)
        for low, high in zip(values[::2], values[1::2], strict=True)
    )


def pack2(low, high, dtype):
    """Two Float32 rounded to nearest even into one word (`cvt.rn.bf16x2.f32`)."""
    return pure(f"cvt.rn.{_HALF_NAME[dtype]}x2.f32 $0, $1, $2;", Uint32, high, low)


def round_to(value, dtype):
    """A Float32 rounded to nearest even to `dtype`, again as Float32 (`cvt.rn.bf16.f32` and back)."""
    return value if dtype is Float32 else Float32(dtype(value))


def mul_words(a, b, dtype):
    """Product of two vectors, element by element, each rounded once (`mul.rn.bf16x2`, `mul.rn.f16x2`, `mul.rn.f32`).

    Equal, to the bit, to a product in float32 that is then rounded: a product of two 16-bit values is exact there.
    """
    if dtype is Float32:
        return tuple((x.bitcast(Float32) * y.bitcast(Float32)).bitcast(Uint32) for x, y in zip(a, b, strict=True))
    text = f"mul.rn.{_HALF_NAME[dtype]}x2 $0, $1, $2;"
    return tuple(pure(text, Uint32, x, y) for x, y in zip(a, b, strict=True))


def pack_e4m3(values):
    """Float32 values (a multiple of 4, or 2, or 1) as e4m3 codes, saturating, NaN to 448 as CUDA's clamp leaves it
    (`min.f32`, `cvt.rn.satfinite.e4m3x2.f32`)."""
    limit = Float32(448.0)
    values = [fmin(v, limit) for v in values]
    pair = "{ .reg .b16 l; cvt.rn.satfinite.e4m3x2.f32 l, $2, $1; cvt.u32.u16 $0, l; }"
    if len(values) == 1:
        return (pure(pair, Uint32, values[0], Float32(0.0)),)
    if len(values) == 2:
        return (pure(pair, Uint32, *values),)
    four = (
        "{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, $2, $1; cvt.rn.satfinite.e4m3x2.f32 h, $4, $3; "
        "mov.b32 $0, {l, h}; }"
    )
    return tuple(pure(four, Uint32, *values[i : i + 4]) for i in range(0, len(values), 4))


def row_pointer(ptr, row, stride, offset):
    """`ptr + row * stride + offset` in elements, in 64 bits (`mad.lo.s64`)."""
    return ptr + (Int64(row) * stride + Int64(offset))


def grid_row():
    """Row of this block where a grid holds rows in y and, beyond 65535 of them, in z: `y + z * 65535`, Int32."""
    _, y, z = cute.arch.block_idx()
    return y + z * 65535
