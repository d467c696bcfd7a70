"""RMS norm and rotary embedding of each head of q and k in one launch, in place in a packed qkv tensor."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.norms import inverse_rms
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class QkNormRope(Specialisation):
    """Static choices. A row is one head of one token, float32 from its load to its store, rounded once.

    rows: spread so that a thread holds both elements of every pair. With neox (pairs i and i + rot/2) its accesses meet
    rot/2 exactly; else (pairs 2i, 2i + 1) an access holds whole pairs.  rot: rotated elements, the first of a head.
    batch: rows that a thread has in flight.  v_heads: heads behind q and k that stay as they are.
    prefetch, prefetch_blocks: as for QkNorm; angles are not prefetched.
    """

    dtype: str
    cache: str  # dtype of the cosines and sines
    q_heads: int
    k_heads: int
    v_heads: int
    rows: Rows
    rot: int
    neox: bool = True
    batch: int = 1
    pdl: bool = True
    prefetch: bool = False
    prefetch_blocks: int = 0

    @property
    def threads(self) -> int:
        return self.rows.block

    @property
    def step(self) -> int:
        """Accesses from one element of a pair to the other (neox)."""
        return self.rot // 2 // (self.rows.vec * self.rows.threads)

    def arguments(self):
        align = self.rows.vec * scalar(self.dtype).bytes
        heads = self.q_heads + self.k_heads + self.v_heads
        qkv = rows_of(self.dtype, "T", heads * self.rows.length, align)
        w = vector(self.dtype, self.rows.length, align)
        table = Tensor(self.cache, ("P", self.rot), (self.rot, 1), scalar(self.cache).bytes)
        return written(qkv), w, w, table, vector("i64", "T", 8), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mX: cute.Tensor,  # (T, (q_heads + k_heads + v_heads) * D)
        mWq: cute.Tensor,  # (D,)
        mWk: cute.Tensor,  # (D,)
        mCS: cute.Tensor,  # (positions, rot): cosines, then sines
        mPos: cute.Tensor,  # (T,) int64
        eps: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mX, mWq, mWk, mCS, mPos, eps).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mX: cute.Tensor,
        mWq: cute.Tensor,
        mWk: cute.Tensor,
        mCS: cute.Tensor,
        mPos: cute.Tensor,
        eps: Float32,
    ):
        rows, T = self.rows, cutlass_type(self.dtype)
        row_in_block, lane = rows.thread_coord()
        first = cute.arch.block_idx()[0] * (self.batch * rows.rows) + row_in_block
        lib.pdl_launch_dependents()
        places = [self.head_row(mX, first + i * rows.rows) for i in range(self.batch)]
        if cutlass.const_expr(self.prefetch):
            for gX, inside, _, _ in places:
                rows.prefetch_row(gX, lane, inside & lib.in_first_blocks(self.prefetch_blocks))
        lib.pdl_wait()

        loaded = []
        for gX, inside, head, token in places:
            loaded.append((gX, rows.load(gX, lane, inside), inside, head < self.q_heads, mPos[token]))
        tXrWq, tXrWk = rows.load(mWq, lane), rows.load(mWk, lane)
        tXrW = cute.make_rmem_tensor_like(tXrWq)
        for i in cutlass.range_constexpr(self.batch):
            gX, tXrX, inside, is_q, position = loaded[i]
            cos, sin = self.table(mCS[position, None], lane)
            tXrW.store(tXrWq.load())
            if not is_q:
                tXrW.store(tXrWk.load())
            x = tXrX.load().to(Float32)
            accesses = rows.split(x * (tXrW.load().to(Float32) * inverse_rms(rows, x, eps, None)))
            rotated = self.rotate(accesses, cos, sin, lane)
            for j in cutlass.range_constexpr(rows.accesses):
                for e in cutlass.range_constexpr(rows.vec):
                    tXrX[e, j] = T(rotated[j][e])
            rows.store(gX, lane, tXrX, inside)

    def head_row(self, mX, row):
        """(row `row` as a (D,) tensor, whether there is such a row, its head, its token: 0 if there is none)."""
        row, heads = Uint32(row), self.q_heads + self.k_heads
        token, head = Int32(row // heads), Int32(row % heads)
        inside = token < mX.shape[0]
        token = lib.select(inside, token, Int32(0))
        length = self.rows.length
        return cute.make_tensor(mX[token, None].iterator + head * length, cute.make_layout(length)), inside, head, token

    def table(self, gC, lane):
        """Cosines and sines of this thread's pairs, Float32: lists of one list for each access that holds firsts."""
        rows, C = self.rows, cutlass_type(self.cache)
        count = rows.vec if self.neox else rows.vec // 2  # pairs of an access
        accesses = self.step if self.neox else rows.accesses
        found = []
        for half in (0, self.rot // 2):
            values = []
            for i in range(accesses):
                at = rows.access_start(i, lane) if self.neox else rows.access_start(i, lane) // 2
                at = lib.select(at < self.rot // 2, at, Int32(0))  # elements that stay need no angle
                words = lib.load_words(
                    gC.iterator + half + at, count * C.width // 8, lib.CACHED, self.table_align(count)
                )
                values.append(lib.unpack(words, count, C))
            found.append(values)
        return found

    def table_align(self, count):
        """Bytes that every row and half of the table are aligned to, for accesses of `count` elements."""
        size = scalar(self.cache).bytes
        both = count * size | self.rot // 2 * size
        return max(size, min(16, both & -both))

    def rotate(self, accesses, cos, sin, lane):
        """(x c - y s, y c + x s) for every pair of the first `rot` elements; the second product is fused."""
        rows, out = self.rows, [list(a) for a in accesses]
        if self.neox:
            for i in range(self.step):
                for e in range(rows.vec):
                    x, y, c, s = accesses[i][e], accesses[i + self.step][e], cos[i][e], sin[i][e]
                    out[i][e] = lib.fma(x, c, -lib.mul_rn(y, s))
                    out[i + self.step][e] = lib.fma(y, c, lib.mul_rn(x, s))
            return out
        for i in range(rows.accesses):
            turns = rows.access_start(i, lane) < self.rot
            for e in range(0, rows.vec, 2):
                x, y, c, s = accesses[i][e], accesses[i][e + 1], cos[i][e // 2], sin[i][e // 2]
                out[i][e] = lib.select(turns, lib.fma(x, c, -lib.mul_rn(y, s)), x)
                out[i][e + 1] = lib.select(turns, lib.fma(y, c, lib.mul_rn(x, s)), y)
        return out
