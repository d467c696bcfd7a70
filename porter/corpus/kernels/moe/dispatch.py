"""Tokens copied to the rows of their experts: routed entries sorted by expert, then a fan-out of rows."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from porter.corpus import lib
from porter.corpus.lib.moe.sorting import ExpertSort, SortsEntries
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Dispatch(SortsEntries, Specialisation):
    """Static choices.

    launches 1: every block sorts all entries by itself, in shared memory for `most` entries, having asked for its first
    rows, and copies its share of rows; no block waits for another.  launches 2: one cluster sorts, then many blocks
    copy, of `copiers` threads each.  d, vec: elements of a row and of a thread's access.  k: choices of a token.
    scales: elements of a row of scales, 0 for none.  Optional operands: order, counts, source, weights, mapped.
    """

    dtype: str
    index: str
    offset: str
    sort: ExpertSort
    launches: int
    d: int
    vec: int
    k: int
    most: int = 0
    copiers: int = 0
    scales: int = 0
    scale: str = "f32"
    order: bool = False
    counts: bool = False
    source: bool = False
    weights: bool = False
    mapped: bool = False
    pdl: bool = True

    @property
    def nbytes(self) -> int:
        return self.vec * scalar(self.dtype).bytes

    @property
    def chunks(self) -> int:
        """Parts of a row, one a block at a time."""
        return -(-self.d // (self.vec * self.movers))

    @property
    def movers(self) -> int:
        """Threads of a block that copies."""
        return self.threads if self.launches == 1 else self.copiers

    def grids(self, blocks: int):
        if self.launches == 1:
            return ((blocks, self.threads, 1),)
        return (self.cluster, self.threads, self.cluster), (blocks, self.copiers, 1)

    def arguments(self):
        out, x = (rows_of(self.dtype, rows, self.d, self.nbytes) for rows in ("L", "T"))
        out_scale, x_scale = (
            rows_of(self.scale, rows, self.scales, scalar(self.scale).bytes) if self.scales else None
            for rows in ("L", "T")
        )
        bins = self.sort.bins - self.sort.tail
        entries = vector("i32", "M", 4)
        return (
            written(out), written(out_scale) if out_scale else None,
            written(vector(self.offset, bins + 1, scalar(self.offset).bytes)),
            written(vector("i32", bins, 4)) if self.counts else None, written(entries),
            written(vector("i32", "P", 4)) if self.source else None,
            written(vector("f32", "P", 4)) if self.weights else None, x, x_scale,
            vector(self.index, "M", scalar(self.index).bytes), entries if self.order else None,
            vector("f32", "M", 4) if self.weights else None,
            vector("i32", self.sort.experts, 4) if self.mapped else None,
        )  # fmt: skip

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (L, d)
        mOS: cute.Tensor | None,  # (L, scales)
        mF: cute.Tensor,  # (bins + 1,) without the tail's
        mC: cute.Tensor | None,  # (bins,) int32
        mR: cute.Tensor,  # (M,) int32: row of each entry
        mIdx: cute.Tensor | None,  # (P,) int32: entry of each row, M for none
        mRW: cute.Tensor | None,  # (P,) float32: weight of each row
        mX: cute.Tensor,  # (T, d)
        mXS: cute.Tensor | None,  # (T, scales)
        mI: cute.Tensor,  # (M,): expert of each entry
        mT: cute.Tensor | None,  # (M,) int32: entry i stands for entry mT[i]
        mW: cute.Tensor | None,  # (M,) float32
        mMap: cute.Tensor | None,  # (experts,) int32
        blocks: Int32,
        stream,
    ):
        tensors = (mO, mOS, mF, mC, mR, mIdx, mRW, mX, mXS, mI, mT, mW, mMap)
        block = (self.threads, 1, 1)
        if cutlass.const_expr(self.launches == 1):
            self.both(*tensors).launch(grid=(blocks, 1, 1), block=block, stream=stream, use_pdl=self.pdl)
        else:
            self.only_sort(*tensors).launch(
                grid=(self.cluster, 1, 1), block=block, cluster=(self.cluster, 1, 1), stream=stream, use_pdl=self.pdl
            )
            self.only_copy(*tensors).launch(
                grid=(blocks, 1, 1), block=(self.copiers, 1, 1), stream=stream, use_pdl=self.pdl
            )

    @cute.kernel
    def both(
        self, mO: cute.Tensor, mOS: cute.Tensor | None, mF: cute.Tensor, mC: cute.Tensor | None, mR: cute.Tensor,
        mIdx: cute.Tensor | None, mRW: cute.Tensor | None, mX: cute.Tensor, mXS: cute.Tensor | None, mI: cute.Tensor,
        mT: cute.Tensor | None, mW: cute.Tensor | None, mMap: cute.Tensor | None,
    ):  # fmt: skip
        """The only launch."""
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        rows = lib.shared(Int32, self.most)
        block = cute.arch.block_idx()[0]
        held = self.load(mX, block, block < mX.shape[0] * self.chunks)
        self.route_tokens(rows, mF, mC, mR, mIdx, mRW, mI, mT, mW, mMap, block == 0)
        cute.arch.sync_threads()
        limit = Int64(mO.shape[0])
        if cutlass.const_expr(self.sort.tail):
            limit = cutlass.min(limit, Int64(rows[self.most - 1]))
        self.copy_tokens_to_experts(rows, mO, mOS, mX, mXS, held, limit)

    @cute.kernel
    def only_sort(
        self, mO: cute.Tensor, mOS: cute.Tensor | None, mF: cute.Tensor, mC: cute.Tensor | None, mR: cute.Tensor,
        mIdx: cute.Tensor | None, mRW: cute.Tensor | None, mX: cute.Tensor, mXS: cute.Tensor | None, mI: cute.Tensor,
        mT: cute.Tensor | None, mW: cute.Tensor | None, mMap: cute.Tensor | None,
    ):  # fmt: skip
        """First of two launches."""
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        self.route_tokens(None, mF, mC, mR, mIdx, mRW, mI, mT, mW, mMap, True)

    @cute.kernel
    def only_copy(
        self, mO: cute.Tensor, mOS: cute.Tensor | None, mF: cute.Tensor, mC: cute.Tensor | None, mR: cute.Tensor,
        mIdx: cute.Tensor | None, mRW: cute.Tensor | None, mX: cute.Tensor, mXS: cute.Tensor | None, mI: cute.Tensor,
        mT: cute.Tensor | None, mW: cute.Tensor | None, mMap: cute.Tensor | None,
    ):  # fmt: skip
        """Second of two launches."""
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        block = cute.arch.block_idx()[0]
        held = self.load(mX, block, block < mX.shape[0] * self.chunks)
        limit = Int64(mO.shape[0])
        if cutlass.const_expr(self.sort.tail):
            limit = cutlass.min(limit, Int64(mF[mF.shape[0] - 1]))
        self.copy_tokens_to_experts(mR.iterator, mO, mOS, mX, mXS, held, limit)

    @cute.jit
    def route_tokens(
        self, rows, mF: cute.Tensor, mC, mR: cute.Tensor, mIdx, mRW, mI: cute.Tensor, mT, mW, mMap, writes
    ):  # fmt: skip
        """Sort the entries; `rows`, shared memory, gets each one's row, global memory all results if `writes`."""
        sort, total = self.sort, mI.shape[0]
        memory = sort.memory()
        counts, _, sizes, starts, places, _ = memory
        every, bins = sort.threads * sort.cluster, sort.bins - sort.tail
        thread = sort.thread()
        if writes:
            if cutlass.const_expr(mIdx is not None):
                for i in range(thread, mIdx.shape[0], every):
                    mIdx[i] = total
            if cutlass.const_expr(mRW is not None):
                for i in range(thread, mRW.shape[0], every):
                    mRW[i] = Float32(0.0)
        sort.count(memory, mI, mMap, total)
        sort.base_places(memory)
        if writes:
            for e in range(thread, bins + 1, every):
                mF[e] = cutlass_type(self.offset)(Int32(starts[e]))
            if cutlass.const_expr(mC is not None):
                for e in range(thread, bins, every):
                    mC[e] = Int32(sizes[e])
        limit = Int32(starts[bins])
        if cutlass.const_expr(rows is not None and sort.tail):  # noqa: SIM102 (only one is dynamic)
            if cute.arch.thread_idx()[0] == 0:
                rows[self.most - 1] = limit
        first, last = sort.run(total)
        for base in range(first, last, 32 * sort.unroll):
            for entry, inside, bin_ in sort.read(mI, mMap, base, last):
                rank = sort.take(counts, bin_)
                place = Int32(-1)
                if bin_ >= 0:
                    place = Int32(places[bin_]) + rank
                if inside:
                    stands = entry
                    if cutlass.const_expr(mT is not None):
                        stands = Int32(mT[entry])
                    if (stands >= 0) & (stands < total):
                        if cutlass.const_expr(rows is not None):
                            rows[stands] = place
                        if writes:
                            mR[stands] = place
                            self.describe(place, stands, limit, mIdx, mRW, mW)
        sort.leave()

    @cute.jit
    def describe(self, place: Int32, entry: Int32, limit: Int32, mIdx, mRW, mW):
        """Write the entry and the weight of a row."""
        if (place >= 0) & (place < limit):
            if cutlass.const_expr(mIdx is not None):  # noqa: SIM102 (only one is dynamic)
                if place < mIdx.shape[0]:
                    mIdx[place] = entry
            if cutlass.const_expr(mRW is not None):  # noqa: SIM102 (only one is dynamic)
                if place < mRW.shape[0]:
                    mRW[place] = mW[entry]

    def load(self, mX, item, there):
        """This thread's words of part `item` of all rows."""
        token = lib.select(there, item // self.chunks, Int32(0))
        col = (item % self.chunks) * (self.vec * self.movers) + cute.arch.thread_idx()[0] * self.vec
        inside = there & (col < self.d)
        return lib.load_words(mX[token, None].iterator + lib.select(inside, col, Int32(0)), self.nbytes, inside=inside)

    def aim(self, rows, aims, item, items):
        """The rows that part `item` goes to, of the last part if it is beyond: read one part ahead."""
        token = cutlass.max(cutlass.min(item, items - 1), Int32(0)) // self.chunks
        for j in range(self.k):
            aims[j] = Int32(rows[token * self.k + j])

    @cute.jit
    def copy_tokens_to_experts(self, rows, mO: cute.Tensor, mOS, mX: cute.Tensor, mXS, held, limit: Int64):
        """Copy this block's share of rows, of which it holds the first part, to the rows that `rows` says."""
        block, blocks, tid = cute.arch.block_idx()[0], cute.arch.grid_dim()[0], cute.arch.thread_idx()[0]
        items = mX.shape[0] * self.chunks
        words = cute.make_rmem_tensor(len(held), cutlass.Uint32)
        for i in cutlass.range_constexpr(len(held)):
            words[i] = held[i]
        aims = cute.make_rmem_tensor(self.k, Int32)
        self.aim(rows, aims, block, items)
        for item in range(block, items, blocks):
            token = item // self.chunks
            part = item % self.chunks
            col = part * (self.vec * self.movers) + tid * self.vec
            targets = [Int32(aims[j]) for j in range(self.k)]
            mine = [cutlass.Uint32(words[i]) for i in range(len(held))]
            later = self.load(mX, item + blocks, item + blocks < items)
            self.aim(rows, aims, item + blocks, items)
            for i in cutlass.range_constexpr(len(held)):
                words[i] = later[i]
            for j in cutlass.range_constexpr(self.k):
                if (targets[j] >= 0) & (Int64(targets[j]) < limit) & (col < self.d):
                    lib.store_words(mO[targets[j], None].iterator + col, mine, self.nbytes)
            if cutlass.const_expr(self.scales > 0):  # noqa: SIM102 (only one is dynamic)
                if part == 0:
                    for s in range(tid, self.scales, self.movers):
                        value = mXS[token, s]
                        for j in cutlass.range_constexpr(self.k):
                            if (targets[j] >= 0) & (Int64(targets[j]) < limit):
                                mOS[targets[j], s] = value
