"""Numbers to e4m3, e5m2 or int8 codes with given scales: one, one a row, one a column, or one a block of rows and
columns."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation

_EASY = (2.0**-100, 2.0**125)  # scales that `quotients` divides by


@dataclass(frozen=True)
class StaticQuant(ChunkedRows, Specialisation):
    """Static choices. codes "e4m3", "e5m2": x * (1 / scale), saturating. "i8": x / scale, or shifted:
    x * (1 / scale) + zero.

    across: neighbouring columns that share a scale.  down: "all" rows share scales, "each" row has its own, or
    "some": a number of rows known at the launch.  wide: the scales of neighbouring columns are neighbours in memory,
    at multiples of 16 bytes.  align, out_align: bytes of an access at most.  prefetch, prefetch_blocks, streaming: as
    for Gated.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int
    codes: str
    across: int
    down: str = "all"
    shifted: bool = False
    wide: bool = False
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def one(self) -> bool:
        """Whether there is one scale."""
        return self.down == "all" and self.across == self.d

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        q = rows_of(self.codes, "T", self.d, min(self.out_align, self.vec))
        rows: dict[str, int | str] = {"all": 1, "each": "T", "some": "S"}
        down = rows[self.down]
        if self.one:
            scales = vector("f32", 1, 4)
        elif self.wide:
            scales = Tensor("f32", (down, self.d), (None, 1), 16, 4)
        else:
            scales = Tensor("f32", (down, self.d // self.across), (None, None), 4)
        return written(q), rows_of(self.dtype, "T", self.d, wide), scales, vector("i32", 1, 4) if self.shifted else None

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, d), codes
        mX: cute.Tensor,  # (T, d)
        mS: cute.Tensor,  # (1,), or (1, T or S, d / across)
        mZ: cute.Tensor | None,  # (1,): zero point
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mS, mZ).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mZ: cute.Tensor | None):
        T = cutlass_type(self.dtype)
        nbytes = self.vec * T.width // 8
        first, col = lib.rows_and_column(self)
        inside = col < self.d
        column = cutlass.min(col, self.d - self.vec)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(nbytes) & inside & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                lib.prefetch_line(mX[lib.clamped_row(first, r, mX), None].iterator + column, wanted)
        lib.pdl_wait()

        tXrX, kind = [], lib.STREAMING if self.streaming else lib.CACHED
        for r in cutlass.range_constexpr(self.rows):
            gX = mX[lib.clamped_row(first, r, mX), None].iterator + column
            tXrX.append(lib.load_words(gX, nbytes, kind, self.align))
        zero = None if cutlass.const_expr(mZ is None) else Int32(mZ[0])  # type: ignore[index]
        common = None
        if cutlass.const_expr(self.down == "all"):
            common = self.factors(mS, Int32(0), column)
        for r in cutlass.range_constexpr(self.rows):
            row = first + r
            there = inside if cutlass.const_expr(r == 0) else inside & (row < mX.shape[0])
            factors = common
            if cutlass.const_expr(self.down != "all"):
                factors = self.factors(mS, self.scale_row(lib.clamped_row(first, r, mX), mX, mS), column)
            self.store(mQ[row, None].iterator + col, lib.unpack(tXrX[r], self.vec, T), factors, zero, there)

    def scale_row(self, row, mX, mS):
        """Row of the scales of row `row`."""
        return row if self.down == "each" else row // (mX.shape[0] // mS.shape[0])

    def factors(self, mS, row, column):
        """What the vector at `column` is divided by (int8 that is not shifted) or multiplied by: `vec` Float32, one
        object for neighbours that share a scale. Reciprocals branch, so they stand behind all loads."""
        if self.one:
            scales, shared = lib.load_words(mS.iterator, 4, lib.CACHED), self.vec
        elif self.wide:
            align, shared = min(16, 4 * self.vec), 1
            scales = lib.load_words(mS[row, None].iterator + column, 4 * self.vec, lib.CACHED, align)
        else:
            shared = self.across if self.vec % self.across == 0 else self.vec if self.across % self.vec == 0 else 1
            places = [(column + j) // self.across for j in range(0, self.vec, shared)]
            gS = mS[row, None]
            scales = [lib.load_words(gS.iterator + cute.crd2idx(j, gS.layout), 4, lib.CACHED)[0] for j in places]
        found = [w.bitcast(Float32) for w in scales]
        if self.codes != "i8" or self.shifted:
            found = [lib.rcp_rn(s) for s in found]
        return [f for f in found for _ in range(shared)]

    @cute.jit
    def store(self, gQ: cute.Pointer, x, factors, zero, there):
        """Write the codes of one vector."""
        if cutlass.const_expr(self.codes == "i8" and not self.shifted):
            scale = factors[0]  # given for the whole tensor
            if there:
                if (scale >= Float32(_EASY[0])) & (scale <= Float32(_EASY[1])):
                    self.write(gQ, lib.divided_int8_codes(x, scale, True))
                else:
                    self.write(gQ, lib.pack_int8([lib.div_rn(v, scale) for v in x]))
        elif there:
            self.write(gQ, self.encoded(x, factors, zero))

    def encoded(self, x, factors, zero):
        if self.shifted:
            return lib.shifted_int8_codes(x, factors[0], zero)
        return lib.pack_fp8([v * f for v, f in zip(x, factors, strict=True)], self.codes)

    def write(self, gQ, words):
        lib.store_words(gQ, words, self.vec, self.out_align)
