"""Rows of a matrix spread over threads: how norms, softmax and quantisation read, reduce and write them.

A row is read in accesses of `vec` elements; access i of a thread is vector `i * threads + lane` of the row, so that
neighbouring threads touch neighbouring memory. What a thread holds is a register tensor (vec, accesses).
"""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64, Uint16

from porter.corpus.lib.blocks import combine, identity, tree_reduce
from porter.corpus.lib.inline import asm
from porter.corpus.lib.integers import select
from porter.corpus.lib.memory import shared
from porter.corpus.lib.packed import prefetch_bytes, store_words
from porter.corpus.lib.pointers import assume_aligned
from porter.corpus.lib.sync import in_first_blocks
from porter.corpus.lib.warp import shfl_xor
from porter.corpus.library import add_old_names


@dataclass(frozen=True)
class Rows:
    """How the rows of a block are spread: static choices.

    length: elements of a row.  vec: elements of an access, a power of two that divides `length`.
    threads: threads of one row; below a warp, or with several rows a block, a power of two.  rows: rows of a block.
    """

    length: int
    vec: int
    threads: int
    rows: int = 1

    @property
    def accesses(self) -> int:
        """Accesses a thread makes to read its part of a row."""
        return -(-self.length // (self.vec * self.threads))

    @property
    def warps(self) -> int:
        """Warps of one row (1 when a row takes less than a warp)."""
        return max(1, -(-self.threads // 32))

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    def thread_coord(self):
        """(row of this thread within its block, lane of the thread within the row), Int32."""
        tidx = cute.arch.thread_idx()[0]
        if self.rows == 1:
            return Int32(0), tidx
        return tidx // self.threads, tidx % self.threads

    def thread_row(self, total):
        """(row of this thread, lane within it, whether it is below `total`: True where a block has one row), Int32."""
        row_in_block, lane = self.thread_coord()
        row = cute.arch.block_idx()[0] * self.rows + row_in_block
        return row, lane, True if self.rows == 1 else row < total

    def row_slice(self, mX: cute.Tensor, row: Int32):
        """Row `row` of a (T, H) tensor; of a (T, inner, H) tensor that of its first two dimensions taken as one.
        Offsets are 64-bit (`mad.lo.s64`)."""
        if cute.rank(mX) == 2:
            return mX[row, None]
        inner = cute.size(mX, mode=[1])
        return mX[row // inner, row % inner, None]

    def load(self, gX, lane, inside=True):
        """This thread's part of a row of global memory; zeros beyond its end, and if not `inside` (a row that is none).

        Becomes `ld.global.v4.b32`. Loads are predicated, never branched around, and stay in the order of the program:
        all of them are on their way before the first is waited for. Measured on an H200: with `L1::no_allocate`
        rms_norm 8192x7168 takes 4 % longer, with `L1::evict_first` as long as that; `.nc` would be moved ahead of
        `pdl_wait`.
        """
        tXrX = cute.make_rmem_tensor((self.vec, self.accesses), gX.element_type)
        for i in range(self.accesses):
            load_vector(
                tXrX[None, i].iterator,
                gX.iterator + self.access_start(i, lane),
                self.vec,
                self.access_predicate(i, lane, inside),
            )
        return tXrX

    def load_early(self, mW, lane, prefetch="none"):
        """`load` of a weight (None where there is none) while the row is on its way, if that takes few registers (at
        most two accesses) or there are few blocks, which is when it is prefetched; else None."""
        early = mW is not None and (self.accesses <= 2 or prefetch in ("weight", "all"))
        return self.load(mW, lane) if early else None

    def load_late(self, mW, lane, tXrW):
        """`load` of a weight that `load_early` left, for when the row is there: its time passes while that is reduced.
        After the reduction, an H200 takes up to a fifth longer for 1024 rows."""
        return self.load(mW, lane) if mW is not None and tXrW is None else tXrW

    @cute.jit
    def store(self, gX: cute.Tensor, lane: Int32, tXrX: cute.Tensor, inside=True):
        """Write this thread's part of a row (`st.global.v4.b32`), or nothing if not `inside`."""
        for i in cutlass.range_constexpr(self.accesses):
            if cutlass.const_expr(inside is True and self._is_full(i)):  # noqa: SIM114 (only the second is dynamic)
                store_vector(gX.iterator + self.access_start(i, lane), tXrX[None, i].iterator, self.vec)
            elif self.access_predicate(i, lane, inside):
                store_vector(gX.iterator + self.access_start(i, lane), tXrX[None, i].iterator, self.vec)

    def prefetch(self, what, gXs, mW, lane, inside, prefetch_blocks=0):
        """Prefetch the "weight", "rows", both ("all") or "none" into the L2 cache; for rows in the first
        `prefetch_blocks` blocks only, if that is not 0. No value is read, so this may stand before `pdl_wait`. One
        `cp.async.bulk.prefetch.L2` a row, of one thread, where the row is a whole number of 16 bytes and aligned to
        them; else one `prefetch.global.L2` for 128 bytes."""
        if mW is not None and what in ("weight", "all"):
            self.prefetch_row(mW, lane, True)
        if what in ("rows", "all"):
            early = in_first_blocks(prefetch_blocks)
            there = inside if early is True else early if inside is True else early & inside
            for gX in gXs:
                if gX is not None:
                    self.prefetch_row(gX, lane, there)

    def prefetch_next_row(self, mX, row, total, lane):
        """Prefetch row `row` of `mX`, where `total` rows reach that far, as `prefetch`."""
        self.prefetch_row(self.row_slice(mX, row), lane, row < total)

    @cute.jit
    def prefetch_row(self, gX: cute.Tensor, lane: Int32, inside):
        """Prefetch one row into L2, as `prefetch`."""
        width = gX.element_type.width
        if cutlass.const_expr(self.vec * width >= 128 and self.length * width % 128 == 0):
            wanted = (lane == 0) if inside is True else (lane == 0) & inside
            prefetch_bytes(gX.iterator, self.length * width // 8, wanted)
            return
        line = max(1, 128 // (self.vec * gX.element_type.width // 8))  # lanes that share a cache line
        for i in cutlass.range_constexpr(self.accesses):
            if self.access_predicate(i, lane, lane % line == 0 if inside is True else (lane % line == 0) & inside):
                cute.arch.prefetch((gX.iterator + self.access_start(i, lane)).llvm_ptr, cache_level="L2")

    def split(self, values):
        """Float32 values (vec, accesses) as lists of `vec` numbers, one list an access."""
        tXrV = cute.make_rmem_tensor((self.vec, self.accesses), Float32)
        tXrV.store(values)
        return [[tXrV[j, i] for j in range(self.vec)] for i in range(self.accesses)]

    def fold(self, values, op="sum", lane=None):
        """One number from the values (vec, accesses) of a thread: a chain an access, then the accesses by pairs.

        With `lane`, what lies beyond the row's end does not count; without it, it must not matter (zeros in a sum).
        """
        parts = []
        for i, access in enumerate(self.split(values)):
            part = access[0]
            for v in access[1:]:
                part = combine(part, v, op)
            if lane is not None and not self._is_full(i):
                part = select(self.access_start(i, lane) < self.length, part, identity(Float32, op))
            parts.append(part)
        return tree_reduce(parts, lambda a, b: combine(a, b, op))

    @cute.jit
    def store_words(self, gQ: cute.Tensor, lane: Int32, words, inside=True):
        """Write one-byte codes, `words[i]` the Uint32 words of access i (8 codes: `st.global.v2.b32`)."""
        for i in cutlass.range_constexpr(self.accesses):
            if cutlass.const_expr(inside is True and self._is_full(i)):  # noqa: SIM114 (only the second is dynamic)
                store_words(gQ.iterator + self.access_start(i, lane), words[i], self.vec, self.vec)
            elif self.access_predicate(i, lane, inside):
                store_words(gQ.iterator + self.access_start(i, lane), words[i], self.vec, self.vec)

    def access_start(self, i, lane):
        """Element of the row at which access i of a lane starts."""
        return (lane + i * self.threads) * self.vec

    def scratch(self, dtype=Float32):
        """Shared memory for `reduce`: one value a warp, up to a whole number of 16-byte reads."""
        return shared(dtype, -(-self.warps * self.rows // 4) * 4)

    @cute.jit
    def reduce(self, v, scratch: cute.Pointer, op: cutlass.Constexpr = "sum"):
        """Reduce `v` over the threads of each row; every thread gets its row's result, the same bits in each.

        Within a warp by xor shuffles from 16 down to 1, then over the warps by halves. One `bar.sync` when a row has
        several warps, none otherwise; a second use of the same scratch needs a barrier in between.
        """
        offset = min(self.threads, 32) // 2
        while cutlass.const_expr(offset > 0):
            v = combine(v, shfl_xor(v, offset), op)
            offset //= 2
        if cutlass.const_expr(self.warps > 1):
            tidx = cute.arch.thread_idx()[0]
            warp, used = tidx // 32, self.warps * self.rows
            if tidx % 32 == 0:
                scratch[warp] = v
            if cutlass.const_expr(used % 4 != 0):  # noqa: SIM102 (the compiler reads four values at once)
                if tidx < 4 - used % 4:
                    scratch[used + tidx] = type(v)(0)
            cute.arch.sync_threads()
            v = self._over_warps(v, scratch, (warp // self.warps) * self.warps if self.rows > 1 else Int32(0), op)
        return v

    def _over_warps(self, v, scratch, first, op):
        # every thread reads all partial results (broadcasts): quicker than a second round of shuffles
        values = [type(v)(scratch[first + w]) for w in range(self.warps)]
        return tree_reduce(values, lambda a, b: combine(a, b, op))

    def access_predicate(self, i, lane, inside):
        within = True if self._is_full(i) else self.access_start(i, lane) < self.length
        return within if inside is True else inside if within is True else inside & within

    def _is_full(self, i):
        return (i + 1) * self.threads * self.vec <= self.length


def _words(dtype, count):
    """(type, number) of the words that move `count` elements of `dtype` in one access."""
    nbytes = count * dtype.width // 8
    word = {1: cutlass.Uint8, 2: cutlass.Uint16}.get(nbytes, cutlass.Uint32)
    return word, max(1, nbytes // 4)


def load_vector(dst, src, count, inside=True, most=16):
    """`count` elements from global memory to registers, in accesses of `most` bytes at most, to which `src` is aligned:
    16 bytes `ld.global.v4.b32`; 32 bytes (sm_100 on) `.v8.b32`. Zeros if not `inside`. In place: the compiler would
    move a plain load down to its first use."""
    size = dst.dtype.width // 8
    if count * size > most:
        step = most // size
        for start in range(0, count, step):
            load_vector(dst + start, src + start, step, inside, most)
        return
    word, n = _words(dst.dtype, count)
    results = ", ".join(f"${i}" for i in range(n))
    kind = f".v{n}.b32 {{{results}}}" if n > 1 else f".b{word.width} {results}"
    load = f"ld.global{kind}, [${n}];"
    operands = [Int64(src.toint())]
    if inside is not True:
        zeros = " ".join(f"mov.b{max(word.width, 16)} ${i}, 0;" for i in range(n))
        load = f"{{ .reg .pred p; setp.ne.b32 p, ${n + 1}, 0; {zeros} @p {load} }}"
        operands.append(Int32(inside))
    register = word if word.width > 8 else Uint16
    words = asm(load, [register] * n, operands, volatile=True, early=inside is not True)
    for i, value in enumerate(words if n > 1 else [words]):
        (cute.recast_ptr(dst, dtype=word) + i).store(word(value))


def store_vector(dst, src, count, most=16):
    """`count` elements from registers to global memory, in accesses of `most` bytes (16: `st.global.v4.b32`)."""
    size = src.dtype.width // 8
    if count * size > most:
        step = most // size
        for start in range(0, count, step):
            store_vector(dst + start, src + start, step, most)
        return
    word, n = _words(src.dtype, count)
    align = n * word.width // 8
    wide = assume_aligned(dst, word, align)
    if n == 1:
        wide.store(cute.recast_ptr(src, dtype=word).load())
    else:
        layout = cute.make_layout(n)
        cute.make_tensor(wide, layout).store(cute.make_tensor(cute.recast_ptr(src, dtype=word), layout).load())


add_old_names(__name__)
