"""Several rows a token added up in registers, in the order of the token's choices, and rounded once."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Combine(ChunkedRows, Specialisation):
    """Static choices.

    indexed: the rows of a token are where an index says, rows of a matrix; else the k rows of its own.
    weighted: each row is multiplied by a weight, in one fma with the sum.  bounded: rows from a number in memory on do
    not count (`indexed` only).  ids: dtype of expert ids of which negative ones do not count, "" for none; mapped: nor
    do those whose local id is negative.  base: a row to start from, a shared expert's.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    k: int
    rows: int = 1
    indexed: bool = False
    weighted: bool = False
    bounded: bool = False
    ids: str = ""
    mapped: bool = False
    base: bool = False
    pdl: bool = True

    @property
    def nbytes(self) -> int:
        return self.vec * scalar(self.dtype).bytes

    def arguments(self):
        out = rows_of(self.dtype, "T", self.d, self.nbytes)
        x = rows_of(self.dtype, "R", self.d, self.nbytes) if self.indexed else rows_of(
            self.dtype, "T", self.d, self.nbytes, self.k
        )  # fmt: skip
        index = rows_of("i32", "T", self.k, 4) if self.indexed else None
        weights = rows_of("f32", "T", self.k, 4) if self.weighted else None
        valid = vector("i64", "V", 8) if self.bounded else None
        ids = rows_of(self.ids, "T", self.k, scalar(self.ids).bytes) if self.ids else None
        expert_map = vector("i32", "E", 4) if self.mapped else None
        return written(out), x, index, weights, valid, ids, expert_map, out if self.base else None

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mX: cute.Tensor,  # (R, d) or (T, k, d)
        mI: cute.Tensor | None,  # (T, k) int32
        mW: cute.Tensor | None,  # (T, k) float32
        mV: cute.Tensor | None,  # (V,) int64, the last is how many rows count
        mE: cute.Tensor | None,  # (T, k)
        mMap: cute.Tensor | None,  # (E,) int32
        mB: cute.Tensor | None,  # (T, d)
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mI, mW, mV, mE, mMap, mB).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mO: cute.Tensor,
        mX: cute.Tensor,
        mI: cute.Tensor | None,
        mW: cute.Tensor | None,
        mV: cute.Tensor | None,
        mE: cute.Tensor | None,
        mMap: cute.Tensor | None,
        mB: cute.Tensor | None,
    ):
        T = cutlass_type(self.dtype)
        token, col = lib.rows_and_column(self)
        column = cutlass.min(col, self.d - self.vec)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        valid = self.bound(mX, mV)
        for r in cutlass.range_constexpr(self.rows):
            row = lib.clamped_row(token, r, mO)
            weights = self.weights(mW, row)
            places = [self.place(mX, mI, mE, mMap, valid, row, j) for j in range(self.k)]
            base = self.first(mB, row, column)
            loaded = [lib.load_words(ptr + column, self.nbytes, inside=counts) for ptr, counts in places]
            sums = [Float32(0.0)] * self.vec if base is None else lib.unpack(base, self.vec, T)
            for j in cutlass.range_constexpr(self.k):
                values = lib.unpack(loaded[j], self.vec, T)
                sums = self.added(sums, values, None if weights is None else weights[j], places[j][1])
            if (col < self.d) & (token + r < mO.shape[0]):
                lib.store_words(mO[token + r, None].iterator + col, lib.pack(sums, T), self.nbytes)

    def bound(self, mX, mV):
        """How many rows count, None where none is looked for by its index."""
        if self.bounded:
            return cutlass.min(Int64(mV[mV.shape[0] - 1]), Int64(mX.shape[0]))
        return Int64(mX.shape[0]) if self.indexed else None

    def first(self, mB, row, column):
        """Words to start a sum from, None for zeros."""
        return lib.load_words(mB[row, None].iterator + column, self.nbytes) if self.base else None

    def weights(self, mW, row):
        """The weights of a token's rows, None where they have none."""
        return [Float32(mW[row, j]) for j in range(self.k)] if self.weighted else None

    def place(self, mX, mI, mE, mMap, valid, token, j):
        """(start of the row of a token's choice j, whether it counts)."""
        counts = True
        if mE is not None:
            expert = Int64(mE[token, j])
            counts = expert >= 0
            if mMap is not None:
                known = counts & (expert < mMap.shape[0])
                counts = known & (Int32(mMap[lib.select(known, expert, Int64(0))]) >= 0)
        if mI is None:
            return mX[token, j, None].iterator, counts
        row = Int64(mI[token, j])
        inside = (row >= 0) & (row < valid)
        return mX[lib.select(inside, row, Int64(0)), None].iterator, inside if counts is True else counts & inside

    def added(self, sums, values, weight, counts):
        """Sums after one more row."""
        if weight is None:
            found = [s + v for s, v in zip(sums, values, strict=True)]
        else:
            found = [lib.fma(weight, v, s) for s, v in zip(sums, values, strict=True)]
        return found if counts is True else [lib.select(counts, f, s) for f, s in zip(found, sums, strict=True)]
