"""What a grouped GEMM over experts is told: offsets, problem sizes, and the order of its rows."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib
from porter.corpus.lib.moe.sorting import ExpertSort, SortsEntries
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, vector, written
from porter.corpus.runtime.specialisation import Specialisation

SCALE_ROWS = 128  # rows of scales that a tile of block scales holds


@dataclass(frozen=True)
class GemmOffsets(SortsEntries, Specialisation):
    """Static choices. swapped: problems are those of the transposed product.  scales: whether offsets into block scales
    are wanted.  gated: the first GEMM gives two halves."""

    index: str
    sort: ExpertSort
    k: int  # choices of a token
    scales: bool = False
    gated: bool = True
    swapped: bool = False
    pdl: bool = True

    def arguments(self):
        bins = self.sort.bins
        offsets, entries = written(vector("i32", bins + 1, 4)), written(vector("i32", "M", 4))
        sizes = written(Tensor("i32", (bins, 3), (3, 1), 4))
        return (
            offsets, sizes, sizes, entries, entries, offsets if self.scales else None,
            vector(self.index, "M", scalar(self.index).bytes), Scalar("i32"), Scalar("i32"),
        )  # fmt: skip

    @cute.jit
    def __call__(
        self,
        mF: cute.Tensor,  # (E + 1,) int32
        mP1: cute.Tensor,  # (E, 3) int32
        mP2: cute.Tensor,  # (E, 3) int32
        mIn: cute.Tensor,  # (M,) int32
        mOut: cute.Tensor,  # (M,) int32
        mB: cute.Tensor | None,  # (E + 1,) int32
        mI: cute.Tensor,  # (M,)
        n: Int32,
        depth: Int32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mF, mP1, mP2, mIn, mOut, mB, mI, n, depth).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), cluster=(self.cluster, 1, 1), stream=stream,
            use_pdl=self.pdl,
        )  # fmt: skip

    @cute.kernel
    def kernel(
        self, mF: cute.Tensor, mP1: cute.Tensor, mP2: cute.Tensor, mIn: cute.Tensor, mOut: cute.Tensor,
        mB: cute.Tensor | None, mI: cute.Tensor, n: Int32, depth: Int32,
    ):  # fmt: skip
        sort, total = self.sort, mI.shape[0]
        memory = sort.memory()
        counts, _, sizes, starts, places, scratch = memory
        every = sort.threads * sort.cluster
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        sort.count(memory, mI, None, total)
        known = sort.base_places(memory)
        for i in range(sort.thread() + known, total, every):
            mIn[i] = Int32(0)  # rows that nothing computes: entries without an expert
        for e in range(sort.thread(), sort.bins, every):
            size = Int32(sizes[e])
            first = 2 * n if cutlass.const_expr(self.gated) else n
            self.problem(mP1, e, size, first, depth)
            self.problem(mP2, e, size, depth, n)
            mF[e] = Int32(starts[e])
        if sort.thread() == 0:
            mF[sort.bins] = known
        if cutlass.const_expr(self.scales):
            self.scale_offsets(mB, sizes, scratch)
        first_entry, last = sort.run(total)
        for base in range(first_entry, last, 32 * sort.unroll):
            for entry, inside, bin_ in sort.read(mI, None, base, last):
                rank = sort.take(counts, bin_)
                place = Int32(0)
                if bin_ >= 0:
                    place = Int32(places[bin_]) + rank
                    mIn[place] = entry // self.k
                if inside:
                    mOut[entry] = place
        sort.leave()

    def problem(self, mP, e, size, columns, depth):
        mP[e, 0], mP[e, 1] = (columns, size) if self.swapped else (size, columns)
        mP[e, 2] = depth

    @cute.jit
    def scale_offsets(self, mB: cute.Tensor, sizes: cute.Pointer, scratch: cute.Pointer):
        """Sums of the experts' rows, each padded to a tile of block scales."""
        sort, tid = self.sort, cute.arch.thread_idx()[0]
        each = -(-sort.bins // sort.threads)
        padded = cute.make_rmem_tensor(each, Int32)
        total = Int32(0)
        for j in cutlass.range_constexpr(each):
            e = tid * each + j
            padded[j] = Int32(0)
            if e < sort.bins:
                padded[j] = (Int32(sizes[e]) + (SCALE_ROWS - 1)) // SCALE_ROWS * SCALE_ROWS
            total = total + padded[j]
        start = lib.block_exclusive_sum(total, scratch)
        if sort.rank() == 0:
            for j in cutlass.range_constexpr(each):
                e = tid * each + j
                if e < sort.bins:
                    mB[e] = start
                start = start + padded[j]
            if tid == 0:
                mB[sort.bins] = Int32(lib.block_scan_total(scratch))
