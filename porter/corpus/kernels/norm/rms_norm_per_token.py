"""RMS norm, with or without a residual, to e4m3 or int8 codes with a scale computed for each row."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from porter.corpus import lib
from porter.corpus.kernels.norm.quantised_rows import QuantisedRmsNorm
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.signature import Tensor, rows_of


@dataclass(frozen=True)
class RmsNormPerToken(QuantisedRmsNorm):
    """Static choices. codes: "e4m3" or "i8".

    The norm is rounded to the input's type before the weight is applied and after. e4m3 codes are norm / scale with
    scale = max(min(max |norm|, bound) / 448, 1 / (448 * 512)); int8 codes norm * (1 / scale) with a scale of at least
    float32's epsilon. residual: the sum is normalised before it is rounded. bounded: there is a bound.
    prefetch, prefetch_blocks: as for RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str
    codes: str = "e4m3"
    residual: bool = False
    bounded: bool = False
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    reductions = 2

    def codes_argument(self):
        return rows_of(self.codes, "T", self.rows.length, self.rows.vec)

    def scales_argument(self):
        return Tensor("f32", ("T", 1), (None, 1), 4)

    @property
    def given(self) -> bool:
        return self.bounded

    @cute.jit
    def quantise(self, norm, gQ, mX, mS, mGiven, row, lane, inside, scratch):
        rows, (maxima,) = self.rows, scratch
        accesses = rows.split(norm)
        largest = rows.reduce(lib.absmax([v for access in accesses for v in access]), maxima, "max")
        if cutlass.const_expr(mGiven is not None):
            largest = lib.fmin(largest, Float32(mGiven[0]))
        if cutlass.const_expr(self.codes == "e4m3"):
            scale = lib.dynamic_scale(largest)
            codes = [lib.divided_codes(access, scale, self.bounded) for access in accesses]
        else:
            scale = lib.dynamic_int8_scale(largest)
            codes = [lib.int8_codes(access, scale) for access in accesses]
        if (lane == 0) & inside:
            mS[row, 0] = scale
        rows.store_words(gQ, lane, codes, inside)
