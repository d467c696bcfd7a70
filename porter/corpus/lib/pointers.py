"""Pointers as values: other types at the same address, null, differences, and addresses as numbers.

What a number holds depends on the address space. Global memory has 64-bit addresses that serve as generic ones. Shared
memory has 32-bit offsets, of which zero is a place like any other. Private memory (`rmem`) has no address space of its
own in CuTeDSL: `toint` keeps the low half of a generic address, from which no pointer can be made again. So a pointer
changes its type without becoming a number, and becomes a number by `address`, the generic address.
"""

import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass._mlir.dialects import builtin, llvm
from cutlass.cutlass_dsl import dsl_user_op

from porter.corpus.lib.inline import pure

#: what a null pointer into shared memory is, where zero is the first array: an offset that no array reaches
_NULL_OFFSET = -256


def _bytes(dtype):
    return max(dtype.width // 8, 1)


@dsl_user_op
def _from_llvm(raw, dtype, space, align, *, loc=None, ip=None):
    """A `cute.Pointer` of memory space `space` from an LLVM pointer: no instruction."""
    like = cute.make_ptr(dtype, Int64(0), space, assumed_align=align, loc=loc, ip=ip)
    return builtin.unrealized_conversion_cast([like.type], [raw], loc=loc, ip=ip)


def retyped(ptr, dtype, align):
    """The same address as a pointer to `dtype` that promises `align` bytes of alignment; no instruction."""
    if ptr.memspace is cute.AddressSpace.gmem:  # the same code as without the number, and what was measured
        return cute.make_ptr(dtype, ptr.toint(), ptr.memspace, assumed_align=align)
    return _from_llvm(ptr.to_llvm_ptr(), dtype, ptr.memspace, align)


def assume_aligned(ptr, dtype, align):
    """The same address as a pointer to `dtype` that the compiler may take as `align`-byte aligned.

    Wide accesses need it: without it a 16-byte copy becomes scalar loads. The caller guarantees the alignment.
    """
    if ptr.alignment >= align:
        return cute.recast_ptr(ptr, dtype=dtype)
    return retyped(ptr, dtype, align)


def natural(ptr, dtype):
    """The same address with only the natural alignment of `dtype`: the one type that a pointer carried through loops
    can keep."""
    if ptr.alignment == _bytes(dtype) and ptr.dtype is dtype:
        return ptr
    return retyped(ptr, dtype, _bytes(dtype))


@dsl_user_op
def _private_null(like, dtype, *, loc=None, ip=None):
    zero = llvm.mlir_zero(like.to_llvm_ptr(loc=loc, ip=ip).type, loc=loc, ip=ip)
    return _from_llvm(zero, dtype, like.memspace, _bytes(dtype), loc=loc, ip=ip)


def null_like(ptr, dtype):
    """A null pointer to `dtype` in the memory space of `ptr`, of the type that `natural` gives: for pointers set
    later. `is_null` knows it."""
    if ptr.memspace is cute.AddressSpace.rmem:
        return _private_null(ptr, dtype)
    if ptr.memspace is cute.AddressSpace.smem:
        return cute.make_ptr(dtype, Int32(_NULL_OFFSET), ptr.memspace, assumed_align=_bytes(dtype))
    return cute.make_ptr(dtype, Int64(0), ptr.memspace, assumed_align=_bytes(dtype))


@dsl_user_op
def _private_address(ptr, *, loc=None, ip=None):
    return Int64(llvm.ptrtoint(Int64.mlir_type, ptr.to_llvm_ptr(loc=loc, ip=ip), loc=loc, ip=ip))


def address(ptr):
    """The generic address as Int64 (`cvta.shared.u64` for shared memory)."""
    if ptr.memspace is cute.AddressSpace.smem:
        return pure("{ .reg .u64 t; cvt.u64.u32 t, $1; cvta.shared.u64 $0, t; }", Int64, Int32(ptr.toint()))
    if ptr.memspace is cute.AddressSpace.rmem:
        return _private_address(ptr)
    return Int64(ptr.toint())


def is_null(ptr):
    """Whether a pointer is null, Boolean. An array at offset zero of shared memory is not."""
    if ptr.memspace is cute.AddressSpace.smem:
        return ptr.toint() == _NULL_OFFSET
    return address(ptr) == 0


def diff(a, b, size):
    """`a - b` in elements of `size` bytes, Int64."""
    if a.memspace is b.memspace:
        return Int64(a.toint() - b.toint()) // size
    return (address(a) - address(b)) // size


def pointer(dtype, address_value, align=None):
    """A pointer to `dtype` from a generic address: accesses through it find their memory space at run time
    (`ld.b32`)."""
    return cute.make_ptr(dtype, Int64(address_value), cute.AddressSpace.generic, assumed_align=align or _bytes(dtype))


def generic(ptr, dtype):
    """The same address as a generic pointer to `dtype` (`cvta`): for variables that point into several memories."""
    if ptr.memspace is cute.AddressSpace.generic and ptr.dtype is dtype:
        return natural(ptr, dtype)
    return pointer(dtype, address(ptr))


def shared_address(ptr):
    """The 32-bit shared-memory address, for inline PTX (`cvta.to.shared.u64` of a generic pointer)."""
    if ptr.memspace is cute.AddressSpace.smem:
        return Int32(ptr.toint())
    return pure("{ .reg .u64 t; cvta.to.shared.u64 t, $1; cvt.u32.u64 $0, t; }", Int32, address(ptr))


def in_register(ptr):
    """The same place in shared memory, its address computed once, where this stands, and kept (`mov.b32`).

    The compiler takes the address of a static array for a constant and writes it out at each use; ptxas makes of that a
    read of a special register, for which a short `if` becomes a branch. Other memory stays as it is.
    """
    if ptr.memspace is not cute.AddressSpace.smem:
        return ptr
    kept = pure("mov.b32 $0, $1;", Int32, Int32(ptr.toint()))
    return cute.make_ptr(ptr.dtype, kept, ptr.memspace, assumed_align=ptr.alignment)
