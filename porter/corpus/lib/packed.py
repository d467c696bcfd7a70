"""Vectors of a row in 32-bit registers: wide loads and stores with cache hints, and 16-bit values two to a register.

A vector is a tuple of Uint32 words; one of 2 bytes or less is one word whose upper part is zero. The loads stay behind
`pdl_wait` and barriers, so they are safe for data that the kernel before this one writes. `ld.global.nc` is not: ptxas
moves it ahead of `griddepcontrol.wait` (`ACQBULK`), whatever the order in the PTX.
"""

import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Int32, Uint16, Uint32

from porter.corpus.lib.floats import fmax, fmin
from porter.corpus.lib.inline import asm, pure
from porter.corpus.lib.pointers import address
from porter.corpus.library import add_old_names

_HALF_NAME = {Float16: "f16", BFloat16: "bf16"}
STREAMING = ".L1::no_allocate"  # read once, by this thread only
CACHED = ""  # what other warps of the SM read too


def load_words(ptr, nbytes, kind=STREAMING, align=16, inside=True, fill=0):
    """`nbytes` (a power of two from 2 on) of global memory as words, in accesses of at most `align` bytes, to which the
    pointer is aligned (`ld.global.L1::no_allocate.v4.b32`; `kind` is the middle; 32 bytes at once from sm_100).

    Not `inside`: nothing is read (a predicate, no branch), and each word is `fill`.
    """
    align = min(align, nbytes)
    if align < nbytes:
        step = align * 8 // ptr.dtype.width
        pieces = [load_words(ptr + i * step, align, kind, align, inside, fill) for i in range(nbytes // align)]
        words = tuple(word for piece in pieces for word in piece)
        if align >= 4:
            return words
        return tuple(low & 0xFFFF | (high << 16) for low, high in zip(words[::2], words[1::2], strict=True))
    count = max(1, nbytes // 4)
    results = ", ".join(f"${i}" for i in range(count))
    load = f"ld.global{kind}" + (f".v{count}.b32 {{{results}}}" if count > 1 else f".b{nbytes * 8} {results}")
    load += f", [${count}];"
    if inside is not True:
        width = 16 if nbytes == 2 else 32
        fills = " ".join(f"mov.b{width} ${i}, {fill & ((1 << width) - 1)};" for i in range(count))
        load = f"{{ .reg .pred p; setp.ne.b32 p, ${count + 1}, 0; {fills} @p {load} }}"
    operands = [address(ptr)] if inside is True else [address(ptr), Int32(inside)]
    register = Uint16 if nbytes == 2 else Uint32
    words = asm(load, (register,) * count, operands, volatile=True, early=inside is not True)
    return tuple(Uint32(w) for w in (words if count > 1 else (words,)))


def prefetch_line(ptr, inside=True):
    """Prefetch the 128 bytes around an address into the L2 cache, without a branch (`prefetch.global.L2`).

    No value is read, so this may stand before `pdl_wait`: L2 is where memory is coherent.
    """
    if inside is True:
        asm("prefetch.global.L2 [$0];", (), [address(ptr)], volatile=True)
    else:
        text = "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p prefetch.global.L2 [$0]; }"
        asm(text, (), [address(ptr), Int32(inside)], volatile=True)


def prefetch_bytes(ptr, nbytes, inside):
    """Prefetch `nbytes`, a multiple of 16 from an address aligned to 16, into the L2 cache, without a branch
    (`cp.async.bulk.prefetch.L2.global`). As `prefetch_line`, but one thread asks for a whole row."""
    text = "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p cp.async.bulk.prefetch.L2.global [$0], $2; }"
    asm(text, (), [address(ptr), Int32(inside), Int32(nbytes)], volatile=True)


def ld_relaxed(ptr, dtype):
    """An integer of 32 or 64 bits that another kernel may be writing, for a guess (`ld.relaxed.gpu.global`).

    It comes from L2 and leaves nothing in L1, where a load after `pdl_wait` could find it again.
    """
    return asm(f"ld.relaxed.gpu.global.b{dtype.width} $0, [$1];", (dtype,), [address(ptr)], volatile=True)


def first_in_cache_line(nbytes):
    """Whether this thread is the first of those whose vectors of `nbytes` share 128 bytes, Boolean."""
    return cute.arch.thread_idx()[0] % max(1, 128 // nbytes) == 0


def store_words(ptr, words, nbytes, align=16):
    """`nbytes` (a power of two) of words to global memory in accesses of at most `align` bytes (`st.global.v4.b32`)."""
    align = min(align, nbytes)
    if align < nbytes:
        per_word = 4 // align if align < 4 else 1
        parts = [w >> (8 * align * i) if i else w for w in words for i in range(per_word)]
        step = max(1, align // 4)
        for i in range(nbytes // align):
            store_words(ptr + i * (align * 8 // ptr.dtype.width), parts[i * step : (i + 1) * step], align)
    elif nbytes <= 2:
        narrow = f"{{ .reg .b16 t; cvt.u16.u32 t, $1; st.global.b{8 * nbytes} [$0], t; }}"
        asm(narrow, (), [address(ptr), words[0]], volatile=True)
    elif nbytes == 4:
        asm("st.global.b32 [$0], $1;", (), [address(ptr), words[0]], volatile=True)
    else:
        count = nbytes // 4
        registers = ", ".join(f"${i + 1}" for i in range(count))
        asm(f"st.global.v{count}.b32 [$0], {{{registers}}};", (), [address(ptr), *words], volatile=True)


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
    values = [*values, Float32(0.0)] if len(values) == 1 else values
    text = f"cvt.rn.{_HALF_NAME[dtype]}x2.f32 $0, $1, $2;"
    return tuple(pure(text, Uint32, high, low) for low, high in zip(values[::2], values[1::2], strict=True))


def opaque_words(words):
    """The same words, opaque to the compiler: what was computed from them before is not kept in registers
    for a second use, but computed again (no instruction, or `mov.b32`)."""
    return tuple(asm("mov.b32 $0, $1;", (Uint32,), [w], volatile=True) for w in words)


def round_to(value, dtype):
    """A Float32 rounded to nearest even to `dtype`, again as Float32 (`cvt.rn.bf16.f32` and back)."""
    return value if dtype is Float32 else Float32(dtype(value))


def round_each(values, dtype):
    """Float32 values rounded to nearest even to `dtype`, again as Float32, two to an instruction
    (`cvt.rn.bf16x2.f32`: one value at a time takes four times as long, as `F2F`)."""
    return values if dtype is Float32 else unpack(pack(values, dtype), len(values), dtype)


def mul_words(a, b, dtype):
    """Product of two vectors, element by element, each rounded once (`mul.rn.bf16x2`, `mul.rn.f16x2`, `mul.f32`).

    Equal, to the bit, to a product in float32 that is then rounded: a product of two 16-bit values is exact there.
    """
    if dtype is Float32:
        return tuple((x.bitcast(Float32) * y.bitcast(Float32)).bitcast(Uint32) for x, y in zip(a, b, strict=True))
    text = f"mul.rn.{_HALF_NAME[dtype]}x2 $0, $1, $2;"
    return tuple(pure(text, Uint32, x, y) for x, y in zip(a, b, strict=True))


def max_words(a, b, dtype):
    """Larger values of two words of one or two values, the number where one is NaN (`max.bf16x2`, `max.f16x2`,
    `max.f32`)."""
    if dtype is Float32:
        return fmax(a.bitcast(Float32), b.bitcast(Float32)).bitcast(Uint32)
    return pure(f"max.{_HALF_NAME[dtype]}x2 $0, $1, $2;", Uint32, a, b)


def pack_e4m3(values, clamp=True):
    """Float32 values (1, 2, or a multiple of 4) as e4m3 codes, saturating (`cvt.rn.satfinite.e4m3x2.f32`). With `clamp`
    NaN becomes 448, as CUDA's clamp before a cast leaves it (`min.f32`), else e4m3's NaN."""
    values = [fmin(v, Float32(448.0)) for v in values] if clamp else values
    if len(values) <= 2:
        values = [*values, Float32(0.0)] if len(values) == 1 else values
        return (pure("{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, $2, $1; cvt.u32.u16 $0, t; }", Uint32, *values),)
    four = (
        "{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, $2, $1; cvt.rn.satfinite.e4m3x2.f32 h, $4, $3; "
        "mov.b32 $0, {l, h}; }"
    )
    return tuple(pure(four, Uint32, *values[i : i + 4]) for i in range(0, len(values), 4))


add_old_names(__name__)
