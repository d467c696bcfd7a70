"""Block-level reductions and scans in shared memory: what cub's BlockReduce and BlockScan are used for."""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Float64, Int32

from porter.corpus.lib.floats import larger, smaller
from porter.corpus.lib.inline import pure
from porter.corpus.lib.warp import shfl_down, shfl_up, warp_max, warp_min, warp_sum
from porter.corpus.library import add_old_names


def block_dim():
    """(x, y, z) of `blockDim`, Int32 (`mov.u32 %ntid.x`).

    CuTeDSL 4.8's `cute.arch.block_dim()` tells the compiler that a dimension is below 1024; loops over the warps of a
    1024-thread block then lose their last turns. Inline PTX carries no such promise; the mask says that a dimension is
    not negative, without which loops with it as their step keep code and registers for running backwards.
    """
    return tuple(pure(f"mov.u32 $0, %ntid.{axis};", Int32) & 0x7FF for axis in "xyz")


def linear_thread():
    """Index of the thread in its block, x fastest, Int32."""
    tx, ty, tz = cute.arch.thread_idx()
    bx, by, _ = block_dim()
    return tx + bx * (ty + by * tz)


def block_threads():
    """Threads of the block, Int32."""
    bx, by, bz = block_dim()
    return bx * by * bz


def identity(dtype, op):
    """The value that changes nothing under "sum", "max", "min" or "absmax" (of magnitudes)."""
    if op in ("sum", "absmax"):
        return dtype(0)
    if dtype in (Float16, BFloat16, Float32, Float64):
        return dtype(float("-inf") if op == "max" else float("inf"))
    bits = dtype.width - (1 if dtype.signed else 0)
    low, high = (-(1 << bits) if dtype.signed else 0), (1 << bits) - 1
    return dtype(low if op == "max" else high)


def combine(a, b, op):
    """a + b, or the larger or smaller of two values (floats: the number when one is NaN); "absmax" of magnitudes."""
    if op == "sum":
        return a + b
    return smaller(a, b) if op == "min" else larger(a, b)


def tree_reduce(values, join):
    """`join` of two over a Python list, by pairs: short chains for the scheduler (no instruction of its own)."""
    while len(values) > 1:
        pairs = [join(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def group_reduce(v, op, width=32):
    """Reduce over groups of `width` lanes (a power of two), in every lane: "sum", "max", "min", or "absmax", the
    largest magnitude (`shfl.sync.bfly.b32`, from width/2 down to 1)."""
    if op == "absmax":
        return warp_max(abs(v), width)
    return {"sum": warp_sum, "max": warp_max, "min": warp_min}[op](v, width)


@cute.jit
def block_reduce(v, scratch: cute.Pointer, valid, op: cutlass.Constexpr):
    """Reduce `v` over the first `valid` threads of the block (all when there are fewer; thread 0 always counts, as with
    cub); every thread gets the result.

    `scratch` is shared memory for 32 values of v's type; op is "sum", "max", "min" or "absmax". Two `bar.sync`. Sums
    associate as cub's BlockReduce does: down by 1, 2, 4, 8, 16 inside a warp, then the warps in order, so they are
    equal to the bit.
    """
    tid = linear_thread()
    lane = tid % 32
    partial = v
    if cutlass.const_expr(op == "sum"):
        for step in cutlass.range_constexpr(5):
            other = shfl_down(partial, 1 << step)
            if (lane + (1 << step) < 32) & (tid + (1 << step) < valid):
                partial = partial + other
    else:
        partial = group_reduce(v if tid < max(Int32(valid), 1) else identity(type(v), op), op)
    if lane == 0:
        scratch[tid // 32] = partial
    cute.arch.sync_threads()
    result = type(v)(scratch[0])
    inside = Int32(valid)
    inside = inside if inside < block_threads() else block_threads()
    warps = (inside + 31) // 32
    w = Int32(1)
    while w < warps:
        result = combine(result, type(v)(scratch[w]), op)
        w = w + 1
    cute.arch.sync_threads()
    return result


@cute.jit
def warp_inclusive_sum(v):
    """Inclusive prefix sum over the warp, in lane order (five `shfl.sync.up`)."""
    lane = cute.arch.lane_idx()
    total = v
    for step in cutlass.range_constexpr(5):
        other = shfl_up(total, 1 << step)
        total = total + (other if lane >= (1 << step) else type(v)(0))
    return total


@cute.jit
def block_exclusive_sum(v, scratch: cute.Pointer):
    """Exclusive prefix sum of one value a thread over the block, in thread order; `block_scan_total` then gives the
    sum.

    `scratch` is shared memory for 33 values of v's type. Three `bar.sync`.
    """
    tid = linear_thread()
    threads = block_threads()
    lane = tid % 32
    warp = tid // 32
    inclusive = warp_inclusive_sum(v)
    if (lane == 31) | (tid == threads - 1):
        scratch[warp] = inclusive
    cute.arch.sync_threads()
    if warp == 0:
        warps = (threads + 31) // 32
        mine = type(v)(scratch[lane]) if lane < warps else type(v)(0)
        total = warp_inclusive_sum(mine)
        if lane < warps:
            scratch[lane] = total - mine
        if lane == warps - 1:
            scratch[32] = total
    cute.arch.sync_threads()
    prefix = type(v)(scratch[warp]) + inclusive - v
    cute.arch.sync_threads()
    return prefix


def block_scan_total(scratch):
    """Sum over the block after `block_exclusive_sum` with the same scratch."""
    return scratch[32]


add_old_names(__name__)
