"""Rows moved by an index: a row to each of its destinations, or each destination from its source."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class GatherRows(ChunkedRows, Specialisation):
    """Static choices. Destination i gets the source's row `index[i]`; it stays as it is if there is no such row.

    vec: elements of a thread and row.  rows: destinations that a thread works on at once.
    """

    dtype: str
    index: str
    d: int
    vec: int
    block: int  # threads
    rows: int = 1
    pdl: bool = True

    @property
    def nbytes(self) -> int:
        return self.vec * scalar(self.dtype).bytes

    def arguments(self):
        out, x = (rows_of(self.dtype, rows, self.d, self.nbytes) for rows in ("T", "R"))
        return written(out), x, vector(self.index, "T", scalar(self.index).bytes)

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mX: cute.Tensor,  # (R, d)
        mI: cute.Tensor,  # (T,)
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mI).launch(grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor, mI: cute.Tensor):
        token, col = lib.rows_and_column(self)
        column = cutlass.min(col, self.d - self.vec)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        loaded = []
        for r in cutlass.range_constexpr(self.rows):
            source = Int64(cutlass_type(self.index)(mI[lib.clamped_row(token, r, mO)]))
            held = (source >= 0) & (source < mX.shape[0])
            ptr = mX[lib.select(held, source, Int64(0)), None].iterator + column
            loaded.append((lib.load_words(ptr, self.nbytes, inside=held), held))
        for r in cutlass.range_constexpr(self.rows):
            words, held = loaded[r]
            if held & (col < self.d) & (token + r < mO.shape[0]):
                lib.store_words(mO[token + r, None].iterator + col, words, self.nbytes)
