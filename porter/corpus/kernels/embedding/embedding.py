"""Embedding: rows of a table by index, zeros for indices of other parts of the vocabulary."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Embedding(ChunkedRows, Specialisation):
    """Static choices of an embedding.

    vec: elements of a thread and token.  rows: tokens that a thread works on at once.
    prefetch: rows are prefetched into L2 before the previous kernel has finished; an index that it still writes costs
    nothing but that.
    """

    dtype: str
    index: str
    d: int
    vec: int
    block: int  # threads
    rows: int = 1
    pdl: bool = True
    prefetch: bool = False
    prefetch_blocks: int = 0

    @property
    def nbytes(self) -> int:
        return self.vec * scalar(self.dtype).bytes

    def arguments(self):
        out, table = (rows_of(self.dtype, rows, self.d, self.nbytes) for rows in ("T", "V"))
        return written(out), vector(self.index, "T", scalar(self.index).bytes), table, Scalar("i64"), Scalar("i64")

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mI: cute.Tensor,  # (T,)
        mW: cute.Tensor,  # (V, d)
        first: Int64,  # index of the table's first row
        count: Int64,  # indices from there on that the table holds; -1: as many as it has rows
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mI, mW, first, count).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mI: cute.Tensor, mW: cute.Tensor, first: Int64, count: Int64):
        token, col = lib.rows_and_column(self)
        count = lib.select(count < 0, Int64(mW.shape[0]), count)
        inside = col < self.d
        column = cutlass.min(col, self.d - self.vec)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(self.nbytes) & inside & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                guess = lib.ld_relaxed(mI.iterator + lib.clamped_row(token, r, mO), cutlass_type(self.index))
                gW, held = self.row(mW, first, count, guess)
                lib.prefetch_line(gW + column, wanted & held)
        lib.pdl_wait()
        loaded = []
        for r in cutlass.range_constexpr(self.rows):
            index = cutlass_type(self.index)(mI[lib.clamped_row(token, r, mO)])
            gW, held = self.row(mW, first, count, index)
            loaded.append(lib.load_words(gW + column, self.nbytes, inside=held))
        for r in cutlass.range_constexpr(self.rows):
            if inside & (token + r < mO.shape[0]):
                lib.store_words(mO[token + r, None].iterator + col, loaded[r], self.nbytes)

    def row(self, mW, first, count, index):
        """(start of the table's row for an index, whether the table holds it)."""
        local = Int64(index) - first
        held = (local >= 0) & (local < count)
        return mW[lib.select(held, local, Int64(0)), None].iterator, held
