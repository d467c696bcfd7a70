"""RMS norm, with or without a residual, to e4m3 codes with one given scale."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.norms import add_residual, inverse_rms, weighted
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNormStaticFp8(Specialisation):
    """Static choices.

    residual: None, or "rounded" or "unrounded" as the `sum` of FusedAddRmsNorm; the input is then left as it is.
    prefetch, prefetch_distance, prefetch_blocks: as for RmsNorm.
    rounding: of the norm before it is multiplied by 1 / scale: "single" and "double" to the input's type, "none" not.
    """

    dtype: str
    rows: Rows
    weight: str
    residual: str | None = None
    rounding: str = "single"
    pdl: bool = True
    prefetch: str = "none"
    prefetch_distance: int = 0
    prefetch_blocks: int = 0
    codes: str = "e4m3"  # or "e5m2"

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        q = rows_of(self.codes, "T", self.rows.length, self.rows.vec)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return written(q), x, written(x) if self.residual else None, w, vector("f32", 1, 4), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H), codes
        mX: cute.Tensor,  # (T, H)
        mR: cute.Tensor | None,  # (T, H), becomes the sum
        mW: cute.Tensor,  # (H,)
        mS: cute.Tensor,  # (1,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mR, mW, mS, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mQ, mX: cute.Tensor, mR: cute.Tensor | None, mW: cute.Tensor, mS: cute.Tensor, eps: Float32):
        rows, T = self.rows, cutlass_type(self.dtype)
        scratch = rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gR = rows.row_slice(mX, row), None if cutlass.const_expr(mR is None) else rows.row_slice(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrR = None if cutlass.const_expr(mR is None) else rows.load(gR, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        if cutlass.const_expr(self.prefetch_distance > 0):
            rows.prefetch_next_row(mX, row + self.prefetch_distance, mX.shape[0], lane)
            if cutlass.const_expr(mR is not None):
                rows.prefetch_next_row(mR, row + self.prefetch_distance, mX.shape[0], lane)
        (scale,) = lib.load_words(mS.iterator, 4, lib.CACHED)
        h = add_residual(rows, tXrX, tXrR, gR, lane, inside, self.residual == "rounded", T)
        tXrW = rows.load_late(mW, lane, tXrW)
        y = h * inverse_rms(rows, h, eps, scratch)
        inverse = lib.rcp_rn(scale.bitcast(Float32))  # it branches: before a load, it would hold that back
        N = Float32 if cutlass.const_expr(self.rounding == "none") else T
        norms = [lib.round_each(access, N) for access in rows.split(weighted(y, tXrW, 0, self.rounding, T, Float32))]
        codes = [lib.pack_fp8([v * inverse for v in access], self.codes) for access in norms]
        rows.store_words(rows.row_slice(mQ, row), lane, codes, inside)
