"""Thread block clusters: where a block is in its cluster, the cluster barrier, and the other blocks' shared memory."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64, Uint32

from porter.corpus.lib.inline import asm, pure
from porter.corpus.lib.memory import shared
from porter.corpus.lib.pointers import address, pointer


def cluster_rank():
    """Rank of this block in its cluster, Uint32 (`%cluster_ctarank`)."""
    return pure("mov.u32 $0, %cluster_ctarank;", Uint32)


def cluster_blocks():
    """Blocks of this cluster, Uint32 (`%cluster_nctarank`)."""
    return pure("mov.u32 $0, %cluster_nctarank;", Uint32)


def cluster_position(axis):
    """Index of this block in its cluster along "x", "y" or "z", Uint32 (`%cluster_ctaid`)."""
    return pure(f"mov.u32 $0, %cluster_ctaid.{axis};", Uint32)


def cluster_extent(axis):
    """Blocks of this cluster along "x", "y" or "z", Uint32 (`%cluster_nctaid`)."""
    return pure(f"mov.u32 $0, %cluster_nctaid.{axis};", Uint32)


def cluster_index():
    """Linear index of this cluster in the grid, x fastest, Uint32 (`%clusterid`)."""
    x, y, z = (pure(f"mov.u32 $0, %clusterid.{a};", Uint32) for a in "xyz")
    nx, ny = (pure(f"mov.u32 $0, %nclusterid.{a};", Uint32) for a in "xy")
    return x + nx * (y + ny * z)


def clusters():
    """Clusters of the grid, Uint32 (`%nclusterid`)."""
    x, y, z = (pure(f"mov.u32 $0, %nclusterid.{a};", Uint32) for a in "xyz")
    return x * y * z


def cluster_arrive():
    """First half of the cluster barrier, with release (`barrier.cluster.arrive.aligned`)."""
    asm("barrier.cluster.arrive.aligned;", (), [], volatile=True)


def cluster_wait():
    """Second half of the cluster barrier, with acquire (`barrier.cluster.wait.aligned`)."""
    asm("barrier.cluster.wait.aligned;", (), [], volatile=True)


def cluster_sync():
    """All threads of all blocks of the cluster meet (both halves of the cluster barrier)."""
    cluster_arrive()
    cluster_wait()


def map_shared_rank(ptr, rank):
    """The same place in the shared memory of the cluster's block `rank`, as a generic pointer (`mapa.u64`)."""
    mapped = pure("mapa.u64 $0, $1, $2;", Int64, address(ptr), Int32(rank))
    return pointer(ptr.dtype, mapped)


@cute.jit
def inbox(nbytes: cutlass.Constexpr):
    """An mbarrier of this block for `nbytes` that blocks of the cluster send it once with `send`, and the first half of
    the cluster barrier: a block calls `cluster_wait` before it sends, so that all inboxes are there.

    `mbarrier.init`, `fence.mbarrier_init`, `mbarrier.arrive.expect_tx` and `barrier.cluster.arrive.relaxed`, which,
    unlike the one with release, does not wait for memory (`MEMBAR`).
    """
    barrier = shared(Int64, 1)
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(barrier, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, nbytes)
    cute.arch.cluster_arrive_relaxed(aligned=True)
    return barrier


def send(ptr, pair, barrier, rank):
    """Store two Float32 at `ptr`, a place in shared memory, of the cluster's block `rank`, and count them in its
    `inbox` (`st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32`)."""
    places = [
        pure("mapa.shared::cluster.u32 $0, $1, $2;", Int32, Int32(p.toint()), Int32(rank)) for p in (ptr, barrier)
    ]
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [$0], {$1, $2}, [$3];"
    asm(store, (), [places[0], Float32(pair[0]), Float32(pair[1]), places[1]], volatile=True)


def received(barrier):
    """Wait until all that the `inbox` expects has been sent, and see it (`mbarrier.try_wait.parity` with
    `.acquire.cluster`)."""
    wait = (
        "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], 0; @!p bra AGAIN; }"
    )
    asm(wait, (), [Int32(barrier.toint())], volatile=True)
