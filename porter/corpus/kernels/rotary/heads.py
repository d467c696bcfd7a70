"""The heads of a token that turn: how threads share them, where they lie, and what they are read and written with."""

from dataclasses import dataclass

import cutlass.cute as cute
from cutlass import Int32, Int64, Uint32

from porter.corpus import lib
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Tensor
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class TurningHeads(Specialisation):
    """Static choices that rotary kernels share.

    rot: rotated elements of a head, from `offset` on.  neox: pairs are (i, i + rot/2), else (2i, 2i + 1).
    pairs: pairs of a thread and head.  lanes: threads that share the heads of a token for the same pairs, in each of
    `splits` blocks.  tokens: tokens of a block.  A thread reads its cosines and sines once for all its heads.
    align: bytes that every access may be wide.  flat: the heads of a token are one dimension.
    prefetch: heads and angles are prefetched into L2 before the previous kernel has finished, by the first
    `prefetch_blocks` blocks (0: all); a position that it still writes costs nothing but that.
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
    prefetch_blocks: int = 0

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

    def heads_of(self, dtype, count, stride, align):
        """A (T, count, head size) tensor, or (T, count * head size) if flat."""
        multiple = align // scalar(dtype).bytes
        if self.flat:
            return Tensor(dtype, ("T", count * self.head_size), (None, 1), align, multiple)
        return Tensor(dtype, ("T", count, self.head_size), (None, stride, 1), align, multiple)

    def thread_coord(self):
        """(token, first head, first pair) of this thread, Int32."""
        block, thread = Uint32(cute.arch.block_idx()[0]), Uint32(cute.arch.thread_idx()[0])
        lane = thread // self.slots
        token = Int32(block // self.splits * self.tokens + lane // self.lanes)
        head = Int32(block % self.splits * self.lanes + lane % self.lanes)
        return token, head, Int32(thread % self.slots) * self.pairs

    def clamped_head(self, head, h):
        """The head h steps after a thread's first, or its first where that is none: one that it may read."""
        whole = h + self.lanes * self.splits <= self.heads
        return head + h if whole else lib.select(head + h < self.heads, head + h, head)

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
            return (lib.load_words(spot, 2 * nbytes, lib.STREAMING, self.align),)
        return tuple(lib.load_words(spot + i, nbytes, lib.STREAMING, self.align) for i in (0, self.rot // 2))

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

    def prefetch_input(self, mPos, mQ, mK, mCS, token, head, first):
        """Prefetch what this thread and its neighbours will load."""
        wanted = self.first_in_cache_line(first, scalar(self.dtype).bytes * (1 if self.neox else 2))
        for h in range(0, self.heads, self.lanes * self.splits):
            spot = self.spot(mQ, mK, token, self.clamped_head(head, h), self.element(first))
            lib.prefetch_line(spot, wanted)
            if self.neox:
                lib.prefetch_line(spot + self.rot // 2, wanted)
        # the position may be of an earlier step, or anything: it is read again after the wait
        position = Int32(lib.ld_relaxed(mPos.iterator + token, Int64))
        position = lib.imax(lib.imin(position, mCS.shape[0] - 1), Int32(0))
        gC, wanted = mCS[position, None].iterator, self.first_in_cache_line(first, scalar(self.cache).bytes)
        lib.prefetch_line(gC + first, wanted)
        lib.prefetch_line(gC + self.rot // 2 + first, wanted)

    def first_in_cache_line(self, pair, size):
        """Whether a thread's pairs, of `size` bytes each, are the first in their 128 bytes."""
        return pair % max(self.pairs, 128 // size) == 0
