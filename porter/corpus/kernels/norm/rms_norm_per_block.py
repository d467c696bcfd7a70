"""RMS norm, with or without a residual, to e4m3 or int8 codes with a scale for every 64 or 128 elements of a row."""

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
class RmsNormPerBlock(Specialisation):
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

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.rows.vec * scalar(self.dtype).bytes)
        q = rows_of(self.codes, "T", self.rows.length, self.rows.vec)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        scales = Tensor("f32", ("T", self.rows.length // self.group), (1, None) if self.transposed else (None, 1), 4)
        bound = vector("f32", 1, 4) if self.bounded else None
        return written(q), x, written(x) if self.residual else None, w, written(scales), bound, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H), codes
        mX: cute.Tensor,  # (T, H)
        mR: cute.Tensor | None,  # (T, H), becomes the sum
        mW: cute.Tensor,  # (H,)
        mS: cute.Tensor,  # (T, H / group), written
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
        scratch = rows.scratch()
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
        norm = weighted(h * inverse_rms(rows, h, eps, scratch), tXrW, 0, "double", T).to(Float32)
        bound = Float32(mBound[0]) if cutlass.const_expr(mBound is not None) else None  # type: ignore[index]
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
