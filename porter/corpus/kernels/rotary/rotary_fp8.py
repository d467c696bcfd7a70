"""Rotary embedding whose result is e4m3: heads turned, scaled and rounded once, the rest of them scaled and rounded."""

from dataclasses import dataclass, replace

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.kernels.rotary.rotary import Rotary
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, written


@dataclass(frozen=True)
class RotaryFp8(Rotary):
    """Static choices beside those of Rotary.

    qo_stride, ko_stride: elements from head to head of the results.  rest: elements of an access outside the rotated
    part.  out_align: bytes that an access to the results may be wide.
    """

    qo_stride: int = 0
    ko_stride: int = 0
    rest: int = 1
    out_align: int = 1

    def arguments(self):
        positions, query, key, table = super().arguments()
        query, key = (t and replace(t, written=False) for t in (query, key))

        def codes(count, stride):
            return written(self.heads_of("e4m3", count, stride, self.out_align))

        key_codes = codes(self.k_heads, self.ko_stride) if self.k_heads else None
        results = codes(self.q_heads, self.qo_stride), key_codes
        return *results, positions, query, key, table, Scalar("f32"), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQO: cute.Tensor,  # (T, q heads, head size) e4m3
        mKO: cute.Tensor | None,  # (T, k heads, head size) e4m3
        mPos: cute.Tensor,  # (T,) int64
        mQ: cute.Tensor,  # (T, q heads, head size)
        mK: cute.Tensor | None,  # (T, k heads, head size)
        mCS: cute.Tensor,  # (positions, rot): cosines, then sines
        q_scale: Float32,  # factors of the results
        k_scale: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQO, mKO, mPos, mQ, mK, mCS, q_scale, k_scale).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mQO: cute.Tensor,
        mKO: cute.Tensor | None,
        mPos: cute.Tensor,
        mQ: cute.Tensor,
        mK: cute.Tensor | None,
        mCS: cute.Tensor,
        q_scale: Float32,
        k_scale: Float32,
    ):
        self.work(mQO, mKO, mPos, mQ, mK, mCS, (mQO, mKO, mQ, mK), q_scale, k_scale)

    @cute.jit
    def work(self, mQO, mKO, mPos, mQ, mK, mCS, others: tuple, q_scale, k_scale):
        """The whole kernel. `others`: results and inputs, of q and k, that hold the elements which do not turn."""
        token, head, first = self.thread_coord()
        there = (token < mQ.shape[0]) & (head < self.heads)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):  # noqa: SIM102 (only the second is dynamic)
            if there & lib.in_first_blocks(self.prefetch_blocks):
                self.prefetch_input(mPos, mQ, mK, mCS, token, head, first)
        lib.pdl_wait()
        if there:
            position = mPos[token]
            steps = range(0, self.heads, self.lanes * self.splits)
            heads = [self.clamped_head(head, h) for h in steps]
            loaded = [self.load(self.spot(mQ, mK, token, h, self.element(first))) for h in heads]
            gC = mCS[position, None].iterator + first
            cos, sin = self.table(gC), self.table(gC + self.rot // 2)
            for i in cutlass.range_constexpr(len(heads)):
                if head + steps[i] < self.heads:
                    scale = lib.select(heads[i] < self.q_heads, q_scale, k_scale)
                    spot = self.out_spot(mQO, mKO, token, heads[i], self.element(first))
                    self.quantise(spot, loaded[i], cos, sin, scale)
                    self.scale_rest(others, token, heads[i], first // self.pairs, scale)

    def quantise(self, spot, halves, cos, sin, scale):
        """Turn a thread's pairs and write their codes."""
        for half, values in enumerate(self.turn(halves, cos, sin)):
            codes = lib.pack_e4m3([v * scale for v in values], clamp=False)
            lib.store_words(spot + half * (self.rot // 2), codes, len(values), self.out_align)

    def out_spot(self, mQO, mKO, token, head, element):
        """As `spot`, in the results."""
        like = replace(self, q_stride=self.qo_stride, k_stride=self.ko_stride)
        return like.spot(mQO, mKO, token, head, element)

    def scale_rest(self, others, token, head, slot, scale):
        """The elements of a head before and behind the rotated part, spread over the threads of the head."""
        T, n = cutlass_type(self.dtype), self.rest
        count = (self.head_size - self.rot) // n
        for i in range(0, count, self.slots):
            element = (slot + i) * n
            element = lib.select(element < self.offset, element, element + self.rot)
            inside = True if i + self.slots <= count else slot + i < count
            self.scale_some(*others, token, head, element, inside, scale, T, n)

    @cute.jit
    def scale_some(
        self, mQO, mKO, mQ, mK, token, head, element, inside, scale, T: cutlass.Constexpr, n: cutlass.Constexpr
    ):
        if inside:
            size = n * scalar(self.dtype).bytes
            words = lib.load_words(self.spot(mQ, mK, token, head, element), size, align=self.align)
            codes = lib.pack_e4m3([v * scale for v in lib.unpack(words, n, T)], clamp=False)
            lib.store_words(self.out_spot(mQO, mKO, token, head, element), codes, n, self.out_align)
