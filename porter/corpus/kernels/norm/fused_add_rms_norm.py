"""Residual addition and RMS norm in one pass, in place: residual = x + residual, x = rms_norm(residual)."""

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
class FusedAddRmsNorm(Specialisation):
    """Static choices of an RMS norm with a residual.

    sum: "rounded" normalises the sum as it is stored, in the tensors' type; "unrounded" the sum in float32.
    rounding, prefetch, prefetch_distance, prefetch_blocks: as for RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str | None  # dtype of the weight, None for no weight
    weight_bias: float = 0.0
    sum: str = "rounded"
    rounding: str = "single"
    pdl: bool = True
    prefetch: str = "none"
    prefetch_distance: int = 0
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        w = self.weight and vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return written(x), written(x), w, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mX: cute.Tensor,  # (T, H), becomes the norm
        mR: cute.Tensor,  # (T, H), becomes the sum
        mW: cute.Tensor | None,  # (H,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mX, mR, mW, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mR: cute.Tensor, mW: cute.Tensor | None, eps: Float32):
        rows, T = self.rows, cutlass_type(self.dtype)
        scratch = rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gR = rows.row_slice(mX, row), rows.row_slice(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX, tXrR = rows.load(gX, lane, inside), rows.load(gR, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        if cutlass.const_expr(self.prefetch_distance > 0):
            rows.prefetch_next_row(mX, row + self.prefetch_distance, mX.shape[0], lane)
            rows.prefetch_next_row(mR, row + self.prefetch_distance, mX.shape[0], lane)
        h = add_residual(rows, tXrX, tXrR, gR, lane, inside, self.sum == "rounded", T)
        tXrW = rows.load_late(mW, lane, tXrW)
        y = h * inverse_rms(rows, h, eps, scratch)
        tXrX.store(weighted(y, tXrW, self.weight_bias, self.rounding, T))
        rows.store(gX, lane, tXrX, inside)
