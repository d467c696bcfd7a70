"""RMS norm with an activation: of a gate, before or after the norm, or of the norm itself."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.norms import inverse_rms
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class GatedRmsNorm(Specialisation):
    """Static choices. Everything is float32 until the result is rounded, once.

    gate: "after" gives norm(x) * act(z), "before" norm(x * act(z)), "self" act(norm(x)) without a z.
    activation: "silu" or "sigmoid".  prefetch, prefetch_blocks: as for RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str
    gate: str
    activation: str = "silu"
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        return written(x, 1, 2), x, None if self.gate == "self" else x, w, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, H)
        mX: cute.Tensor,  # (T, H), may be mO
        mZ: cute.Tensor | None,  # (T, H), the gate
        mW: cute.Tensor,  # (H,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mZ, mW, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor, mZ: cute.Tensor | None, mW: cute.Tensor, eps: Float32):
        rows = self.rows
        scratch = rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gO = rows.row_slice(mX, row), rows.row_slice(mO, row)
        gZ = None if cutlass.const_expr(mZ is None) else rows.row_slice(mZ, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gZ], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrZ = None if cutlass.const_expr(mZ is None) else rows.load(gZ, lane, inside)
        tXrW = rows.load(mW, lane)
        x = tXrX.load().to(Float32)
        gate = None if cutlass.const_expr(mZ is None) else self.activate(tXrZ.load().to(Float32))  # type: ignore[union-attr]
        if cutlass.const_expr(self.gate == "before"):
            x = x * gate
        y = x * inverse_rms(rows, x, eps, scratch) * tXrW.load().to(Float32)
        if cutlass.const_expr(self.gate == "after"):
            y = y * gate
        if cutlass.const_expr(self.gate == "self"):
            y = self.activate(y)
        tXrX.store(y.to(cutlass_type(self.dtype)))
        rows.store(gO, lane, tXrX, inside)

    def activate(self, values):
        """act of float32 values (vec, accesses)."""
        act = lib.sigmoid if self.activation == "sigmoid" else lib.silu
        tXrV = cute.make_rmem_tensor_like(values, Float32)
        tXrV.store(values)
        for i in range(cute.size(tXrV)):
            tXrV[i] = act(tXrV[i])
        return tXrV.load()
