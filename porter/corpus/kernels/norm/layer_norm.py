"""Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over the last dimension."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class LayerNorm(Specialisation):
    """Static choices. The variance is the mean of the squared deviations, from the row in registers: two reductions,
    one read. weight, bias: their dtype, or None where there is none. prefetch, prefetch_blocks: as for RmsNorm."""

    dtype: str
    rows: Rows
    weight: str | None
    bias: str | None
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        w, b = (
            name and vector(name, self.rows.length, self.rows.vec * scalar(name).bytes)
            for name in (self.weight, self.bias)
        )
        return written(x, 1), x, w, b, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, H)
        mX: cute.Tensor,  # (T, H), may be mO
        mW: cute.Tensor | None,  # (H,)
        mB: cute.Tensor | None,  # (H,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mW, mB, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor, mW: cute.Tensor | None, mB: cute.Tensor | None, eps: Float32):
        rows = self.rows
        sums, squares = rows.scratch(), rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gO = rows.row_slice(mX, row), rows.row_slice(mO, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrW = None if cutlass.const_expr(mW is None) else rows.load(mW, lane)
        tXrB = None if cutlass.const_expr(mB is None) else rows.load(mB, lane)
        x, n = tXrX.load().to(Float32), Float32(rows.length)
        centred = x - lib.div_rn(rows.reduce(rows.fold(x), sums), n)
        variance = lib.div_rn(rows.reduce(rows.fold(centred * centred, lane=lane), squares), n)
        y = centred * lib.rsqrt(variance + eps)
        if cutlass.const_expr(mW is not None):
            y = y * tXrW.load().to(Float32)  # type: ignore[union-attr]
        if cutlass.const_expr(mB is not None):
            y = y + tXrB.load().to(Float32)  # type: ignore[union-attr]
        tXrX.store(y.to(cutlass_type(self.dtype)))
        rows.store(gO, lane, tXrX, inside)
