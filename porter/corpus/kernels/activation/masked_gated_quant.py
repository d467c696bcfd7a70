"""silu(gate) * up of the tokens that each expert has, as e4m3 with a scale for every 128 outputs."""

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

EPS = 1e-10  # least magnitude that scales are made of
MOST = 448.0


@dataclass(frozen=True)
class MaskedGatedQuant(ChunkedRows, Specialisation):
    """Static choices. A thread has one vector of one row; rows beyond an expert's count are neither read nor written.

    places: rows that there is room for, for each expert.  columns: scales of one group are neighbours in memory.
    power: scales are powers of two.  align, out_align: bytes of an access at most.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    places: int
    group: int = 128
    columns: bool = True
    power: bool = False
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    rows: int = 1

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        codes = rows_of("e4m3", "T", self.d, min(self.out_align, self.vec))
        strides = (None, 1, None) if self.columns else (None, None, 1)
        scales = Tensor("f32", ("E", self.places, self.d // self.group), strides, 4)
        counts = vector("i32", "E", 4)
        return rows_of(self.dtype, "T", 2 * self.d, wide), counts, written(codes), written(scales)

    @cute.jit
    def __call__(
        self,
        mX: cute.Tensor,  # (E * places, 2 d): gate, up
        mC: cute.Tensor,  # (E,): tokens of an expert
        mQ: cute.Tensor,  # (E * places, d), codes
        mS: cute.Tensor,  # (E, places, d / group), written
        blocks: Int32,
        stream,
    ):
        self.kernel(mX, mC, mQ, mS).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mC: cute.Tensor, mQ: cute.Tensor, mS: cute.Tensor):
        row, col = lib.rows_and_column(self)
        expert = row // self.places
        place = row - expert * self.places
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        if place < Int32(mC[expert]):  # all threads of a block have the same row
            self.quantise(mX, mQ, mS, row, expert, place, col)

    @cute.jit
    def quantise(
        self, mX: cute.Tensor, mQ: cute.Tensor, mS: cute.Tensor, row: Int32, expert: Int32, place: Int32, col: Int32
    ):
        """One row's vector of this thread."""
        T = cutlass_type(self.dtype)
        nbytes = self.vec * T.width // 8
        gX = mX[row, None].iterator + cutlass.min(col, self.d - self.vec)  # all lanes take part in the shuffles
        gates, ups = (
            lib.unpack(lib.load_words(gX + half, nbytes, lib.STREAMING, self.align), self.vec, T)
            for half in (0, self.d)
        )
        product = [g * lib.sigmoid(g) * u for g, u in zip(gates, ups, strict=True)]
        largest = lib.fmax(lib.group_absmax(product, self.group // self.vec), Float32(EPS))
        scale = lib.div_rn(largest, Float32(MOST))
        if cutlass.const_expr(self.power):
            _, scale, inverse = lib.power_of_two_scale(scale)
            quotients = [v * inverse for v in product]
        else:
            quotients = lib.quotients(product, scale)
        words = lib.clamped_codes(quotients, Float32(-MOST), Float32(MOST), "e4m3")
        if col < self.d:
            lib.store_words(mQ[row, None].iterator + col, words, self.vec, self.out_align)
            if col % self.group == 0:
                mS[expert, place, col // self.group] = scale
