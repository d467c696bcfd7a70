"""Stable counting sort of routed entries by expert, over the blocks of one cluster.

Entry i is choice i % k of token i // k. Every warp counts and later places a run of consecutive entries, 32 at a time,
in counters of its own, so that no atomic operation is needed and equal experts keep the order of their entries.
"""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Uint32

from porter.corpus.lib.blocks import block_exclusive_sum, block_scan_total
from porter.corpus.lib.cluster import cluster_arrive, cluster_rank, cluster_sync, cluster_wait, map_shared_rank
from porter.corpus.lib.integers import popc, select
from porter.corpus.lib.memory import shared
from porter.corpus.lib.packed import CACHED, load_words
from porter.corpus.lib.warp import elect_mask_lt, match_any, sync_warp

SHARED_BYTES = 47 << 10  # of a block, static


@dataclass(frozen=True)
class ExpertSort:
    """Static choices of a sort.

    bins: how many experts have entries here.  experts: ids are below this.  warps: of a block.  cluster: blocks.
    unroll: entries of a lane that are read at once.  multiple: each expert's places are padded to such a multiple.
    tail: entries without an expert here go to a last bin, number bins - 1; otherwise they have no place.  start: the
    expert of bin 0, where no map says which expert is here.
    """

    bins: int
    experts: int
    warps: int
    cluster: int = 1
    unroll: int = 4
    multiple: int = 1
    tail: bool = False
    start: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    def memory(self):
        """Shared memory: counters of each warp, sizes of bins in this block and in all, starts, first places here."""
        return (
            shared(Int32, self.warps * self.bins), shared(Int32, self.bins), shared(Int32, self.bins),
            shared(Int32, self.bins + 1), shared(Int32, self.bins), shared(Int32, 36),
        )  # fmt: skip

    def rank(self):
        """This block's rank in the cluster, Int32."""
        return Int32(0) if self.cluster == 1 else Int32(cluster_rank())

    def thread(self):
        """This thread's index among those of all blocks, Int32."""
        return self.rank() * self.threads + cute.arch.thread_idx()[0]

    def run(self, total):
        """(first entry, entry past the last) of this warp, Int32, of `total` entries."""
        warps = self.warps * self.cluster
        length = (total + (32 * warps - 1)) // (32 * warps) * 32
        first = (self.rank() * self.warps + cute.arch.thread_idx()[0] // 32) * length
        return first, cutlass.min(first + length, total)

    def read(self, mI, mMap, base, last):
        """[(entry, whether there is one, bin or -1)] of a lane's next `unroll` entries from `base` on."""
        wide = mI.element_type.width == 64
        lane, found = cute.arch.lane_idx(), []
        for u in range(self.unroll):
            entry = base + (u * 32 + lane)
            inside = entry < last
            words = load_words(mI.iterator + entry, 8 if wide else 4, CACHED, inside=inside, fill=0xFFFFFFFF)
            found.append((entry, inside, words))
        return [(entry, inside, self.bin_of(words, mMap, inside)) for entry, inside, words in found]

    def bin_of(self, words, mMap, inside):
        """The bin of an expert id, -1 for none. `words` of what is not `inside` are ones."""
        known = words[0] < Uint32(self.experts)
        if len(words) > 1:
            known = known & (words[1] == Uint32(0))
        found = select(known, Int32(words[0]), Int32(-1))
        places = self.bins - 1 if self.tail else self.bins
        if mMap is not None:
            local = Int32(mMap[select(known, found, Int32(0))])
            found = select(known & (local >= 0) & (local < places), local, Int32(-1))
        elif self.start or places < self.experts:
            local = found - self.start
            found = select(known & (local >= 0) & (local < places), local, Int32(-1))
        if self.tail:
            found = select((found < 0) & inside, Int32(self.bins - 1), found)
        return found

    @cute.jit
    def take(self, counts: cute.Pointer, bin_: Int32):
        """How many earlier entries this warp has had in a lane's bin; then these are counted. All lanes call it."""
        mine = counts + (cute.arch.thread_idx()[0] // 32) * self.bins
        peers = match_any(bin_)
        lower = popc(peers & elect_mask_lt())
        before = Int32(mine[select(bin_ >= 0, bin_, Int32(0))])
        sync_warp()
        if (bin_ >= 0) & (lower == 0):
            mine[bin_] = before + popc(peers)
        sync_warp()
        return before + lower

    @cute.jit
    def count(self, memory, mI: cute.Tensor, mMap, total: Int32):
        """Count this block's entries; `base_places` comes next."""
        counts = memory[0]
        for i in range(cute.arch.thread_idx()[0], self.warps * self.bins, self.threads):
            counts[i] = Int32(0)
        cute.arch.sync_threads()
        first, last = self.run(total)
        for base in range(first, last, 32 * self.unroll):
            for _, _, bin_ in self.read(mI, mMap, base, last):
                self.take(counts, bin_)
        cute.arch.sync_threads()

    @cute.jit
    def base_places(self, memory):
        """From the counts: sizes and starts of all bins, the first place of this block's entries in each, and in the
        counters the entries of lower warps. Returns the sum of padded sizes.

        With several blocks a barrier of the cluster, and the first half of another: `leave` comes last.
        """
        counts, mine, sizes, starts, places, scratch = memory
        tid = cute.arch.thread_idx()[0]
        for e in range(tid, self.bins, self.threads):
            loaded = [Int32(counts[w * self.bins + e]) for w in range(self.warps)]
            running = Int32(0)
            for w in cutlass.range_constexpr(self.warps):
                counts[w * self.bins + e] = running
                running = running + loaded[w]
            mine[e] = running
        if cutlass.const_expr(self.cluster > 1):
            cluster_sync()
        else:
            cute.arch.sync_threads()
        each = -(-self.bins // self.threads)
        padded = cute.make_rmem_tensor(each, Int32)
        before = cute.make_rmem_tensor(each, Int32)
        total = Int32(0)
        for j in cutlass.range_constexpr(each):
            e = tid * each + j
            padded[j], before[j] = Int32(0), Int32(0)
            if e < self.bins:
                size, lower = self.sum_blocks(mine, e)
                sizes[e] = size
                before[j] = lower
                padded[j] = (size + (self.multiple - 1)) // self.multiple * self.multiple
            total = total + padded[j]
        if cutlass.const_expr(self.cluster > 1):
            cluster_arrive()
        start = block_exclusive_sum(total, scratch)
        for j in cutlass.range_constexpr(each):
            e = tid * each + j
            if e < self.bins:
                starts[e] = start
                places[e] = start + before[j]
            start = start + padded[j]
        total = Int32(block_scan_total(scratch))
        if tid == 0:
            starts[self.bins] = total
        cute.arch.sync_threads()
        return total

    def sum_blocks(self, mine, e):
        """(entries of bin e in all blocks, in those of lower rank)."""
        if self.cluster == 1:
            return Int32(mine[e]), Int32(0)
        rank, size, lower = self.rank(), Int32(0), Int32(0)
        for r in range(self.cluster):
            there = Int32(map_shared_rank(mine + e, r).load())
            size = size + there
            lower = lower + select(rank > r, there, Int32(0))
        return size, lower

    def leave(self):
        """Before the end: other blocks may still read this one's shared memory."""
        if self.cluster > 1:
            cluster_wait()


class SortsEntries:
    """Base of kernels that sort entries in every block: their blocks and clusters are those of the sort."""

    sort: ExpertSort

    @property
    def threads(self) -> int:
        return self.sort.threads

    @property
    def cluster(self) -> int:
        return self.sort.cluster


@cute.jit
def bin_at(starts: cute.Pointer, bins: cutlass.Constexpr, place: Int32):
    """The bin that a place below the last start belongs to: the last that starts at or before it and is not empty."""
    low, high = Int32(0), Int32(bins)
    for _ in cutlass.range_constexpr(bins.bit_length()):
        middle = (low + high) // 2
        if low < high:
            if Int32(starts[middle + 1]) > place:
                high = middle
            else:
                low = middle + 1
    return low


def sort_warps(bins: int, wanted: int, others: int = 0) -> int:
    """The most warps, a power of two up to `wanted`, whose counters fit into a block's shared memory beside `others`
    bytes; 0 if none do."""
    warps = wanted
    while warps and ((warps + 4) * bins + 64) * 4 > SHARED_BYTES - others:
        warps //= 2
    return warps
