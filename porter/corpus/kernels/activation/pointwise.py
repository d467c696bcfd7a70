"""Activations of single values: out = act(x)."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, written
from porter.corpus.runtime.specialisation import Specialisation

ACTIVATIONS = {
    "relu_squared": lib.relu_squared,
    "gelu_new": lib.gelu_new,
    "gelu_fast": lib.gelu_fast,
    "gelu_quick": lib.gelu_quick,
}


@dataclass(frozen=True)
class Pointwise(ChunkedRows, Specialisation):
    """Static choices of an activation (a key of ACTIVATIONS).

    vec: elements of a thread and row, at most 32 bytes (16 before sm_100).  rows: rows that a thread works on at once.
    prefetch, prefetch_blocks, streaming: as for Gated.
    """

    act: str
    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int = 1
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def nbytes(self) -> int:
        return self.vec * scalar(self.dtype).bytes

    def arguments(self):
        x = rows_of(self.dtype, "T", self.d, self.nbytes)
        return written(x, 1), x

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mX: cute.Tensor,  # (T, d), may be mO
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX).launch(grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        T, act = cutlass_type(self.dtype), ACTIVATIONS[self.act]
        first, col = lib.rows_and_column(self)
        inside = [(col < self.d) & (first + r < mX.shape[0]) for r in range(self.rows)]
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(self.nbytes) & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                lib.prefetch_line(mX[first + r, None].iterator + col, wanted & inside[r])
        lib.pdl_wait()
        kind = lib.STREAMING if self.streaming else lib.CACHED
        tXrX = [
            lib.load_words(mX[first + r, None].iterator + col, self.nbytes, kind, self.nbytes, inside[r])
            for r in range(self.rows)
        ]
        for r in cutlass.range_constexpr(self.rows):
            y = lib.pack([act(x, T) for x in lib.unpack(tXrX[r], self.vec, T)], T)
            if inside[r]:
                lib.store_words(mO[first + r, None].iterator + col, y, self.nbytes, self.nbytes)
