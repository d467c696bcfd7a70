"""RMS norm, with or without a residual, to e4m3 or int8 codes with a scale computed for each row."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.norms import add_residual, inverse_rms, weighted
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNormPerToken(Specialisation):
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

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        q = rows_of(self.codes, "T", self.rows.length, self.rows.vec)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        scales = Tensor("f32", ("T", 1), (None, 1), 4)
        bound = vector("f32", 1, 4) if self.bounded else None
        return written(q), x, written(x) if self.residual else None, w, written(scales), bound, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H), codes
        mX: cute.Tensor,  # (T, H)
        mR: cute.Tensor | None,  # (T, H), becomes the sum
        mW: cute.Tensor,  # (H,)
        mS: cute.Tensor,  # (T, 1), written
        mBound: cute.Tensor | None,  # (1,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mR, mW, mS, mBound, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mX: cute.Tensor,
        mR: cute.Tensor | None,
        mW: cute.Tensor,
        mS: cute.Tensor,
        mBound: cute.Tensor | None,
        eps: Float32,
    ):
        rows, T = self.rows, cutlass_type(self.dtype)
        sums, maxima = rows.scratch(), rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gQ = rows.row_slice(mX, row), rows.row_slice(mQ, row)
        gR = None if cutlass.const_expr(mR is None) else rows.row_slice(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrR = None if cutlass.const_expr(mR is None) else rows.load(gR, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        h = add_residual(rows, tXrX, tXrR, gR, lane, inside, False, T)
        tXrW = rows.load_late(mW, lane, tXrW)
        norm = weighted(h * inverse_rms(rows, h, eps, sums), tXrW, 0, "double", T).to(Float32)
        accesses = rows.split(norm)
        largest = rows.reduce(lib.absmax([v for access in accesses for v in access]), maxima, "max")
        if cutlass.const_expr(mBound is not None):
            largest = lib.fmin(largest, Float32(mBound[0]))  # type: ignore[index]
        if cutlass.const_expr(self.codes == "e4m3"):
            scale = lib.dynamic_scale(largest)
            codes = [lib.divided_codes(access, scale, self.bounded) for access in accesses]
        else:
            scale = lib.dynamic_int8_scale(largest)
            codes = [lib.int8_codes(access, scale) for access in accesses]
        if (lane == 0) & inside:
            mS[row, 0] = scale
        rows.store_words(gQ, lane, codes, inside)
