"""Tensors of ports: buffers with their shape, whole vectors, sums and maxima over one."""

import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass._mlir.dialects import vector as vectors

from porter.corpus.lib.pointers import assume_aligned


def tensor(ptr, shape, strides=None, vector=1):
    """A buffer as a tensor of `shape`, with `strides` in elements (None: the last mode is contiguous); no instruction.

    Strides are 64 bits wide. `vector` elements can be loaded and stored at once: the caller guarantees that the address
    and every stride but that of the last mode, which is 1, are multiples of so many elements. An extent of None is one
    that the kernel does not know (the number of rows): any.
    """
    known = tuple(Int32(0x7FFFFFFF) if extent is None else extent for extent in shape)
    if strides is None:
        strides = (1,)
        for extent in reversed(known[1:]):
            inner = strides[0]
            strides = (Int64(extent) if isinstance(inner, int) else inner * Int64(extent), *strides)
    wide = tuple(s if isinstance(s, int) else cute.assume(Int64(s), divby=vector) for s in strides)
    align = max(vector * ptr.dtype.width // 8, 1)
    return cute.make_tensor(assume_aligned(ptr, ptr.dtype, align), cute.make_layout(known, stride=wide))


def load(src, readonly=False):
    """The elements of a tensor of at most 16 bytes as a vector, in one access (`ld.global.v4.b32` for 16 bytes).

    `readonly`: nobody writes them while the kernel runs (`ld.global.nc`).
    """
    if not readonly:
        return src.load()
    bits = min(128, cute.size(src) * src.element_type.width)
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), src.element_type, num_bits_per_copy=bits, invariant=True)
    registers = cute.make_rmem_tensor(cute.size(src), src.element_type)
    cute.copy(atom, src, registers)
    return registers.load()


def total(x, start):
    """start + x[0] + x[1] + ..., in this order (`add`, `fma` where x is a product)."""
    return x.dtype(x.reduce(cute.ReductionOp.ADD, start, 0))


def largest(x, start):
    """The largest of start and the elements of x, as `fmaxf` gives it (`max.f32`): NaN is passed over."""
    found = vectors.reduction(x.dtype.mlir_type, vectors.CombiningKind.MAXNUMF, x, acc=x.dtype(start).ir_value())
    return x.dtype(found)
