"""Sums of exponentials with their largest exponent, over warps, blocks and clusters: the reduction of a softmax.

A partial result is (top, total): total = sum of 2^(t_i - top), top the largest t_i. With no terms top is minus
infinity and total zero.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus.lib.blocks import tree_reduce
from porter.corpus.lib.cluster import cluster_rank, received, send
from porter.corpus.lib.floats import exp2_approx_ftz, fmax
from porter.corpus.lib.integers import select
from porter.corpus.lib.memory import shared
from porter.corpus.lib.warp import warp_max, warp_sum

_NOTHING = -float("inf")


def finite_top(top):
    """What to subtract from exponents: `top`, or zero where there are no terms (`selp`)."""
    return select(top == Float32(_NOTHING), Float32(0.0), top)


@cute.jit
def join_exp_sums(top, total, warps: cutlass.Constexpr, blocks: cutlass.Constexpr, box=None):
    """(top, total) of a whole row from those of its warps (the same in all lanes of one): `warps` warps of each of
    the `blocks` blocks of a cluster. Every thread gets the same bits.

    In a block through shared memory and one `bar.sync`. In a cluster each warp sends to all blocks (`st.async`): `box`
    is an `inbox` of 8 bytes for each warp of the cluster, and `cluster_wait` has been called. A cluster barrier
    instead would wait for the memory of all its threads and empty the L1 cache (`MEMBAR`, `CCTL.IVALL`).
    """
    parts = warps * blocks
    sums = shared(Float32, 2 * parts)
    lane = cute.arch.lane_idx()
    warp = cute.arch.thread_idx()[0] // 32
    if cutlass.const_expr(blocks == 1):
        if lane == 0:
            sums[2 * warp] = top
            sums[2 * warp + 1] = total
        cute.arch.sync_threads()
    else:
        part = Int32(cluster_rank()) * warps + warp
        if lane < blocks:
            send(sums + 2 * part, (top, total), box, lane)
        received(box)
    whole, terms = Float32(_NOTHING), Float32(0.0)
    mine = [(Float32(_NOTHING), Float32(0.0))] * -(-parts // 32)
    for i in cutlass.range_constexpr(-(-parts // 32)):
        index = cutlass.min(lane + 32 * i, parts - 1)
        there = lane + 32 * i < parts
        mine[i] = (select(there, sums[2 * index], whole), select(there, sums[2 * index + 1], terms))
    whole = warp_max(tree_reduce([t for t, _ in mine], fmax))
    base = finite_top(whole)
    terms = warp_sum(tree_reduce([s * exp2_approx_ftz(t - base) for t, s in mine], lambda a, b: a + b))
    return whole, terms
