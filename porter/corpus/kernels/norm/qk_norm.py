"""RMS norm of each head of q and k in one launch, in place; q and k may be parts of one packed tensor."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.norms import inverse_rms, weighted
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class QkNorm(Specialisation):
    """Static choices. A row is one head of one token; the q heads of a token come first, then its k heads.

    rows: a row takes part of a warp (half a warp at D = 128 in 16-bit types), so there is no barrier.
    batch: rows that a thread has in flight; its weights are loaded once.
    prefetch_distance: a block prefetches the rows of the block that many further on into L2 while it waits for its own.
    prefetch: rows are prefetched into L2 before the previous kernel has finished, by the first `prefetch_blocks` blocks
    (0: all).
    """

    dtype: str
    q_heads: int
    k_heads: int
    rows: Rows
    weight: str
    batch: int = 1
    weight_bias: float = 0.0
    rounding: str = "single"
    pdl: bool = True
    prefetch_distance: int = 0
    prefetch: bool = False
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        align = self.rows.vec * scalar(self.dtype).bytes
        q = rows_of(self.dtype, "T", self.rows.length, align, self.q_heads)
        k = rows_of(self.dtype, "T", self.rows.length, align, self.k_heads)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return written(q), written(k), w, w, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, q_heads, D), strides any but the last
        mK: cute.Tensor,  # (T, k_heads, D), strides any but the last
        mWq: cute.Tensor,  # (D,)
        mWk: cute.Tensor,  # (D,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mK, mWq, mWk, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mQ: cute.Tensor, mK: cute.Tensor, mWq: cute.Tensor, mWk: cute.Tensor, eps: Float32):
        rows, T = self.rows, cutlass_type(self.dtype)
        row_in_block, lane = rows.thread_coord()
        first = cute.arch.block_idx()[0] * (self.batch * rows.rows) + row_in_block
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            self.prefetch_input(mQ, mK, first, lib.in_first_blocks(self.prefetch_blocks))
        lib.pdl_wait()

        loaded = []
        for i in cutlass.range_constexpr(self.batch):
            gX, inside, is_q = self.head_row(mQ, mK, first + i * rows.rows)
            loaded.append((gX, rows.load(gX, lane, inside), inside, is_q))
        weights = self.weights(mWq, mWk, lane, [is_q for *_, is_q in loaded])
        if cutlass.const_expr(self.prefetch_distance > 0):
            self.prefetch_input(mQ, mK, first + self.prefetch_distance * self.batch * rows.rows, True)
        for i in cutlass.range_constexpr(self.batch):
            gX, tXrX, inside, _ = loaded[i]
            x = tXrX.load().to(Float32)
            y = x * inverse_rms(rows, x, eps, None)
            tXrX.store(weighted(y, weights[i], self.weight_bias, self.rounding, T))
            rows.store(gX, lane, tXrX, inside)

    def prefetch_input(self, mQ, mK, first, wanted):
        """Prefetch what a thread whose first row is `first` will load, with its neighbours."""
        _, lane = self.rows.thread_coord()
        for i in range(self.batch):
            gX, inside, _ = self.head_row(mQ, mK, first + i * self.rows.rows)
            self.rows.prefetch_row(gX, lane, inside & wanted)

    def head_row(self, mQ, mK, row):
        """(row `row` as a (D,) tensor, whether there is such a row, whether it is a head of q)."""
        heads = self.q_heads + self.k_heads
        token, head = Int32(Uint32(row) // heads), Int32(Uint32(row) % heads)
        inside = token < mQ.shape[0]
        return self.head(mQ, mK, cutlass.min(token, mQ.shape[0] - 1), head), inside, head < self.q_heads

    @cute.jit
    def weights(self, mWq: cute.Tensor, mWk: cute.Tensor, lane: Int32, of_q: list):
        """The weight of each row that a thread has in flight: one load for one row, else both weights and a choice."""
        if cutlass.const_expr(len(of_q) == 1):
            address = lib.select(of_q[0], mWq.iterator.toint(), mWk.iterator.toint())
            align = self.rows.vec * mWq.element_type.width // 8
            pointer = cute.make_ptr(mWq.element_type, address, cute.AddressSpace.gmem, assumed_align=align)
            found = [self.rows.load(cute.make_tensor(pointer, mWq.layout), lane)]
        else:
            tXrWq, tXrWk = self.rows.load(mWq, lane), self.rows.load(mWk, lane)
            found = []
            for i in cutlass.range_constexpr(len(of_q)):
                tXrW = cute.make_rmem_tensor_like(tXrWq)
                tXrW.store(tXrWq.load())
                if not of_q[i]:
                    tXrW.store(tXrWk.load())
                found.append(tXrW)
        return found

    @cute.jit
    def head(self, mQ: cute.Tensor, mK: cute.Tensor, token: Int32, head: Int32):
        """Head `head` of a token as a (D,) tensor: of q, or of k behind the q heads."""
        address = mQ[token, head, None].iterator.toint()
        if head >= self.q_heads:
            address = mK[token, head - self.q_heads, None].iterator.toint()
        pointer = cute.make_ptr(
            mQ.element_type, address, cute.AddressSpace.gmem, assumed_align=self.rows.vec * mQ.element_type.width // 8
        )
        return cute.make_tensor(pointer, cute.make_layout(self.rows.length))
