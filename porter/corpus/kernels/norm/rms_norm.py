"""RMS norm: y = x / sqrt(mean(x^2) + eps) * (w + weight_bias), over the last dimension."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.norms import inverse_rms_each, weighted
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNorm(Specialisation):
    """Static choices of an RMS norm.

    rounding: "single" rounds the product of x, 1/rms and weight once; "double" rounds before the weight and after it.
    inner: 1, or the length of a second leading dimension with a stride of its own (heads of packed tensors).
    prefetch: what is asked for in L2 before the previous kernel has finished: "none", "weight" or "all".
    ahead: a block asks for the row so many rows on in L2 while it waits for its own: about as many as run at once.
    batch: rows that a thread has in flight; its weights are loaded once, one barrier serves all.
    """

    dtype: str
    rows: Rows
    weight: str | None  # dtype of the weight, None for no weight
    weight_bias: float = 0.0
    rounding: str = "single"
    inner: int = 1
    pdl: bool = True
    prefetch: str = "none"
    batch: int = 1
    ahead: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        align = self.rows.vec * scalar(self.dtype).bytes
        x = rows_of(self.dtype, "T", self.rows.length, align, self.inner)
        w = self.weight and vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return x, x, w, Scalar("f32")

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
        rows, T = self.rows, cutlass_type(self.dtype)
        scratch = rows.scratch(copies=self.batch)
        _, lane = rows.place()
        numbers, inside = rows.numbers(self.batch, mX.shape[0] * self.inner)
        gX = rows.each(mX, numbers)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, gX[:1], mW, lane, inside[0])
        lib.pdl_wait()

        loaded = rows.load_each(gX, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        if cutlass.const_expr(self.ahead > 0):
            rows.ask_ahead(mX, numbers, self.ahead, mX.shape[0] * self.inner, lane)
        xs = [tXrX.load().to(Float32) for tXrX in loaded]
        tXrW = rows.load_late(mW, lane, tXrW)
        scales = inverse_rms_each(rows, xs, eps, scratch)
        for b in cutlass.range_constexpr(self.batch):
            loaded[b].store(weighted(xs[b] * scales[b], tXrW, self.weight_bias, self.rounding, T))
            rows.store(rows.of(mO, numbers[b]), lane, loaded[b], inside[b])
