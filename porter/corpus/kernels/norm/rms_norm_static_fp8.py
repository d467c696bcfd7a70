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
from porter.corpus.runtime.signature import Scalar, rows_of, vector
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNormStaticFp8(Specialisation):
    """Static choices.

    residual: None, or "rounded" or "unrounded" as the `sum` of FusedAddRmsNorm; the input is then left as it is.
    rounding: of the norm before it is multiplied by 1 / scale: "single" and "double" to the input's type, "none" not.
    """

    dtype: str
    rows: Rows
    weight: str
    residual: str | None = None
    rounding: str = "single"
    pdl: bool = True
    prefetch: str = "none"

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        q = rows_of("e4m3", "T", self.rows.length, self.rows.vec)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return q, x, x if self.residual else None, w, vector("f32", 1, 4), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H) e4m3
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
        row_in_block, lane = rows.place()
        row = cute.arch.block_idx()[0] * rows.rows + row_in_block
        inside = row < mX.shape[0] if cutlass.const_expr(rows.rows > 1) else True
        gX, gQ = rows.of(mX, row), rows.of(mQ, row)
        gR = None if cutlass.const_expr(mR is None) else rows.of(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrR = None if cutlass.const_expr(mR is None) else rows.load(gR, lane, inside)
        tXrW = rows.load(mW, lane, readonly=True)
        (scale,) = lib.load_words(mS.iterator, 4, lib.SHARED_BY_WARPS)
        if cutlass.const_expr(mR is None):
            h = tXrX.load().to(Float32)
        else:
            h = add_residual(rows, tXrX, tXrR, gR, lane, inside, self.residual == "rounded", T)
        y = h * inverse_rms(rows, h, eps, scratch)
        norm = weighted(y, tXrW, 0, self.rounding, Float32 if cutlass.const_expr(self.rounding == "none") else T)
        inverse = lib.rcp_rn(scale.bitcast(Float32))
        codes = [lib.pack_e4m3([v * inverse for v in access]) for access in rows.split(norm.to(Float32))]
        rows.store_words(gQ, lane, codes, inside)
