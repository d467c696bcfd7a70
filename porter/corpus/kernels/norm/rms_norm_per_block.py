"""RMS norm, with or without a residual, to e4m3 or int8 codes with a scale for every 64 or 128 elements of a row."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from porter.corpus import lib
from porter.corpus.kernels.norm.quantised_rows import QuantisedRmsNorm
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.signature import Tensor, rows_of


@dataclass(frozen=True)
class RmsNormPerBlock(QuantisedRmsNorm):
    """Static choices. codes: "e4m3" or "i8".  group: elements that share a scale; their threads are in one warp.

    As RmsNormPerToken, a scale for each group, and codes of both types are norm * (1 / scale).
    transposed: the scales of one group, not of one row, are neighbours in memory.  prefetch, prefetch_blocks: as for
    RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str
    group: int
    codes: str = "e4m3"
    transposed: bool = False
    residual: bool = False
    bounded: bool = False
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    def codes_argument(self):
        return rows_of(self.codes, "T", self.rows.length, self.rows.vec)

    def scales_argument(self):
        strides = (1, None) if self.transposed else (None, 1)
        return Tensor("f32", ("T", self.rows.length // self.group), strides, 4)

    @property
    def given(self) -> bool:
        return self.bounded

    @cute.jit
    def quantise(self, norm, gQ, mX, mS, mGiven, row, lane, inside, scratch):
        rows = self.rows
        bound = Float32(mGiven[0]) if cutlass.const_expr(mGiven is not None) else None
        codes = []
        for i, access in enumerate(rows.split(norm)):
            largest = lib.warp_max(lib.absmax(access), width=self.group // rows.vec)
            largest = largest if cutlass.const_expr(bound is None) else lib.fmin(largest, bound)
            scale = self.scale(largest)
            codes.append(self.encode(access, scale))
            at = rows.access_start(i, lane)
            if (at % self.group == 0) & (at < rows.length) & inside:
                mS[row, at // self.group] = scale
        rows.store_words(gQ, lane, codes, inside)

    def scale(self, largest):
        return lib.dynamic_scale(largest) if self.codes == "e4m3" else lib.dynamic_int8_scale(largest)

    def encode(self, values, scale):
        if self.codes == "i8":
            return lib.int8_codes(values, scale)
        return lib.divided_codes(values, scale, self.bounded)
