"""Rows of numbers to e4m3 or int8 codes with a scale for every 64 or 128 elements of a row, in four layouts."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, rows_of, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class PerTokenGroup(ChunkedRows, Specialisation):
    """Static choices. scale = max(max |x|, eps) / high, code min(max(x / scale, low), high); the threads of a group are
    neighbours in a warp.

    codes: "e4m3" or "i8" (rounded towards zero).  scales: "rows" (those of a row are neighbours in memory), "columns"
    (those of a group), or "packed": ue8m0 codes of four groups in an Int32, columns of them, zeros for groups and, in
    all columns but the last, up to `rounded` rows that there are none of.  power: scales are powers of two.
    align, out_align: bytes of an access at most.  prefetch, prefetch_blocks, streaming: as for Gated.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int
    group: int
    codes: str = "e4m3"
    scales: str = "rows"
    power: bool = False
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def groups(self) -> int:
        return self.d // self.group

    @property
    def chunks(self) -> int:
        """Blocks that share a row; those of packed scales also have threads for the groups that fill up a word."""
        width = -(-self.groups // 4) * 4 * self.group if self.scales == "packed" else self.d
        return -(-width // (self.vec * self.threads))

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        q = rows_of(self.codes, "Q" if self.scales == "packed" else "T", self.d, min(self.out_align, self.vec))
        if self.scales == "packed":
            words = -(-self.groups // 4)  # columns at multiples of four rows: zeros of one do not reach into the next
            scales = Tensor("i32", ("T", words), (1, None), 4, 4 if words > 1 else 1)
        else:
            scales = Tensor("f32", ("T", self.groups), (1, None) if self.scales == "columns" else (None, 1), 4)
        x = rows_of(self.dtype, "T", self.d, wide)
        return x, written(q), written(scales), Scalar("f32"), Scalar("f32"), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mX: cute.Tensor,  # (T, d)
        mQ: cute.Tensor,  # (T, d) codes; packed: (Q, d), rows that there are none of become zeros
        mS: cute.Tensor,  # (T, d / group), or packed (T, d / group / 4), written
        eps: Float32,
        low: Float32,
        high: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mX, mQ, mS, eps, low, high).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mQ: cute.Tensor, mS: cute.Tensor, eps: Float32, low: Float32, high: Float32):
        T = cutlass_type(self.dtype)
        nbytes, total = self.vec * T.width // 8, mX.shape[0]
        first, col = lib.rows_and_column(self)
        inside = col < self.d
        column = cutlass.min(col, self.d - self.vec)  # all lanes take part in the shuffles
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(nbytes) & inside & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                lib.prefetch_line(mX[self.readable(first, r, total), None].iterator + column, wanted)
        lib.pdl_wait()

        tXrX, kind = [], lib.STREAMING if self.streaming else lib.CACHED
        for r in cutlass.range_constexpr(self.rows):
            gX = mX[self.readable(first, r, total), None].iterator + column
            tXrX.append(lib.load_words(gX, nbytes, kind, self.align))
        for r in cutlass.range_constexpr(self.rows):
            x = lib.unpack(tXrX[r], self.vec, T)
            row, group = first + r, col // self.group
            largest = lib.fmax(lib.group_absmax(x, self.group // self.vec), eps)
            scale = lib.div_rn(largest, high)
            if cutlass.const_expr(self.power):
                code, scale, inverse = lib.power_of_two_scale(scale)
                quotients = [v * inverse for v in x]
            else:
                quotients = lib.quotients(x, scale)
            words = lib.clamped_codes(quotients, low, high, self.codes)
            if cutlass.const_expr(self.scales == "packed"):
                self.store_packed(mS, row, total, group, lib.select(inside & (row < total), code, Uint32(0)), col)
                if inside & (row < mQ.shape[0]):
                    kept = [lib.select(row < total, w, Uint32(0)) for w in words]
                    lib.store_words(mQ[row, None].iterator + col, kept, self.vec, self.out_align)
            else:
                there = inside if cutlass.const_expr(r == 0) else inside & (row < total)
                if there & (col % self.group == 0):
                    mS[row, group] = scale
                if there:
                    lib.store_words(mQ[row, None].iterator + col, words, self.vec, self.out_align)

    def readable(self, first, step, total):
        """`first + step`, or the last row: with packed scales there may be threads for rows that are none."""
        return first if self.scales != "packed" and step == 0 else cutlass.min(first + step, total - 1)

    @cute.jit
    def store_packed(self, mS: cute.Tensor, row: Int32, total: Int32, group: Int32, code: Uint32, col: Int32):
        """Write the ue8m0 codes of four groups as one word. `code` is zero where there is no group or no row; memory
        may end with the last row of the last column."""
        words = -(-self.groups // 4)
        word = lib.four_groups(code, group, self.group // self.vec)
        rounded = (total + 3) // 4 * 4
        held = (row < total) | ((row < rounded) & (group // 4 < words - 1))
        if (col % (4 * self.group) == 0) & (group < self.groups) & held:
            mS[row, group // 4] = Int32(word)
