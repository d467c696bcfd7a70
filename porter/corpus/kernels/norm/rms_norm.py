"""RMS norm: y = x / sqrt(mean(x^2) + eps) * (w + weight_bias), over the last dimension."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.norms import inverse_rms, weighted
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNorm(Specialisation):
    """Static choices of an RMS norm.

    rounding: "single" rounds the product of x, 1/rms and weight once; "double" rounds before the weight and after it.
    inner: 1, or the length of a second leading dimension with a stride of its own (heads of packed tensors).
    prefetch: what is prefetched into L2 before the previous kernel has finished: "none", "weight", "rows" or "all".
    prefetch_blocks: how many blocks, the first, prefetch rows (0: all); as many as start before that kernel has
    finished.
    prefetch_distance: a block prefetches the row that many rows further on into L2 while it waits for its own: about as
    many as run at once.
    """

    dtype: str
    rows: Rows
    weight: str | None  # dtype of the weight, None for no weight
    weight_bias: float = 0.0
    rounding: str = "single"
    inner: int = 1
    pdl: bool = True
    prefetch: str = "none"
    prefetch_distance: int = 0
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        align = self.rows.vec * scalar(self.dtype).bytes
        x = rows_of(self.dtype, "T", self.rows.length, align, self.inner)
        w = self.weight and vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return written(x, 1), x, w, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, H) or (T, inner, H), strides any but the last
        mX: cute.Tensor,  # (T, H) or (T, inner, H), may be mO
        mW: cute.Tensor | None,  # (H,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mW, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor, mW: cute.Tensor | None, eps: Float32):
        rows, total = self.rows, mX.shape[0] * self.inner
        scratch = rows.scratch()
        row, lane, inside = rows.thread_row(total)
        gX = rows.row_slice(mX, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        if cutlass.const_expr(self.prefetch_distance > 0):
            rows.prefetch_next_row(mX, row + self.prefetch_distance, total, lane)
        x = tXrX.load().to(Float32)
        tXrW = rows.load_late(mW, lane, tXrW)
        y = x * inverse_rms(rows, x, eps, scratch)
        tXrX.store(weighted(y, tXrW, self.weight_bias, self.rounding, cutlass_type(self.dtype)))
        rows.store(rows.row_slice(mO, row), lane, tXrX, inside)
