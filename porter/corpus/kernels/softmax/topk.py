"""The k largest values of each row with their indices, largest first, equal values in the order of their indices."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, written
from porter.corpus.runtime.specialisation import Specialisation

LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class TopK(Specialisation):
    """Static choices of a top-k.

    rows: how rows are spread; k threads or more a row, and whole warps.  softmax: the values are the softmax of the k.
    """

    dtype: str
    out: str
    index: str
    rows: Rows
    k: int
    softmax: bool = False
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        values, indices = (rows_of(t, "T", self.k, scalar(t).bytes) for t in (self.out, self.index))
        return written(values), written(indices), x

    @cute.jit
    def __call__(
        self,
        mV: cute.Tensor,  # (T, k)
        mI: cute.Tensor,  # (T, k)
        mX: cute.Tensor,  # (T, N)
        blocks: Int32,
        stream,
    ):
        self.kernel(mV, mI, mX).launch(grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl)

    @cute.kernel
    def kernel(self, mV: cute.Tensor, mI: cute.Tensor, mX: cute.Tensor):
        rows = self.rows
        row, lane, there = rows.thread_row(mX.shape[0])
        codes = cute.make_rmem_tensor(rows.accesses * rows.vec, Uint32)
        warps = (lib.shared(Uint32, 2 * rows.warps), lib.shared(Uint32, 2 * rows.warps))
        scratch = rows.scratch()
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        self.load(codes, mX[cutlass.min(row, mX.shape[0] - 1), None].iterator, lane, there)

        code, index = self.largest(codes, lane)
        first = mine = Uint32(lib.NOTHING)
        place = Uint32(0)
        for r in cutlass.range(self.k):
            top, where = lib.warp_argmax(code, index)
            if cutlass.const_expr(rows.warps > 1):
                top, where = lib.block_argmax(top, where, *warps, rows.warps, r % 2)
            first = top if r == 0 else first
            if lane == r:
                mine, place = top, where
            if index == where:  # this thread's: the next largest takes its place
                taken = where - Uint32(lane * rows.vec)
                for e in cutlass.range_constexpr(rows.accesses * rows.vec):
                    codes[e] = lib.select(taken == Uint32(self.offset(e)), Uint32(lib.NOTHING), codes[e])
                code, index = self.largest(codes, lane)

        value = lib.from_ordered(mine)
        inside = lane < self.k
        if cutlass.const_expr(self.softmax):
            value = lib.exp2_approx_ftz((value - lib.from_ordered(first)) * Float32(LOG2E))
            value = lib.select(inside, value, Float32(0.0))
            value = lib.div_rn(value, rows.reduce(value, scratch))
        if inside if cutlass.const_expr(there is True) else inside & there:
            mV[row, lane] = cutlass_type(self.out)(value)
            mI[row, lane] = cutlass_type(self.index)(place)

    def load(self, codes, gX, lane, there):
        """The codes of a thread's elements; NOTHING beyond the row."""
        rows, T = self.rows, cutlass_type(self.dtype)
        accesses = []
        for i in range(rows.accesses):
            inside = rows.access_predicate(i, lane, there)
            accesses.append(lib.load_words(gX + rows.access_start(i, lane), rows.vec * T.width // 8, inside=inside))
        for i, words in enumerate(accesses):
            inside = rows.access_predicate(i, lane, there)
            for j, x in enumerate(lib.unpack(words, rows.vec, T)):
                code = lib.ordered(x)
                kept = code if inside is True else lib.select(inside, code, Uint32(lib.NOTHING))
                codes[i * rows.vec + j] = kept

    def offset(self, e):
        """Index in the row of a thread's element e, less that of its first: a Python int."""
        return e // self.rows.vec * self.rows.threads * self.rows.vec + e % self.rows.vec

    def largest(self, codes, lane):
        """(code, index) of the first largest element of a thread, Uint32."""
        code, offset = Uint32(codes[0]), Uint32(0)
        for e in range(1, self.rows.accesses * self.rows.vec):
            larger = Uint32(codes[e]) > code
            code = lib.select(larger, Uint32(codes[e]), code)
            offset = lib.select(larger, Uint32(self.offset(e)), offset)
        return code, offset + Uint32(lane * self.rows.vec)
