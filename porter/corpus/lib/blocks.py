"""Block-level reductions and scans in shared memory: what cub's BlockReduce and BlockScan are used for."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus.lib.floats import fmax, fmin
from porter.corpus.lib.warp import shfl_up, warp_max, warp_min, warp_sum


def linear_thread():
    """Index of the thread in its block, x fastest, Int32."""
    tx, ty, tz = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_dim()
    return tx + bx * (ty + by * tz)


def _combine(a, b, op):
    if op == "sum":
        return a + b
    if type(a) is Float32:
        return fmax(a, b) if op == "max" else fmin(a, b)
    return max(a, b) if op == "max" else min(a, b)


def _warp(v, op):
    return {"sum": warp_sum, "max": warp_max, "min": warp_min}[op](v)


@cute.jit
def block_reduce(v, scratch: cute.Pointer, valid, op: cutlass.Constexpr):
    """Reduce `v` over the first `valid` threads of the block; every thread gets the result.

    `scratch` is shared memory for 32 values. `op` is "sum", "max" or "min". Two `bar.sync`. The order of a sum differs
    from cub's (both are unspecified): results of float sums agree within re-association.
    """
    tid = linear_thread()
    bx, by, bz = cute.arch.block_dim()
    warps = (bx * by * bz + 31) // 32
    lane = tid % 32
    big = tid < valid
    first = v
    if not big:
        first = type(v)(0)
    if cutlass.const_expr(op != "sum"):
        # threads outside take a value that cannot win: that of lane 0 of their warp, or of thread 0 when none is valid
        first = v
        base = (tid // 32) * 32
        stand_in = cute.arch.shuffle_sync(v, 0)
        if not big:
            first = stand_in
        partial = _warp(first, op)
        if lane == 0:
            scratch[tid // 32] = partial
        cute.arch.sync_threads()
        result = scratch[0]
        w = Int32(1)
        while w < warps:
            if w * 32 < valid:
                result = _combine(result, scratch[w], op)
            w = w + 1
        cute.arch.sync_threads()
        _ = base
        return result
    else:
        partial = _warp(first, op)
        if lane == 0:
            scratch[tid // 32] = partial
        cute.arch.sync_threads()
        mine = type(v)(0)
        if lane < warps:
            mine = scratch[lane]
        result = _warp(mine, op)
        cute.arch.sync_threads()
        return result


@cute.jit
def block_exclusive_sum(v, scratch: cute.Pointer):
    """Exclusive prefix sum of one value a thread over the block, in thread order; returns (prefix, block total).

    `scratch` is shared memory for 33 values of v's type. Three `bar.sync`.
    """
    tid = linear_thread()
    bx, by, bz = cute.arch.block_dim()
    warps = (bx * by * bz + 31) // 32
    lane = tid % 32
    warp = tid // 32
    inclusive = v
    for step in cutlass.range_constexpr(5):
        other = shfl_up(inclusive, 1 << step)
        if lane >= (1 << step):
            inclusive = inclusive + other
    if lane == 31:
        scratch[warp] = inclusive
    if (lane != 31) & (tid == bx * by * bz - 1):
        scratch[warp] = inclusive
    cute.arch.sync_threads()
    if warp == 0:
        mine = type(v)(0)
        if lane < warps:
            mine = scratch[lane]
        total = mine
        for step in cutlass.range_constexpr(5):
            other = shfl_up(total, 1 << step)
            if lane >= (1 << step):
                total = total + other
        cute.arch.sync_warp()
        if lane < warps:
            scratch[lane] = total - mine
        if lane == 31:
            scratch[32] = total
    cute.arch.sync_threads()
    prefix = scratch[warp] + inclusive - v
    block_total = scratch[32]
    cute.arch.sync_threads()
    return prefix, block_total
