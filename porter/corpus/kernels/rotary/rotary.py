"""Rotary position embedding of query and key heads, in place, from a table of cosines and sines."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64, Uint32

from porter.corpus import lib
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor, vector
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Rotary(Specialisation):
    """Static choices of a rotary embedding.

    rot: rotated elements of a head, from `offset` on.  neox: pairs are (i, i + rot/2), else (2i, 2i + 1).
    pairs: pairs of a thread and head.  lanes: threads that share the heads of a token for the same pairs, in each of
    `splits` blocks.  tokens: tokens of a block.  A thread reads its cosines and sines once for all its heads.
    align: bytes that every access may be wide.  flat: the heads of a token are one dimension.
    prefetch: heads and angles are asked for in L2 before the previous kernel has finished; a position that it still
    writes costs nothing but that.
    """

    dtype: str
    cache: str
    q_heads: int
    k_heads: int  # 0: no key
    head_size: int
    rot: int
    q_stride: int  # elements from head to head
    k_stride: int
    pairs: int
    lanes: int
    splits: int = 1
    tokens: int = 1
    neox: bool = True
    inverse: bool = False
    offset: int = 0
    align: int = 16
    flat: bool = False
    pdl: bool = True
    prefetch: bool = False
    lead: int = 0

    @property
    def slots(self) -> int:
        """Threads that share the pairs of a head."""
        return self.rot // 2 // self.pairs

    @property
    def threads(self) -> int:
        return self.tokens * self.lanes * self.slots

    @property
    def heads(self) -> int:
        return self.q_heads + self.k_heads

    @property
    def table_align(self) -> int:
        """Bytes of an access to the table."""
        size = scalar(self.cache).bytes
        return max(size, min(self.align, self.pairs * size))

    def blocks(self, tokens: int) -> int:
        """Blocks of a launch over so many tokens."""
        return -(-tokens // self.tokens) * self.splits

    def arguments(self):
        size = scalar(self.dtype).bytes
        align = min(self.align, size * self.pairs * (1 if self.neox else 2))

        def heads(count, stride):
            return self.heads_of(self.dtype, count, stride, align)

        key = heads(self.k_heads, self.k_stride) if self.k_heads else None
        table = Tensor(self.cache, ("P", self.rot), (self.rot, 1), self.table_align)
        return vector("i64", "T", 8), heads(self.q_heads, self.q_stride), key, table

    def heads_of(self, dtype, count, stride, align):
        """A (T, count, head size) tensor, or (T, count * head size) if flat."""
        multiple = align // scalar(dtype).bytes
        if self.flat:
            return Tensor(dtype, ("T", count * self.head_size), (None, 1), align, multiple)
        return Tensor(dtype, ("T", count, self.head_size), (None, stride, 1), align, multiple)

    @cute.jit
    def __call__(
        self,
        mPos: cute.Tensor,  # (T,) int64
        mQ: cute.Tensor,  # (T, q heads, head size)
        mK: cute.Tensor | None,  # (T, k heads, head size)
        mCS: cute.Tensor,  # (positions, rot): cosines, then sines
        blocks: Int32,
        stream,
    ):
        self.kernel(mPos, mQ, mK, mCS).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(self, mPos: cute.Tensor, mQ: cute.Tensor, mK: cute.Tensor | None, mCS: cute.Tensor):
        token, head, first = self.place()
        step = self.lanes * self.splits
        there = (token < mQ.shape[0]) & (head < self.heads)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):  # noqa: SIM102 (only the second is dynamic)
            if there & lib.leading(self.lead):
                self.ask(mPos, mQ, mK, mCS, token, head, first)
        lib.pdl_wait()
        if there:
            position = mPos[token]
            spots, loaded = [], []
            for h in cutlass.range_constexpr(0, self.heads, step):
                spots.append(self.spot(mQ, mK, token, self.mine(head, h), self.element(first)))
                loaded.append(self.load(spots[-1]))
            gC = mCS[position, None].iterator + first
            cos, sin = self.table(gC), self.table(gC + self.rot // 2)
            for i in cutlass.range_constexpr(len(spots)):
                rotated = self.rotate(loaded[i], cos, sin)
                if cutlass.const_expr((i + 1) * step <= self.heads) or head + i * step < self.heads:
                    self.store(spots[i], rotated)

    def place(self):
        """(token, first head, first pair) of this thread, Int32."""
        block, thread = Uint32(cute.arch.block_idx()[0]), Uint32(cute.arch.thread_idx()[0])
        lane = thread // self.slots
        token = Int32(block // self.splits * self.tokens + lane // self.lanes)
        head = Int32(block % self.splits * self.lanes + lane % self.lanes)
        return token, head, Int32(thread % self.slots) * self.pairs

    def mine(self, head, h):
        """The head h steps after a thread's first, or its first where that is none: one that it may read."""
        whole = h + self.lanes * self.splits <= self.heads
        return head + h if whole else lib.select(head + h < self.heads, head + h, head)

    def ask(self, mPos, mQ, mK, mCS, token, head, first):
        """Prefetch what this thread and its neighbours will load."""
        line = max(1, 128 // (self.pairs * scalar(self.dtype).bytes))
        wanted = first % (line * self.pairs) == 0
        for h in range(0, self.heads, self.lanes * self.splits):
            spot = self.spot(mQ, mK, token, self.mine(head, h), self.element(first))
            lib.prefetch_line(spot, wanted)
            if self.neox:
                lib.prefetch_line(spot + self.rot // 2, wanted)
        # the position may be of an earlier step, or anything: it is read again after the wait
        position = Int32(lib.peek(mPos.iterator + token, Int64))
        position = lib.imax(lib.imin(position, mCS.shape[0] - 1), Int32(0))
        gC = mCS[position, None].iterator
        lib.prefetch_line(gC + first, wanted)
        lib.prefetch_line(gC + self.rot // 2 + first, wanted)

    def element(self, pair):
        """Index in a head of the first element of a pair."""
        return self.offset + pair * (1 if self.neox else 2)

    def spot(self, mQ, mK, token, head, element):
        """Pointer to an element of a head of q, or of k behind them."""
        T = mQ.element_type
        where = lib.address(self.token_of(mQ, token) + (self.to_head(head, self.q_stride) + element))
        if self.k_heads:
            head = head - self.q_heads
            key = self.token_of(mK, token) + (self.to_head(head, self.k_stride) + element)
            where = lib.select(head < 0, where, lib.address(key))
        return cute.make_ptr(T, where, cute.AddressSpace.gmem, assumed_align=max(1, T.width // 8))

    def to_head(self, head, stride):
        """Elements from a token's first head to another, in 64 bits where 32 may not hold them."""
        return (Int64(head) if self.heads * stride + self.head_size >= 1 << 31 else head) * stride

    def token_of(self, mQ, token):
        """Pointer to the heads of a token."""
        return (mQ[token, None] if cute.rank(mQ) == 2 else mQ[token, 0, None]).iterator

    def load(self, spot):
        """The two halves of a thread's pairs: two vectors (neox), or one of interleaved pairs."""
        nbytes = self.pairs * scalar(self.dtype).bytes
        if not self.neox:
            return (lib.load_words(spot, 2 * nbytes, lib.STREAM, self.align),)
        return tuple(lib.load_words(spot + i, nbytes, lib.STREAM, self.align) for i in (0, self.rot // 2))

    def store(self, spot, halves):
        nbytes = self.pairs * scalar(self.dtype).bytes
        if not self.neox:
            lib.store_words(spot, halves[0], 2 * nbytes, self.align)
        else:
            for i, words in zip((0, self.rot // 2), halves, strict=True):
                lib.store_words(spot + i, words, nbytes, self.align)

    def table(self, gC):
        """Cosines (or sines) of a thread's pairs, Float32."""
        nbytes = self.pairs * scalar(self.cache).bytes
        words = lib.load_words(gC, nbytes, lib.CACHED, self.table_align)
        return lib.unpack(words, self.pairs, cutlass_type(self.cache))

    def rotate(self, halves, cos, sin):
        """A thread's pairs turned, rounded once, as vectors like those that were loaded."""
        T = cutlass_type(self.dtype)
        return tuple(lib.pack(values, T) for values in self.turn(halves, cos, sin))

    def turn(self, halves, cos, sin):
        """(x c - y s, y c + x s) of every pair in float32, the second product fused; lists in the order of memory."""
        T, n = cutlass_type(self.dtype), self.pairs
        if self.neox:
            x, y = (lib.unpack(words, n, T) for words in halves)
        else:
            both = lib.unpack(halves[0], 2 * n, T)
            x, y = both[::2], both[1::2]
        sin = [-s for s in sin] if self.inverse else sin
        a = [lib.fma(x[i], cos[i], -lib.mul_rn(y[i], sin[i])) for i in range(n)]
        b = [lib.fma(y[i], cos[i], lib.mul_rn(x[i], sin[i])) for i in range(n)]
        return (a, b) if self.neox else ([v for pair in zip(a, b, strict=True) for v in pair],)
