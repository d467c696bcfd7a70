"""Numbers to e4m3 codes with one scale computed for all of them: one launch with a grid barrier, or two launches."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector
from porter.corpus.runtime.specialisation import Specialisation

UNROLL = 4  # loads of a thread on their way at once


@dataclass(frozen=True)
class PerTensor(Specialisation):
    """Static choices. scale = max(max |x| / 448, 1 / (448 * 512)), codes x * (1 / scale).

    Vector i of the rows, taken one after the other, is work of thread i % threads of all. launches 2: the largest of
    each block goes to memory, and the second kernel reads all numbers again, from the last to the first, of which the
    L2 cache holds some. launches 1: a thread keeps its first `kept` vectors in registers over a grid barrier and reads
    the others again; one block needs no barrier. The launch is cooperative where there is a barrier.
    """

    dtype: str
    d: int
    vec: int
    threads_of_block: int
    launches: int
    kept: int
    several: bool  # blocks
    align: int = 16
    out_align: int = 16
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.threads_of_block

    @property
    def cooperative(self) -> bool:
        """Whether all blocks of the launch have to run at once."""
        return self.launches == 1 and self.several

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        q = rows_of("e4m3", "T", self.d, min(self.out_align, self.vec))
        parts = vector("f32", "B", 4) if self.several else None
        return q, rows_of(self.dtype, "T", self.d, wide), vector("f32", 1, 4), parts

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, d) e4m3
        mX: cute.Tensor,  # (T, d)
        mS: cute.Tensor,  # (1,), written
        mP: cute.Tensor | None,  # (blocks,), scratch: the largest magnitude of each block
        blocks: Int32,
        stream,
    ):
        grid, block = (blocks, 1, 1), (self.threads, 1, 1)
        if cutlass.const_expr(self.launches == 2):
            self.largest(mQ, mX, mS, mP).launch(grid=grid, block=block, stream=stream, use_pdl=self.pdl)
            self.codes(mQ, mX, mS, mP).launch(grid=grid, block=block, stream=stream, use_pdl=self.pdl)
        else:
            pdl = self.pdl and not self.several
            self.both(mQ, mX, mS, mP).launch(
                grid=grid, block=block, stream=stream, use_pdl=pdl, cooperative=self.cooperative
            )

    @cute.kernel
    def largest(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mP: cute.Tensor):
        """First of two launches. The second may start when all blocks of this one have waited: the numbers are there
        then, and it may read them before it waits."""
        scratch = lib.shared(Float32, 32)
        lib.pdl_wait()
        lib.pdl_launch_dependents()
        found = lib.block_reduce(self.rest(mX, Int32(0), Float32(0.0)), scratch, Int32(self.threads), "max")
        if cute.arch.thread_idx()[0] == 0:
            mP[cute.arch.block_idx()[0]] = found

    @cute.kernel
    def codes(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mP: cute.Tensor):
        """Second of two launches."""
        scratch = lib.shared(Float32, 32)
        lib.pdl_launch_dependents()
        steps = self.steps(mX)
        newest = steps - UNROLL
        held = [self.load(mX, newest + k) for k in range(UNROLL)]
        lib.pdl_wait()
        inverse = self.scale(mS, mP, self.largest_of_all(mP, scratch))
        for k in cutlass.range_constexpr(UNROLL):
            self.encode(mQ, mX, newest + k, held[k], inverse)
        self.encode_rest(mQ, mX, Int32(0), newest, inverse)

    @cute.kernel
    def both(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mP: cute.Tensor | None):
        """The only launch."""
        scratch = lib.shared(Float32, 32)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        held = [self.load(mX, Int32(k)) for k in range(self.kept)]
        found = Float32(0.0)
        for k in cutlass.range_constexpr(self.kept):
            found = lib.fmax(found, self.absmax(held[k]))
        found = lib.block_reduce(self.rest(mX, Int32(self.kept), found), scratch, Int32(self.threads), "max")
        if cutlass.const_expr(self.several):
            if cute.arch.thread_idx()[0] == 0:
                mP[cute.arch.block_idx()[0]] = found  # type: ignore[index]
            lib.grid_sync()
            found = self.largest_of_all(mP, scratch)
        inverse = self.scale(mS, mP, found)
        for k in cutlass.range_constexpr(self.kept):
            self.encode(mQ, mX, Int32(k), held[k], inverse)
        self.encode_rest(mQ, mX, Int32(self.kept), self.steps(mX), inverse)

    def vectors(self, mX):
        """How many vectors there are, Int32."""
        return mX.shape[0] * (self.d // self.vec)

    def steps(self, mX):
        """How many vectors a thread has, Int32: those past the last are not `there`."""
        every = cute.arch.grid_dim()[0] * self.threads
        return (self.vectors(mX) + every - 1) // every

    def place(self, mX, step):
        """(row, column, whether there is such a vector) of this thread's vector `step`."""
        block, blocks = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
        at = (step * blocks + block) * self.threads + cute.arch.thread_idx()[0]
        there = (step >= 0) & (at < self.vectors(mX))
        at = Uint32(lib.select(there, at, Int32(0)))
        row = at // (self.d // self.vec)
        return Int32(row), Int32(at - row * (self.d // self.vec)) * self.vec, there

    def load(self, mX, step):
        """Words of this thread's vector `step`; zeros where there is none."""
        row, column, there = self.place(mX, step)
        nbytes = self.vec * cutlass_type(self.dtype).width // 8
        return lib.load_words(mX[row, None].iterator + column, nbytes, lib.CACHED, self.align, there)

    def absmax(self, words):
        return lib.absmax(lib.unpack(words, self.vec, cutlass_type(self.dtype)))

    @cute.jit
    def rest(self, mX: cute.Tensor, first: Int32, found: Float32):
        """The largest of `found` and of the magnitudes of this thread's vectors from `first` on."""
        for step in range(first, self.steps(mX), UNROLL):
            loaded = [self.load(mX, step + k) for k in range(UNROLL)]
            for k in cutlass.range_constexpr(UNROLL):
                found = lib.fmax(found, self.absmax(loaded[k]))
        return found

    @cute.jit
    def largest_of_all(self, mP: cute.Tensor, scratch: cute.Pointer):
        """The largest of all blocks, in every thread."""
        found = Float32(0.0)
        for i in range(cute.arch.thread_idx()[0], mP.shape[0], self.threads):
            found = lib.fmax(found, lib.peek(mP.iterator + i, Uint32).bitcast(Float32))
        return lib.block_reduce(found, scratch, Int32(self.threads), "max")

    @cute.jit
    def scale(self, mS: cute.Tensor, mP: cute.Tensor | None, largest: Float32):
        """1 / scale; the first block writes the scale."""
        scale = lib.dynamic_scale(largest)
        if (cute.arch.block_idx()[0] == 0) & (cute.arch.thread_idx()[0] == 0):
            mS[0] = scale
        return lib.rcp_rn(scale)

    @cute.jit
    def encode(self, mQ: cute.Tensor, mX: cute.Tensor, step: Int32, words, inverse: Float32):
        row, column, there = self.place(mX, step)
        if there:
            x = lib.unpack(words, self.vec, cutlass_type(self.dtype))
            codes = lib.pack_e4m3([v * inverse for v in x])
            lib.store_words(mQ[row, None].iterator + column, codes, self.vec, self.out_align)

    @cute.jit
    def encode_rest(self, mQ: cute.Tensor, mX: cute.Tensor, first: Int32, last: Int32, inverse: Float32):
        """Codes of this thread's vectors from `first` to before `last`, the last ones first."""
        for back in range(first, last, UNROLL):
            step = first + last - back - UNROLL
            loaded = [self.load(mX, lib.select(step + k >= first, step + k, Int32(-1))) for k in range(UNROLL)]
            for k in cutlass.range_constexpr(UNROLL):
                at = lib.select(step + k >= first, step + k, Int32(-1))
                self.encode(mQ, mX, at, loaded[k], inverse)
