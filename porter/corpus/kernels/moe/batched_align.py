"""Tokens that lie batch by batch, an expert a batch: their order with each batch padded to whole blocks."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib
from porter.corpus.lib.moe.sorting import bin_at
from porter.corpus.runtime.signature import Scalar, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class BatchedAlign(Specialisation):
    """Static choices. Every block finds all batches' starts itself and fills its part of the results."""

    batches: int
    multiple: int
    threads_of_block: int
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.threads_of_block

    def arguments(self):
        counts = vector("i32", self.batches, 4)
        return *(written(vector("i32", n, 4)) for n in ("L", "N", 1)), counts, Scalar("i32")

    @cute.jit
    def __call__(
        self,
        mP: cute.Tensor,  # (L,) int32
        mE: cute.Tensor,  # (N,) int32
        mN: cute.Tensor,  # (1,) int32
        mC: cute.Tensor,  # (B,) int32
        most: Int32,  # tokens of a batch
        blocks: Int32,
        stream,
    ):
        self.kernel(mP, mE, mN, mC, most).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mP: cute.Tensor, mE: cute.Tensor, mN: cute.Tensor, mC: cute.Tensor, most: Int32):
        tid, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
        starts, sizes, scratch = (
            lib.shared(Int32, self.batches + 1),
            lib.shared(Int32, self.batches),
            lib.shared(Int32, 36),
        )
        each = -(-self.batches // self.threads)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        padded = cute.make_rmem_tensor(each, Int32)
        total = Int32(0)
        for j in cutlass.range_constexpr(each):
            batch = tid * each + j
            padded[j] = Int32(0)
            if batch < self.batches:
                size = cutlass.max(cutlass.min(mC[batch], most), Int32(0))
                sizes[batch] = size
                padded[j] = (size + (self.multiple - 1)) // self.multiple * self.multiple
            total = total + padded[j]
        start = lib.block_exclusive_sum(total, scratch)
        for j in cutlass.range_constexpr(each):
            batch = tid * each + j
            if batch < self.batches:
                starts[batch] = start
            start = start + padded[j]
        total = Int32(lib.block_scan_total(scratch))
        if tid == 0:
            starts[self.batches] = total
            if block == 0:
                mN[0] = total
        cute.arch.sync_threads()
        every = cute.arch.grid_dim()[0] * self.threads
        sentinel = most * self.batches
        for i in range(block * self.threads + tid, mP.shape[0], every):
            value = sentinel
            if i < total:
                batch = bin_at(starts, self.batches, i)
                offset = i - Int32(starts[batch])
                if offset < Int32(sizes[batch]):
                    value = batch * most + offset
            mP[i] = value
        for i in range(block * self.threads + tid, mE.shape[0], every):
            first = i * self.multiple
            mE[i] = bin_at(starts, self.batches, first) if first < total else Int32(-1)
