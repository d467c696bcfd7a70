"""Reductions over all blocks of a cluster."""

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus.lib.blocks import combine, group_reduce, identity
from porter.corpus.lib.cluster import cluster_arrive, cluster_rank, cluster_wait, map_shared_rank
from porter.corpus.lib.integers import select
from porter.corpus.lib.memory import shared


@cute.jit
def cluster_reduce(v, warps: cutlass.Constexpr, blocks: cutlass.Constexpr, op: cutlass.Constexpr = "sum"):
    """Reduce `v` (32 bits) over the `warps` warps of each of the `blocks` blocks of a cluster; every thread gets the
    same bits. "sum", "max", "min" or "absmax".

    Each warp writes its result to all blocks (`mapa.u64`, a generic `st.b32`), then one cluster barrier. The kernel
    has called `cluster_arrive` before, so that all blocks run by then.
    """
    parts = warps * blocks
    scratch = shared(type(v), parts)
    lane, warp = cute.arch.lane_idx(), cute.arch.thread_idx()[0] // 32
    partial = group_reduce(v, op)
    cluster_wait()
    if lane < blocks:
        map_shared_rank(scratch + (Int32(cluster_rank()) * warps + warp), lane).store(partial)
    cluster_arrive()
    cluster_wait()
    whole = identity(type(v), op)
    for i in cutlass.range_constexpr(-(-parts // 32)):
        other = type(v)(scratch[cutlass.min(lane + 32 * i, parts - 1)])
        whole = combine(whole, select(lane + 32 * i < parts, other, identity(type(v), op)), op)
    return group_reduce(whole, op)
