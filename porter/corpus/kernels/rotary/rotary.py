"""Rotary position embedding of query and key heads, in place, from a table of cosines and sines."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib
from porter.corpus.kernels.rotary.heads import TurningHeads
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, vector, written


@dataclass(frozen=True)
class Rotary(TurningHeads):
    """Every head of q and k turned by the angles of its token's position. Static choices: those of TurningHeads."""

    def arguments(self):
        size = scalar(self.dtype).bytes
        align = min(self.align, size * self.pairs * (1 if self.neox else 2))

        def heads(count, stride):
            return self.heads_of(self.dtype, count, stride, align)

        key = written(heads(self.k_heads, self.k_stride)) if self.k_heads else None
        table = Tensor(self.cache, ("P", self.rot), (self.rot, 1), self.table_align)
        return vector("i64", "T", 8), written(heads(self.q_heads, self.q_stride)), key, table

    @cute.jit
    def __call__(
        self,
        mPos: cute.Tensor,  # (T,) int64
        mQ: cute.Tensor,  # (T, q heads, head size)
        mK: cute.Tensor | None,  # (T, k heads, head size)
        mCS: cute.Tensor,  # (positions, rot): cosines, then sines
        blocks: Int32,
        stream,
    ):
        self.kernel(mPos, mQ, mK, mCS).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mPos: cute.Tensor, mQ: cute.Tensor, mK: cute.Tensor | None, mCS: cute.Tensor):
        token, head, first = self.thread_coord()
        step = self.lanes * self.splits
        there = (token < mQ.shape[0]) & (head < self.heads)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):  # noqa: SIM102 (only the second is dynamic)
            if there & lib.in_first_blocks(self.prefetch_blocks):
                self.prefetch_input(mPos, mQ, mK, mCS, token, head, first)
        lib.pdl_wait()
        if there:
            position = mPos[token]
            spots, loaded = [], []
            for h in cutlass.range_constexpr(0, self.heads, step):
                spots.append(self.spot(mQ, mK, token, self.clamped_head(head, h), self.element(first)))
                loaded.append(self.load(spots[-1]))
            gC = mCS[position, None].iterator + first
            cos, sin = self.table(gC), self.table(gC + self.rot // 2)
            for i in cutlass.range_constexpr(len(spots)):
                rotated = self.rotate(loaded[i], cos, sin)
                if cutlass.const_expr((i + 1) * step <= self.heads) or head + i * step < self.heads:
                    self.store(spots[i], rotated)

    def rotate(self, halves, cos, sin):
        """A thread's pairs turned, rounded once, as vectors like those that were loaded."""
        T = cutlass_type(self.dtype)
        return tuple(lib.pack(values, T) for values in self.turn(halves, cos, sin))

    def turn(self, halves, cos, sin):
        """(x c - y s, y c + x s) of every pair in float32, the second product fused; lists in the order of memory."""
        T, n = cutlass_type(self.dtype), self.pairs
        if self.neox:
            x, y = (lib.unpack(words, n, T) for words in halves)
        else:
            both = lib.unpack(halves[0], 2 * n, T)
            x, y = both[::2], both[1::2]
        sin = [-s for s in sin] if self.inverse else sin
        a = [lib.fma(x[i], cos[i], -lib.mul_rn(y[i], sin[i])) for i in range(n)]
        b = [lib.fma(y[i], cos[i], lib.mul_rn(x[i], sin[i])) for i in range(n)]
        return (a, b) if self.neox else ([v for pair in zip(a, b, strict=True) for v in pair],)
