"""What RMS norms share whose result is codes with scales: a launch, and the norm of a row in registers."""

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


class QuantisedRmsNorm(Specialisation):
    """Base of the kernels: the norm of a row, or of its sum with a residual, is made here; `quantise` of a subclass
    stores its codes and scales.

    A subclass is a frozen dataclass with these static choices. `rounded_sum`: what is normalised is the stored sum,
    else the sum before it is rounded. `rounding` "double": the norm is rounded to the dtype before the weight is
    applied and after; "single": neither, `quantise` rounds once. `reductions`: over rows, in a launch.
    """

    rounded_sum = False
    rounding = "double"
    reductions = 1

    dtype: str
    rows: Rows
    weight: str
    residual: bool
    pdl: bool
    prefetch: str
    prefetch_blocks: int

    @property
    def threads(self) -> int:
        return self.rows.block

    def codes_argument(self):
        """What the signature says of the codes."""
        raise NotImplementedError

    def scales_argument(self):
        """What the signature says of the scales, which are written."""
        raise NotImplementedError

    @property
    def given(self) -> bool:
        """Whether a number is given in memory: a bound of the scales, or the tensor's scale."""
        raise NotImplementedError

    @property
    def alignment(self) -> int:
        """Bytes of an access of the input."""
        return self.rows.vec * scalar(self.dtype).bytes

    def arguments(self):
        x = rows_of(self.dtype, "T", self.rows.length, self.alignment)
        w = vector(self.weight, self.rows.length, self.rows.vec * scalar(self.weight).bytes)
        codes, scales = written(self.codes_argument()), written(self.scales_argument())
        given = vector("f32", 1, 4) if self.given else None
        return codes, x, written(x) if self.residual else None, w, scales, given, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, H), codes
        mX: cute.Tensor,  # (T, H)
        mR: cute.Tensor | None,  # (T, H), becomes the sum
        mW: cute.Tensor,  # (H,)
        mS: cute.Tensor,  # scales, written
        mGiven: cute.Tensor | None,  # (1,)
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mR, mW, mS, mGiven, eps).launch(
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
        mGiven: cute.Tensor | None,
        eps: Float32,
    ):
        rows, T = self.rows, cutlass_type(self.dtype)
        sums, *scratch = [rows.scratch() for _ in range(self.reductions)]
        row, lane, inside = rows.thread_row(mX.shape[0])
        inside = self.covers(row, inside, mX.shape[0])
        gX, gQ = rows.row_slice(mX, row), self.codes_row(mQ, row)
        gR = None if cutlass.const_expr(mR is None) else rows.row_slice(mR, row)
        lib.pdl_launch_dependents()
        rows.prefetch(self.prefetch, [gX, gR], mW, lane, inside, self.prefetch_blocks)
        lib.pdl_wait()

        tXrX = rows.load(gX, lane, inside)
        tXrR = None if cutlass.const_expr(mR is None) else rows.load(gR, lane, inside)
        tXrW = rows.load_early(mW, lane, self.prefetch)
        h = add_residual(rows, tXrX, tXrR, gR, lane, inside, self.rounded_sum, T)
        tXrW = rows.load_late(mW, lane, tXrW)
        out = T if self.rounding == "double" else Float32
        norm = weighted(h * inverse_rms(rows, h, eps, sums), tXrW, 0, self.rounding, T, out).to(Float32)
        self.quantise(norm, gQ, mX, mS, mGiven, row, lane, inside, scratch)

    def codes_row(self, mQ, row):
        """What `quantise` gets of the codes: their row, or all of them where it takes the row itself."""
        return self.rows.row_slice(mQ, row)

    def covers(self, row, inside, total):
        """Whether a row is one of the input's: `inside`, or a condition where threads have rows that only fill up."""
        return inside

    def quantise(self, norm, gQ, mX, mS, mGiven, row, lane, inside, scratch):
        """Store codes and scales of a row. norm: float32 values (vec, accesses); scratch: of the reductions after
        the first."""
        raise NotImplementedError
