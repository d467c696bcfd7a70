"""e2m1 or e4m3 codes with a scale of one byte for every 16 or 32 of a row, back to numbers."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.lib.quantisation.block_scales import BlockScales
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class BlockDequantised(ChunkedRows, Specialisation):
    """Static choices. d: numbers of a row; those of codes, which `scales` knows, may be longer.  vec: numbers of a
    thread and row.  align: bytes of an access to codes at most, out_align to numbers.  prefetch, prefetch_blocks,
    streaming: as for Gated.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int
    scales: BlockScales
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    def arguments(self):
        scales, size = self.scales, scalar(self.dtype).bytes
        held = "u8" if scales.codes == "e2m1" else "e4m3"
        code_bytes = scales.code_bytes(self.vec)
        codes = rows_of(held, "T", scales.code_bytes(scales.length), min(self.align, code_bytes))
        given = vector("f32", 1, 4) if scales.scales == "e4m3" else None
        out = rows_of(self.dtype, "T", self.d, min(self.out_align, self.vec * size))
        return written(out), codes, Tensor(*scales.argument()), given

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mQ: cute.Tensor,  # (T, bytes of codes of a row)
        mS: cute.Tensor,  # bytes of scales
        mG: cute.Tensor | None,  # (1,): the tensor's scale
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mQ, mS, mG).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mQ: cute.Tensor, mS: cute.Tensor, mG: cute.Tensor | None):
        scales, T = self.scales, cutlass_type(self.dtype)
        nbytes, count = scales.code_bytes(self.vec), max(1, self.vec // scales.group)
        first, col = lib.rows_and_column(self)
        column = cutlass.min(col, self.d - self.vec)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(nbytes) & (col < self.d) & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                lib.prefetch_line(mQ[lib.clamped_row(first, r, mQ), None].iterator + scales.code_bytes(column), wanted)
        lib.pdl_wait()

        tXrQ, tXrS, kind = [], [], lib.STREAMING if self.streaming else lib.CACHED
        for r in cutlass.range_constexpr(self.rows):
            row = lib.clamped_row(first, r, mQ)
            gQ = mQ[row, None].iterator + scales.code_bytes(column)
            tXrQ.append(lib.load_words(gQ, nbytes, kind, self.align))
            tXrS.append(scales.load(mS, row, column, count))
        given = None
        if cutlass.const_expr(mG is not None):
            (word,) = lib.load_words(mG.iterator, 4, lib.CACHED)  # type: ignore[union-attr]
            given = word.bitcast(Float32)
        for r in cutlass.range_constexpr(self.rows):
            row = first + r
            words = lib.pack(scales.decode(tXrQ[r], self.vec, tXrS[r], given), T)
            if (col < self.d) & (row < mQ.shape[0]):
                lib.store_words(mO[row, None].iterator + col, words, self.vec * T.width // 8, self.out_align)
