"""Kernels of one block, or of one cluster, around functions of porter.corpus.lib, for tests in the emulator."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.runtime.signature import Tensor
from porter.corpus.runtime.specialisation import Specialisation


class OnTwoTensors(Specialisation):
    """Base of kernels of a result and an input, or of two results: `block` threads, clusters of `blocks` blocks."""

    block: int = 32
    blocks: int = 1
    cooperative: bool = False

    @property
    def threads(self):
        return self.block

    @property
    def cluster(self):
        return self.blocks

    @cute.jit
    def __call__(self, mO: cute.Tensor, mX: cute.Tensor, blocks: Int32, stream):
        self.kernel(mO, mX).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), cluster=(self.cluster, 1, 1), stream=stream,
            cooperative=self.cooperative,
        )  # fmt: skip


@dataclass(frozen=True)
class OnFloats(OnTwoTensors):
    """A function of eight floats a thread: floats (threads, 8) to words (threads, 8)."""

    what: str
    hardware: bool = False
    block: int = 32

    def arguments(self):
        return Tensor("u32", ("T", 8), (8, 1), 16), Tensor("f32", ("T", 8), (8, 1), 16)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        row = cute.arch.block_idx()[0] * self.threads + cute.arch.thread_idx()[0]
        if row < mX.shape[0]:
            x = [mX[row, i] for i in range(8)]
            for i, y in enumerate(self.results(x)):
                mO[row, i] = y

    def results(self, x):
        """Up to eight Uint32."""
        if self.what == "e2m1":
            return lib.pack_e2m1(x, self.hardware)
        if self.what == "e5m2":
            return lib.pack_e5m2(x)
        if self.what == "from e2m1":
            return [v.bitcast(Uint32) for v in lib.unpack_e2m1((x[0].bitcast(Uint32),), self.hardware)]
        if self.what in ("from e4m3", "from e5m2"):
            unpack = lib.unpack_e4m3 if self.what == "from e4m3" else lib.unpack_e5m2
            return [v.bitcast(Uint32) for v in unpack((x[0].bitcast(Uint32),), 4)]
        if self.what == "from e8m0":
            return [lib.from_e8m0(v.bitcast(Uint32), self.hardware).bitcast(Uint32) for v in x]
        convert = {"e8m0 up": lib.e8m0_up, "e8m0 down": lib.e8m0_down}[self.what]
        return [convert(v, self.hardware) for v in x]


@dataclass(frozen=True)
class Reduction(OnTwoTensors):
    """A reduction of a float a thread: over groups of `width` lanes, or over the cluster when `width` is 0."""

    op: str
    width: int
    block: int = 64
    blocks: int = 1

    def arguments(self):
        return Tensor("f32", ("T",), (1,), 4), Tensor("f32", ("T",), (1,), 4)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        i = cute.arch.block_idx()[0] * self.threads + cute.arch.thread_idx()[0]
        if cutlass.const_expr(self.width == 0):
            lib.cluster_arrive()
            mO[i] = lib.cluster_reduce(mX[i], self.threads // 32, self.blocks, self.op)
        else:
            mO[i] = lib.group_reduce(mX[i], self.op, self.width)


@dataclass(frozen=True)
class TopOfGroup(OnTwoTensors):
    """The k largest of groups of `width` lanes with `each` floats a lane: indices (groups, k)."""

    k: int
    width: int
    each: int
    block: int = 64

    def arguments(self):
        return Tensor("i32", ("G", self.k), (self.k, 1), 4), Tensor("f32", ("G", self.width * self.each), (None, 1), 4)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        thread = cute.arch.block_idx()[0] * self.threads + cute.arch.thread_idx()[0]
        group, lane = thread // self.width, thread % self.width
        row = cutlass.min(group, mX.shape[0] - 1)
        places = [Uint32(lane + self.width * j) for j in range(self.each)]
        codes = [lib.ordered(Float32(mX[row, Int32(p)])) for p in places]
        found = lib.group_top_k(codes, places, self.k, self.width)
        for r in cutlass.range_constexpr(self.k):
            if (lane == r % self.width) & (group < mX.shape[0]):
                mO[group, r] = Int32(found[r][1])


@dataclass(frozen=True)
class TwoPhases(OnTwoTensors):
    """Each block adds its number to a sum, all meet, each writes the sum: sums (blocks), counter and total (2)."""

    cooperative: bool = True

    def arguments(self):
        return Tensor("i32", ("B",), (1,), 4), Tensor("i32", (2,), (1,), 8)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mS: cute.Tensor):
        block = cute.arch.block_idx()[0]
        if cute.arch.thread_idx()[0] == 0:
            lib.atomic_add(mS.iterator + 1, block + 1)
        lib.grid_barrier(mS.iterator)
        if cute.arch.thread_idx()[0] == 0:
            mO[block] = lib.ld_acquire(mS.iterator + 1)


@dataclass(frozen=True)
class WideCopy(OnTwoTensors):
    """Copies 32 bytes a thread, in one access where the architecture has it."""

    inside: bool = False
    block: int = 32

    def arguments(self):
        return Tensor("u32", ("T", 8), (8, 1), 32), Tensor("u32", ("T", 8), (8, 1), 32)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        row = cute.arch.block_idx()[0] * self.threads + cute.arch.thread_idx()[0]
        there = row < mX.shape[0]
        words = lib.load_words(mX.iterator + 8 * row, 32, align=32, inside=there)
        if there:
            lib.store_words(mO.iterator + 8 * row, words, 32, align=32)


@dataclass(frozen=True)
class Handover(OnTwoTensors):
    """Block 0 writes a number twice with a flag between, block 1 waits for the flag and reads twice with a load of the
    flag between: the compiler may neither drop the first store nor the second load."""

    scope: str = "gpu"

    def arguments(self):
        return Tensor("i32", (4,), (1,), 16), Tensor("i32", (2,), (1,), 8)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mFlag: cute.Tensor):
        if cute.arch.thread_idx()[0] == 0:
            if cute.arch.block_idx()[0] == 0:
                mX[0] = Int32(5)
                lib.st_release(mFlag.iterator, Int32(1), self.scope)
                lib.wait_at_least(mFlag.iterator + 1, Int32(3), self.scope)
                mX[0] = Int32(7)
                lib.add_release(mFlag.iterator, Int32(1), self.scope)
            else:
                lib.wait_at_least(mFlag.iterator, Int32(1), self.scope)
                mX[1] = mX[0]
                lib.add_release(mFlag.iterator + 1, Int32(3), self.scope)
                lib.wait_at_least(mFlag.iterator, Int32(2), self.scope)
                mX[2] = mX[0]
