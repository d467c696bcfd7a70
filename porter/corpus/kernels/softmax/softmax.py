"""Softmax of rows that are read once and stay in registers: of a few threads up to a cluster of blocks."""

from dataclasses import dataclass
from operator import add

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation

LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class Softmax(Specialisation):
    """Static choices of a softmax.

    rows: how a row is spread; its threads are those of all `blocks_a_row` blocks, which are a cluster.
    keep: the exponentials stay in registers as float32, else they are computed twice from the input.
    prefetch: the input is prefetched into L2 before the previous kernel has finished, by the first `prefetch_blocks`
    blocks (0: all).
    prefetch_distance: a block prefetches the row that many rows further on into L2 while it waits for its own: about as
    many as run at once, so that the block which takes its place finds its row there.
    streaming: the loads leave nothing in L1.
    """

    dtype: str
    out: str
    rows: Rows
    blocks_a_row: int = 1
    temperature: bool = False
    keep: bool = True
    pdl: bool = True
    prefetch: bool = False
    prefetch_distance: int = 0
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block // self.blocks_a_row

    @property
    def cluster(self) -> int:
        return self.blocks_a_row

    def arguments(self):
        rows = self.rows
        x, y = (rows_of(t, "T", rows.length, rows.vec * scalar(t).bytes) for t in (self.dtype, self.out))
        return written(y, 1), x, vector("f32", "T", 4) if self.temperature else None

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, N)
        mX: cute.Tensor,  # (T, N)
        mTemp: cute.Tensor | None,  # (T,)
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX, mTemp).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), cluster=(self.cluster, 1, 1), stream=stream,
            use_pdl=self.pdl,
        )  # fmt: skip

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor, mTemp: cute.Tensor | None):
        rows = self.rows
        row_in_block, lane = rows.thread_coord()
        row = cute.arch.block_idx()[0] // self.cluster * rows.rows + row_in_block
        box = None
        if cutlass.const_expr(self.cluster > 1):
            box = lib.inbox(8 * self.threads // 32 * self.cluster)
            lane = lane + Int32(lib.cluster_rank()) * self.threads
        there = row < mX.shape[0] if cutlass.const_expr(rows.rows > 1) else True
        row = cutlass.min(row, mX.shape[0] - 1)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            self.prefetch_input(mX[row, None].iterator, lane, lib.in_first_blocks(self.prefetch_blocks) & there)
        if cutlass.const_expr(self.cluster > 1):
            lib.cluster_wait()  # no block sends to another one before that runs
        lib.pdl_wait()

        words = [self.load(mX[row, None].iterator, i, lane, there) for i in range(rows.accesses)]
        if cutlass.const_expr(self.prefetch_distance > 0):
            self.prefetch_input(
                mX[row + self.prefetch_distance, None].iterator, lane, row + self.prefetch_distance < mX.shape[0]
            )
        scale = Float32(LOG2E)
        if cutlass.const_expr(mTemp is not None):
            scale = lib.div_rn(scale, Float32(mTemp[row]))  # type: ignore[index]
        width = min(rows.threads, 32)
        top = lib.warp_max(self.largest(words) * scale, width)
        base = lib.finite_top(top)
        exps = [[lib.exp2_approx_ftz(lib.fma(x, scale, -base)) for x in self.values(w)] for w in words]
        total = lib.warp_sum(lib.tree_reduce([lib.tree_reduce(e, add) for e in exps], add), width)
        whole = top
        if cutlass.const_expr(rows.warps > 1):
            whole, total = lib.join_exp_sums(top, total, self.threads // 32, self.cluster, box)
        base = lib.finite_top(whole)
        factor = lib.rcp_rn(total)
        again = [lib.opaque_words(w) for w in words]
        if cutlass.const_expr(self.keep):
            factor = factor * lib.exp2_approx_ftz(top - base)
        for i in cutlass.range_constexpr(rows.accesses):
            if cutlass.const_expr(self.keep):
                ys = [e * factor for e in exps[i]]
            else:
                ys = [lib.exp2_approx_ftz(lib.fma(x, scale, -base)) * factor for x in self.values(again[i])]
            reached = rows.access_predicate(i, lane, there)
            gO = mO[row, None].iterator + rows.access_start(i, lane)
            out = cutlass_type(self.out)
            if cutlass.const_expr(reached is True):  # noqa: SIM114 (only the second is dynamic)
                lib.store_words(gO, lib.pack(ys, out), rows.vec * out.width // 8)
            elif reached:
                lib.store_words(gO, lib.pack(ys, out), rows.vec * out.width // 8)

    def prefetch_input(self, gX, lane, there):
        """Prefetch a row, or what this thread and its neighbours will load of it."""
        width = self.rows.length * scalar(self.dtype).bytes
        if cutlass.const_expr(self.rows.vec * scalar(self.dtype).bytes == 16 and width % 16 == 0):
            lib.prefetch_bytes(gX, width, (lane == 0) if there is True else (lane == 0) & there)
            return
        first = lib.first_in_cache_line(self.rows.vec * scalar(self.dtype).bytes)
        for i in range(self.rows.accesses):
            inside = self.rows.access_predicate(i, lane, there)
            lib.prefetch_line(gX + self.rows.access_start(i, lane), first if inside is True else first & inside)

    def load(self, gX, i, lane, there):
        """Access i of a thread; minus infinity beyond the row."""
        T = cutlass_type(self.dtype)
        fill = {"bf16": 0xFF80FF80, "f16": 0xFC00FC00, "f32": 0xFF800000}[self.dtype]
        inside = self.rows.access_predicate(i, lane, there)
        nbytes, kind = self.rows.vec * T.width // 8, lib.STREAMING if self.streaming else lib.CACHED
        return lib.load_words(gX + self.rows.access_start(i, lane), nbytes, kind, inside=inside, fill=fill)

    def values(self, words):
        return lib.unpack(words, self.rows.vec, cutlass_type(self.dtype))

    def largest(self, accesses):
        """Largest value of a thread; NaN is passed over."""
        T = cutlass_type(self.dtype)
        words = [w for access in accesses for w in access]
        if self.rows.vec * T.width < 32:
            return lib.tree_reduce([v for a in accesses for v in self.values(a)], lib.fmax)
        word = lib.tree_reduce(words, lambda a, b: lib.max_words(a, b, T))
        return lib.tree_reduce(lib.unpack((word,), 32 // T.width, T), lib.fmax)
