"""Rows of numbers to e4m3 or int8 codes with a scale, and perhaps a zero point, computed for each row."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation

_LARGEST = 3.4028234663852886e38


@dataclass(frozen=True)
class PerToken(Specialisation):
    """Static choices. A row is read once and stays in registers while it is reduced.

    codes "e4m3": x / scale with scale = max(min(max |x|, bound) / 448, 1 / (448 * 512)). "i8": x * (127 / max |x|) with
    scale = max |x| / 127. "i8" and shifted: x * (1 / scale) + zero with scale = (max - min) / 255 and
    zero = rint(-128 - min / scale).  bounded: there is a bound.  prefetch, prefetch_blocks: as for RmsNorm.
    """

    dtype: str
    rows: Rows
    codes: str = "e4m3"
    shifted: bool = False
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
        zeros = written(Tensor("i32", ("T", 1), (None, 1), 4)) if self.shifted else None
        scales = written(Tensor("f32", ("T", 1), (None, 1), 4))
        return written(q), x, scales, zeros, vector("f32", 1, 4) if self.bounded else None

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H), codes
        mX: cute.Tensor,  # (T, H)
        mS: cute.Tensor,  # (T, 1), written
        mZ: cute.Tensor | None,  # (T, 1), zero points, written
        mBound: cute.Tensor | None,  # (1,)
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mS, mZ, mBound).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mX: cute.Tensor,
        mS: cute.Tensor,
        mZ: cute.Tensor | None,
        mBound: cute.Tensor | None,
    ):
        rows = self.rows
        maxima, minima = rows.scratch(), rows.scratch()
        row, lane, inside = rows.thread_row(mX.shape[0])
        gX, gQ = rows.row_slice(mX, row), rows.row_slice(mQ, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX], None, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        x = rows.load(gX, lane, inside).load().to(Float32)
        accesses = rows.split(x)
        if cutlass.const_expr(self.shifted):
            least = rows.reduce(lib.fmin(rows.fold(x, "min", lane), Float32(_LARGEST)), minima, "min")
            most = rows.reduce(lib.fmax(rows.fold(x, "max", lane), Float32(-_LARGEST)), maxima, "max")
            scale = lib.div_rn(most - least, Float32(255.0))
            zero = lib.float_to_int(lib.rint(lib.sub_rn(Float32(-128.0), lib.div_rn(least, scale))), Int32, "rzi")
            inverse = lib.rcp_rn(scale)
            codes = [lib.shifted_int8_codes(access, inverse, zero) for access in accesses]
        else:
            largest = rows.reduce(lib.absmax([v for access in accesses for v in access]), maxima, "max")
            if cutlass.const_expr(self.codes == "i8"):
                scale = lib.div_rn(largest, Float32(lib.INT8_MAX))
                quotient = lib.div_rn(Float32(lib.INT8_MAX), largest)
                inverse = lib.select(largest == Float32(0.0), Float32(0.0), quotient)
                codes = [lib.pack_int8([v * inverse for v in access]) for access in accesses]
            else:
                if cutlass.const_expr(mBound is not None):
                    largest = lib.fmin(largest, Float32(mBound[0]))  # type: ignore[index]
                scale = lib.dynamic_scale(largest)
                codes = [lib.divided_codes(access, scale, self.bounded) for access in accesses]
        if (lane == 0) & inside:
            mS[row, 0] = scale
            if cutlass.const_expr(self.shifted):
                mZ[row, 0] = zero  # type: ignore[index]
        rows.store_words(gQ, lane, codes, inside)
