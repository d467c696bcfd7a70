"""RMS norm, with or without a residual, to codes with a scale of one byte for every 16 or 32: NVFP4, MXFP8."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.norms import add_residual, inverse_rms, weighted
from porter.corpus.lib.quantisation.block_scales import BlockScales
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class RmsNormBlockScaled(Specialisation):
    """Static choices. The norm is rounded to the dtype once, then quantised; an access has a part of a block, and the
    parts are in one warp. Rows that only fill up tiles of scales get zeros.

    residual: the input is added to it, and what is normalised is the stored sum.  prefetch, prefetch_blocks: as for
    RmsNorm.
    """

    dtype: str
    rows: Rows
    weight: str
    scales: BlockScales
    residual: bool = False
    pdl: bool = True
    prefetch: str = "none"
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    def arguments(self):
        rows, scales = self.rows, self.scales
        x = rows_of(self.dtype, "T", rows.length, min(16, rows.vec * scalar(self.dtype).bytes))
        held, width = ("u8" if scales.codes == "e2m1" else "e4m3"), scales.code_bytes(rows.vec)
        q = rows_of(held, "T", scales.code_bytes(rows.length), width)
        w = vector(self.weight, rows.length, rows.vec * scalar(self.weight).bytes)
        given = vector("f32", 1, 4) if scales.scales == "e4m3" else None
        sums = written(x) if self.residual else None
        return written(q), x, sums, w, written(Tensor(*scales.argument())), given, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, bytes of codes of a row)
        mX: cute.Tensor,  # (T, H)
        mR: cute.Tensor | None,  # (T, H), becomes the sum
        mW: cute.Tensor,  # (H,)
        mS: cute.Tensor,  # bytes of scales, (T, H / group) or whole tiles
        mG: cute.Tensor | None,  # (1,): the tensor's scale
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mR, mW, mS, mG, eps).launch(
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
        mG: cute.Tensor | None,
        eps: Float32,
    ):
        rows, scales, T = self.rows, self.scales, cutlass_type(self.dtype)
        scratch = rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        if cutlass.const_expr(scales.layout != "linear"):
            inside = row < mX.shape[0]
        gX = rows.row_slice(mX, row)
        gR = None if cutlass.const_expr(mR is None) else rows.row_slice(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrR = None if cutlass.const_expr(mR is None) else rows.load(gR, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        h = add_residual(rows, tXrX, tXrR, gR, lane, inside, True, T)
        tXrW = rows.load_late(mW, lane, tXrW)
        norm = weighted(h * inverse_rms(rows, h, eps, scratch), tXrW, 0, "single", T, Float32)
        given = None
        if cutlass.const_expr(mG is not None):
            (word,) = lib.load_words(mG.iterator, 4, lib.CACHED)  # type: ignore[union-attr]
            given = word.bitcast(Float32)
        gQ, held = mQ[row, None], row < mS.shape[0]
        for i, access in enumerate(rows.split(norm)):
            codes, code = scales.encode(lib.round_each(access, T), given)
            code = code if cutlass.const_expr(inside is True) else lib.select(inside, code, Uint32(0))
            at = rows.access_start(i, lane)
            if (at % scales.group == 0) & (at < rows.length) & held:
                scales.store(mS, row, at, code, 1)
            if (at < rows.length) & (row < mX.shape[0]):
                lib.store_words(gQ.iterator + scales.code_bytes(at), codes, scales.code_bytes(rows.vec), 16)
        self.fill(mS, row, lane)

    @cute.jit
    def fill(self, mS: cute.Tensor, row: Int32, lane: Int32):
        """Zeros for the columns that fill up the last tile of a row."""
        blocks = self.rows.length // self.scales.group
        for i in cutlass.range_constexpr(self.scales.columns - blocks):
            if (lane == i % self.rows.threads) & (row < mS.shape[0]):
                self.scales.store(mS, row, (blocks + i) * self.scales.group, Uint32(0), 1)
