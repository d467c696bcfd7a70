"""Rows of numbers to e2m1 or e4m3 codes with a scale of one byte for every 16 or 32: NVFP4, MXFP4, MXFP8."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.lib.quantisation.block_scales import BlockScales
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class BlockScaled(ChunkedRows, Specialisation):
    """Static choices. A thread has a part of a block, a whole one, or two or four; parts are neighbours in a warp.

    d: numbers of a row of the input.  scales: of rows of the output, which may be longer: zeros follow.
    act: "" or the activation of a gate, "silu" or "gelu_tanh": the input is (T, 2 d), and what is quantised is the
    product, rounded to the dtype once.  guard: rows that are none are not read, else the last one stands for them.
    align, out_align: bytes of an access at most.  prefetch, prefetch_blocks, streaming: as for Gated.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int
    scales: BlockScales
    act: str = ""
    guard: bool = False
    align: int = 16
    out_align: int = 16
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def chunks(self) -> int:
        """Blocks that share a row; those of tiled scales also have threads for what fills up a tile."""
        width = max(self.scales.columns * self.scales.group, self.scales.length)
        return -(-width // (self.vec * self.threads))

    @property
    def parts(self) -> int:
        """Numbers of the input for one of the output."""
        return 2 if self.act else 1

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        code_bytes = self.scales.code_bytes(self.vec)
        held = "u8" if self.scales.codes == "e2m1" else "e4m3"
        codes = rows_of(held, "T", self.scales.code_bytes(self.scales.length), min(self.out_align, code_bytes))
        given = vector("f32", 1, 4) if self.scales.scales == "e4m3" else None
        x = rows_of(self.dtype, "T", self.parts * self.d, wide)
        return written(codes), x, written(Tensor(*self.scales.argument())), given

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, bytes of codes of a row)
        mX: cute.Tensor,  # (T, d), or (T, 2 d)
        mS: cute.Tensor,  # bytes of scales, (T, d / group) or whole tiles
        mG: cute.Tensor | None,  # (1,): the tensor's scale
        blocks: Int32,
        stream,
    ):
        self.kernel(mQ, mX, mS, mG).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mG: cute.Tensor | None):
        scales, T = self.scales, cutlass_type(self.dtype)
        nbytes, total = self.vec * T.width // 8, mX.shape[0]
        first, col = lib.rows_and_column(self)
        column = cutlass.min(col, self.d - self.vec)  # all lanes take part in the shuffles
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            wanted = lib.first_in_cache_line(nbytes) & (col < self.d) & lib.in_first_blocks(self.prefetch_blocks)
            for r in cutlass.range_constexpr(self.rows):
                there = wanted & (first + r < total)
                gX = mX[cutlass.min(first + r, total - 1), None].iterator + column
                for part in cutlass.range_constexpr(self.parts):
                    lib.prefetch_line(gX + part * self.d, there)
        lib.pdl_wait()

        tXrX, kind = [], lib.STREAMING if self.streaming else lib.CACHED
        for r in cutlass.range_constexpr(self.rows):
            inside = (col < self.d) & (first + r < total) if cutlass.const_expr(self.guard) else True
            gX = mX[cutlass.min(first + r, total - 1), None].iterator + column
            tXrX.append([
                lib.load_words(gX + part * self.d, nbytes, kind, self.align, inside) for part in range(self.parts)
            ])  # fmt: skip
        given = None
        if cutlass.const_expr(mG is not None):
            (word,) = lib.load_words(mG.iterator, 4, lib.CACHED)  # type: ignore[union-attr]
            given = word.bitcast(Float32)
        for r in cutlass.range_constexpr(self.rows):
            row = first + r
            codes, code = scales.encode(self.values(tXrX[r], T), given)
            there = (col < self.d) & (row < total)
            self.store_scales(mS, row, col, lib.select(there, code, Uint32(0)))
            if cutlass.const_expr(scales.length > self.d):
                codes = [lib.select(there, w, Uint32(0)) for w in codes]
            if (col < scales.length) & (row < total):
                gQ = mQ[row, None].iterator + scales.code_bytes(col)
                lib.store_words(gQ, codes, scales.code_bytes(self.vec), self.out_align)

    def values(self, parts, T):
        """Float32 values of a thread's vectors of a row."""
        if not self.act:
            return lib.unpack(parts[0], self.vec, T)
        gates, ups = (lib.unpack(p, self.vec, T) for p in parts)
        act = lib.gelu_tanh if self.act == "gelu_tanh" else lib.silu_exact if T is Float32 else lib.silu
        return lib.round_each([lib.mul_rn(act(g), u) for g, u in zip(gates, ups, strict=True)], T)

    @cute.jit
    def store_scales(self, mS: cute.Tensor, row: Int32, col: Int32, code: Uint32):
        """Write a thread's scales, by the first lane of a block."""
        scales = self.scales
        there = (row < mS.shape[0]) & (col < scales.columns * scales.group)
        if cutlass.const_expr(self.vec < scales.group):
            there = there & (col % scales.group == 0)
        if there:
            scales.store(mS, row, col, code, max(1, self.vec // scales.group))
