"""Memory that ports and corpus kernels share: local, shared and dynamic shared arrays, views, and wide copies.

Everything here works on `cute.Pointer`. Reading an unsigned element through a pointer yields a signed value in
CuTeDSL 4.8, so callers wrap loads of unsigned types (`Uint32(p[i])`). How pointers change their type and become numbers
is in `pointers`.
"""

import cutlass.cute as cute
from cutlass import Int8, Uint8, Uint16, Uint32
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op

from porter.corpus.lib.pointers import assume_aligned


def local(dtype, count=1):
    """`count` elements of `dtype` private to the thread, as a pointer; registers where indices are constant (no PTX
    of its own)."""
    return cute.make_rmem_tensor(cute.make_layout(count), dtype).iterator


def table(dtype, values):
    """A constant table private to the thread, as a pointer; run-time indices make it local memory."""
    out = local(dtype, len(values))
    for i, v in enumerate(values):
        out[i] = dtype(v)
    return out


@dsl_user_op
def _load_invariant(ptr, mlir_type, align, *, loc=None, ip=None):
    return llvm.load(mlir_type, ptr.to_llvm_ptr(loc=loc, ip=ip), alignment=align, invariant=True, loc=loc, ip=ip)


def ldg(ptr):
    """One element of global memory that nobody writes while the kernel runs (`__ldg`: `ld.global.nc`).

    Such loads may move above stores; without the promise a store to any pointer holds later loads back.
    """
    dtype = ptr.dtype
    size = max(dtype.width // 8, 1)
    if ptr.memspace is not cute.AddressSpace.gmem:
        return ptr.load()
    if dtype.width == 8 and dtype is not Int8 and dtype is not Uint8:
        return Int8(_load_invariant(ptr, Int8.mlir_type, 1)).bitcast(dtype)
    return dtype(_load_invariant(ptr, dtype.mlir_type, size))


def shared(dtype, count, align=16):
    """`count` elements of static shared memory as a pointer (`.shared .align`); `align` in bytes."""
    return cute.arch.alloc_smem(dtype, count, alignment=align)


def dyn_shared(dtype, align=16):
    """Start of the dynamic shared memory as a pointer (`extern .shared`); its size is the launch's `smem`."""
    return cute.arch.get_dyn_smem(dtype, alignment=align)


def view(ptr, dtype):
    """The same address seen as another element type (`reinterpret_cast`); no instruction."""
    return cute.recast_ptr(ptr, dtype=dtype)


def _word(align):
    return {1: Uint8, 2: Uint16}.get(align, Uint32)


def _at(ptr, offset, loc, ip):
    """The LLVM pointer `offset` bytes further."""
    raw = ptr.to_llvm_ptr(loc=loc, ip=ip)
    if not offset:
        return raw
    return llvm.getelementptr(raw.type, raw, [], [offset], Int8.mlir_type, llvm.GEPNoWrapFlags.none, loc=loc, ip=ip)


@dsl_user_op
def _load_raw(ptr, offset, mlir_type, align, invariant, *, loc=None, ip=None):
    return llvm.load(mlir_type, _at(ptr, offset, loc, ip), alignment=align, invariant=invariant, loc=loc, ip=ip)


@dsl_user_op
def _store_raw(ptr, offset, value, align, *, loc=None, ip=None):
    llvm.store(value, _at(ptr, offset, loc, ip), alignment=align, loc=loc, ip=ip)


def copy(dst, src, count, align=None, readonly=False):
    """Copy `count` (constant) elements of dst's type; both addresses are `align`-byte aligned (default: the whole
    size).

    Becomes accesses of `align` bytes, 16 at most: 16 -> `ld.global.v4.b32` / `st.global.v4.b32`, 8 -> `.v2.b32`,
    4 -> `.b32`, ...; registers on either side cost nothing. `readonly` as for `ldg` (`ld.global.nc.v4.b32`).
    """
    nbytes = count * max(dst.dtype.width // 8, 1)
    align = min(align or nbytes, 16)
    align &= -align
    word = _word(align)
    size = word.width // 8
    total = nbytes // size
    step = max(align // size, 1)
    # Device memory is addressed by the pointers as they are, the alignment stated at each access. Going through
    # integers would keep LLVM from advancing the pointers in a loop, and ptxas then leaves fewer loads in flight.
    plain_src, plain_dst = (p.memspace is cute.AddressSpace.gmem for p in (src, dst))
    wide_src = src if plain_src else assume_aligned(src, word, align)
    wide_dst = dst if plain_dst else assume_aligned(dst, word, align)
    for first in range(0, total, step):
        words = min(step, total - first)
        kind = word.mlir_type if words == 1 else ir.VectorType.get([words], word.mlir_type)
        layout = cute.make_layout(words)
        if plain_src:
            value = _load_raw(wide_src, first * size, kind, align, readonly)
        else:
            s = wide_src + first if first else wide_src
            value = s.load() if words == 1 else cute.make_tensor(s, layout).load()
            value = value.ir_value()
        if plain_dst:
            _store_raw(wide_dst, first * size, value, align)
        else:
            d = wide_dst + first if first else wide_dst
            if words == 1:
                d.store(word(value))
            else:
                cute.make_tensor(d, layout).store(cute.TensorSSA(value, words, word))


def copy_bytes(dst, src, nbytes, align):
    """`memcpy` of a constant number of bytes between addresses that are `align`-byte aligned."""
    copy(cute.recast_ptr(dst, dtype=Uint8), src, nbytes, align)


def store(ptr, value):
    """Store one element (converted to the pointer's type)."""
    ptr.store(value)
