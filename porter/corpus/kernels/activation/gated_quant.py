"""silu(gate) * up as e4m3 with one given scale, or as e4m3 or int8 with a scale for every 64 or 128 outputs."""

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


@dataclass(frozen=True)
class GatedQuant(ChunkedRows, Specialisation):
    """Static choices of silu_and_mul with quantised output.

    group 0: one given scale; the product is rounded to the dtype as silu_and_mul rounds it, then multiplied by
    1/scale. Else a scale for every `group` outputs, whose threads are neighbours in a warp: the product stays in
    float32 and is divided by the scale. transposed: the scales of one group are neighbours in memory.
    codes: "e4m3", with groups also "i8", without also "e5m2".  bounded: there is a largest scale.
    align, out_align: bytes of an access at most.
    prefetch, prefetch_blocks, streaming: as for Gated.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int = 1
    group: int = 0
    codes: str = "e4m3"
    transposed: bool = False
    bounded: bool = False
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        codes = rows_of(self.codes, "T", self.d, min(self.out_align, self.vec))
        scales = vector("f32", 1, 4)
        if self.group:
            strides = (1, None) if self.transposed else (None, 1)
            scales = written(Tensor("f32", ("T", self.d // self.group), strides, 4))
        bound = vector("f32", 1, 4) if self.bounded else None
        return written(codes), rows_of(self.dtype, "T", 2 * self.d, wide), scales, bound

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, d), codes
        mX: cute.Tensor,  # (T, 2 d): gate, up
        mS: cute.Tensor,  # (1,), or (T, d / group), written
        mUpper: cute.Tensor | None,  # (1,): largest scale
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mS, mUpper).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mUpper: cute.Tensor | None):
        T = cutlass_type(self.dtype)
        nbytes = self.vec * T.width // 8
        first, col = lib.rows_and_column(self)
        inside = col < self.d
        column = cutlass.min(col, self.d - self.vec)  # all lanes take part in the shuffles
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(nbytes) & inside & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                gX = mX[lib.clamped_row(first, r, mX), None].iterator + column
                for half in cutlass.range_constexpr(2):
                    lib.prefetch_line(gX + half * self.d, wanted)
        lib.pdl_wait()

        upper = Float32(mUpper[0]) if cutlass.const_expr(mUpper is not None) else None  # type: ignore[index]
        tXrX, kind = [], lib.STREAMING if self.streaming else lib.CACHED
        for r in cutlass.range_constexpr(self.rows):
            gX = mX[lib.clamped_row(first, r, mX), None].iterator + column
            halves = [lib.load_words(gX + half, nbytes, kind, self.align) for half in (0, self.d)]
            tXrX.append(halves)
        given = None
        if cutlass.const_expr(self.group == 0):
            (scale,) = lib.load_words(mS.iterator, 4, lib.CACHED)
            given = lib.rcp_rn(scale.bitcast(Float32))  # it branches: before a load, it would hold that back
        for r in cutlass.range_constexpr(self.rows):
            gate, up = tXrX[r]
            row = first + r
            there = inside if cutlass.const_expr(r == 0) else inside & (row < mX.shape[0])
            if cutlass.const_expr(self.group == 0):
                codes = self.static_codes(gate, up, given, T)
            else:
                product = self.product(gate, up, T)
                largest = lib.warp_max(lib.absmax(product), width=self.group // self.vec)
                if cutlass.const_expr(self.codes == "e4m3"):
                    scale = lib.dynamic_scale(largest, upper)
                    codes = lib.divided_codes(product, scale, self.bounded)
                else:
                    scale = lib.dynamic_int8_scale(largest, upper)
                    codes = lib.divided_int8_codes(product, scale, self.bounded)
                if there & (col % self.group == 0):
                    mS[row, col // self.group] = scale
            if there:
                lib.store_words(mQ[row, None].iterator + col, codes, self.vec, self.out_align)

    def static_codes(self, gate, up, inverse, T):
        """Codes with the given 1/scale: silu rounded to T, the product rounded to T, then the product with 1/scale."""
        act = lib.silu_exact if T is Float32 else lib.silu
        y = lib.mul_words(lib.pack([act(x) for x in lib.unpack(gate, self.vec, T)], T), up, T)
        return lib.pack_fp8([v * inverse for v in lib.unpack(y, self.vec, T)], self.codes)

    def product(self, gate, up, T):
        """gate * sigmoid(gate) * up in float32."""
        gates, ups = lib.unpack(gate, self.vec, T), lib.unpack(up, self.vec, T)
        return [g * lib.sigmoid(g) * u for g, u in zip(gates, ups, strict=True)]
