"""RMS norm, with or without a residual, to codes with a scale of one byte for every 16 or 32: NVFP4, MXFP8."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.kernels.norm.quantised_rows import QuantisedRmsNorm
from porter.corpus.lib.quantisation.block_scales import BlockScales
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.signature import Tensor, rows_of


@dataclass(frozen=True)
class RmsNormBlockScaled(QuantisedRmsNorm):
    """Static choices. The norm is rounded to the dtype once, then quantised; an access has a part of a block, and the
    parts are in one warp. Rows that only fill up tiles of scales get zeros.

    residual: the input is added to it, and what is normalised is the stored sum.  prefetch, prefetch_blocks: as for
    RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str
    scales: BlockScales
    residual: bool = False
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    rounded_sum = True
    rounding = "single"

    def codes_argument(self):
        codes = "u8" if self.scales.codes == "e2m1" else "e4m3"
        return rows_of(codes, "T", self.scales.code_bytes(self.rows.length), self.scales.code_bytes(self.rows.vec))

    def scales_argument(self):
        return Tensor(*self.scales.argument())  # (T, H / group), or whole tiles

    @property
    def given(self) -> bool:
        return self.scales.scales == "e4m3"  # the tensor's scale

    @property
    def alignment(self) -> int:
        return min(16, super().alignment)

    def codes_row(self, mQ, row):
        return mQ  # sliced when the codes are there

    def covers(self, row, inside, total):
        return inside if self.scales.layout == "linear" else row < total

    @cute.jit
    def quantise(self, norm, mQ, mX, mS, mGiven, row, lane, inside, scratch):
        rows, scales, T = self.rows, self.scales, cutlass_type(self.dtype)
        given = None
        if cutlass.const_expr(mGiven is not None):
            (word,) = lib.load_words(mGiven.iterator, 4, lib.CACHED)
            given = word.bitcast(Float32)
        gQ, held = mQ[row, None], row < mS.shape[0]
        for i, access in enumerate(rows.split(norm)):
            codes, code = scales.encode(lib.round_each(access, T), given)
            code = code if cutlass.const_expr(inside is True) else lib.select(inside, code, Uint32(0))
            at = rows.access_start(i, lane)
            if (at % scales.group == 0) & (at < rows.length) & held:
                scales.store(mS, row, at, code, 1)
            if (at < rows.length) & (row < mX.shape[0]):
                lib.store_words(gQ.iterator + scales.code_bytes(at), codes, scales.code_bytes(rows.vec), 16)
        self.fill(mS, row, lane)

    @cute.jit
    def fill(self, mS: cute.Tensor, row: Int32, lane: Int32):
        """Zeros for the columns that fill up the last tile of a row."""
        blocks = self.rows.length // self.scales.group
        for i in cutlass.range_constexpr(self.scales.columns - blocks):
            if (lane == i % self.rows.threads) & (row < mS.shape[0]):
                self.scales.store(mS, row, (blocks + i) * self.scales.group, Uint32(0), 1)
