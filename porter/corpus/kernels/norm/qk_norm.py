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
from porter.corpus.runtime.signature import Scalar, rows_of, vector
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class QkNorm(Specialisation):
    """Static choices. A row is one head of one token; the q heads of a token come first, then its k heads.

    rows: a row takes part of a warp (half a warp at D = 128 in 16-bit types), so there is no barrier.
    batch: rows that a thread has in flight; its weights are loaded once.
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

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        align = self.rows.vec * scalar(self.dtype).bytes
        q = rows_of(self.dtype, "T", self.rows.length, align, self.q_heads)
        k = rows_of(self.dtype, "T", self.rows.length, align, self.k_heads)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return q, k, w, w, Scalar("f32")

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
        heads = self.q_heads + self.k_heads
        row_in_block, lane = rows.place()
        first = cute.arch.block_idx()[0] * (self.batch * rows.rows) + row_in_block
        lib.pdl_launch_dependents()
        lib.pdl_wait()

        loaded = []
        for i in cutlass.range_constexpr(self.batch):
            row = Uint32(first + i * rows.rows)
            token, head = Int32(row // heads), Int32(row % heads)
            inside = token < mQ.shape[0]
            gX = self.head(mQ, mK, token, head)
            loaded.append((gX, rows.load(gX, lane, inside), inside, head < self.q_heads))
        tXrWq, tXrWk = rows.load(mWq, lane), rows.load(mWk, lane)
        tXrW = cute.make_rmem_tensor_like(tXrWq)
        for i in cutlass.range_constexpr(self.batch):
            gX, tXrX, inside, is_q = loaded[i]
            x = tXrX.load().to(Float32)
            y = x * inverse_rms(rows, x, eps, None)
            tXrW.store(tXrWq.load())
            if not is_q:
                tXrW.store(tXrWk.load())
            tXrX.store(weighted(y, tXrW, self.weight_bias, self.rounding, T))
            rows.store(gX, lane, tXrX, inside)

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
