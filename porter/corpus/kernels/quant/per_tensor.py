"""Numbers to e4m3 codes with one scale computed for all of them: one launch with a grid barrier, or two launches."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class PerTensor(Specialisation):
    """Static choices. scale = max(max |x| / 448, 1 / (448 * 512)), codes x * (1 / scale).

    Vector i of the rows, taken one after the other, is work of thread i % threads of all. Blocks raise the scale in
    memory to theirs. launches 2: a second kernel reads all numbers again, from the last to the first, of which the L2
    cache holds some; a thread of a kernel before the first sets the scale to zero, while that one reads. launches 1: a
    thread keeps its first `kept` vectors in registers over a grid barrier and reads the others again; the launch is
    cooperative, the zero is known to be there by a barrier whose halves stand before and after the reading. One block
    needs no barrier.
    """

    dtype: str
    d: int
    vec: int
    threads_of_block: int
    launches: int
    kept: int
    most: int  # blocks
    align: int = 16
    out_align: int = 16
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.threads_of_block

    @property
    def several(self) -> bool:
        """Whether there may be several blocks."""
        return self.most > 1

    def blocks(self, rows: int) -> int:
        """Blocks of a launch over so many rows: a vector for each thread, or `most`."""
        return min(self.most, -(-rows * (self.d // self.vec) // self.threads))

    @property
    def cooperative(self) -> bool:
        """Whether all blocks of the launch have to run at once."""
        return self.launches == 1 and self.several

    @property
    def unroll(self) -> int:
        """Loads of a thread on their way at once, beside those of the kept vectors."""
        return 4 if self.launches == 2 else 2

    def arguments(self):
        wide = min(self.align, self.vec * scalar(self.dtype).bytes)
        q = rows_of("e4m3", "T", self.d, min(self.out_align, self.vec))
        return written(q), rows_of(self.dtype, "T", self.d, wide), written(vector("f32", 1, 4))

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,  # (T, d) e4m3
        mX: cute.Tensor,  # (T, d)
        mS: cute.Tensor,  # (1,), written
        blocks: Int32,
        stream,
    ):
        grid, block = (blocks, 1, 1), (self.threads, 1, 1)
        if cutlass.const_expr(self.launches == 2):
            self.zero(mQ, mX, mS).launch(grid=(1, 1, 1), block=block, stream=stream, use_pdl=self.pdl)
            self.largest(mQ, mX, mS).launch(grid=grid, block=block, stream=stream, use_pdl=self.pdl)
            self.codes(mQ, mX, mS).launch(grid=grid, block=block, stream=stream, use_pdl=self.pdl)
        else:
            pdl = self.pdl and not self.several
            self.both(mQ, mX, mS).launch(
                grid=grid, block=block, stream=stream, use_pdl=pdl, cooperative=self.cooperative
            )

    @cute.kernel
    def zero(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor):
        """Before the first of two launches, which may start when this one has waited: the numbers are there then."""
        lib.pdl_wait()
        lib.pdl_launch_dependents()
        if (cute.arch.thread_idx()[0] == 0) & (cute.arch.block_idx()[0] == 0):
            mS[0] = Float32(0.0)

    @cute.kernel
    def largest(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor):
        """First of two launches: it reads before it waits for the zero."""
        scratch = lib.shared(Float32, 32)
        lib.pdl_launch_dependents()
        found = lib.block_reduce(self.rest(mX, Int32(0), Float32(0.0)), scratch, Int32(self.threads), "max")
        lib.pdl_wait()
        self.raise_to(mS, lib.dynamic_scale(found))

    @cute.kernel
    def codes(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor):
        """Second of two launches: it reads its first vectors before it waits for the scale."""
        lib.pdl_launch_dependents()
        newest = self.steps(mX) - self.unroll
        held = [self.load(mX, newest + k) for k in range(self.unroll)]
        lib.pdl_wait()
        inverse = lib.rcp_rn(self.found(mS))
        for k in cutlass.range_constexpr(self.unroll):
            self.encode(mQ, mX, newest + k, held[k], inverse)
        self.encode_rest(mQ, mX, Int32(0), newest, inverse)

    @cute.kernel
    def both(self, mQ: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor):
        """The only launch."""
        scratch = lib.shared(Float32, 32)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        token = Int32(0)
        if cutlass.const_expr(self.several):
            if (cute.arch.thread_idx()[0] == 0) & (cute.arch.block_idx()[0] == 0):
                mS[0] = Float32(0.0)
            token = lib.grid_arrive()
        held = [self.load(mX, Int32(k)) for k in range(self.kept)]
        found = Float32(0.0)
        for k in cutlass.range_constexpr(self.kept):
            found = lib.fmax(found, self.absmax(held[k]))
        found = lib.block_reduce(self.rest(mX, Int32(self.kept), found), scratch, Int32(self.threads), "max")
        scale = lib.dynamic_scale(found)
        if cutlass.const_expr(self.several):
            lib.grid_wait(token)
            self.raise_to(mS, scale)
            lib.grid_sync()
            scale = self.found(mS)
        elif cute.arch.thread_idx()[0] == 0:
            mS[0] = scale
        inverse = lib.rcp_rn(scale)
        for k in cutlass.range_constexpr(self.kept):
            self.encode(mQ, mX, Int32(k), lib.opaque_words(held[k]), inverse)
        self.encode_rest(mQ, mX, Int32(self.kept), self.steps(mX), inverse)

    def vectors(self, mX):
        """How many vectors there are, Int32."""
        return mX.shape[0] * (self.d // self.vec)

    def steps(self, mX):
        """How many vectors a thread has, Int32: those past the last are not `there`."""
        every = cute.arch.grid_dim()[0] * self.threads
        return (self.vectors(mX) + every - 1) // every

    def vector_coord(self, mX, step):
        """(row, column, whether there is such a vector) of this thread's vector `step`."""
        block, blocks = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
        at = (step * blocks + block) * self.threads + cute.arch.thread_idx()[0]
        there = (step >= 0) & (at < self.vectors(mX))
        at = Uint32(lib.select(there, at, Int32(0)))
        row = at // (self.d // self.vec)
        return Int32(row), Int32(at - row * (self.d // self.vec)) * self.vec, there

    def load(self, mX, step):
        """Words of this thread's vector `step`; zeros where there is none."""
        row, column, there = self.vector_coord(mX, step)
        nbytes = self.vec * cutlass_type(self.dtype).width // 8
        return lib.load_words(mX[row, None].iterator + column, nbytes, lib.CACHED, self.align, there)

    def absmax(self, words):
        return lib.absmax(lib.unpack(words, self.vec, cutlass_type(self.dtype)))

    @cute.jit
    def rest(self, mX: cute.Tensor, first: Int32, found: Float32):
        """The largest of `found` and of the magnitudes of this thread's vectors from `first` on."""
        for step in range(first, self.steps(mX), self.unroll):
            loaded = [self.load(mX, step + k) for k in range(self.unroll)]
            for k in cutlass.range_constexpr(self.unroll):
                found = lib.fmax(found, self.absmax(loaded[k]))
        return found

    @cute.jit
    def raise_to(self, mS: cute.Tensor, scale: Float32):
        """The scale in memory becomes at least `scale`, once a block. Numbers above zero are ordered as their bits."""
        if cute.arch.thread_idx()[0] == 0:
            lib.atomic_max(cute.recast_ptr(mS.iterator, dtype=Int32), scale.bitcast(Int32))

    def found(self, mS):
        """The scale that all blocks have raised."""
        return lib.ld_relaxed(mS.iterator, Uint32).bitcast(Float32)

    @cute.jit
    def encode(self, mQ: cute.Tensor, mX: cute.Tensor, step: Int32, words, inverse: Float32):
        row, column, there = self.vector_coord(mX, step)
        if there:
            x = lib.unpack(words, self.vec, cutlass_type(self.dtype))
            codes = lib.pack_e4m3([v * inverse for v in x])
            lib.store_words(mQ[row, None].iterator + column, codes, self.vec, self.out_align)

    @cute.jit
    def encode_rest(self, mQ: cute.Tensor, mX: cute.Tensor, first: Int32, last: Int32, inverse: Float32):
        """Codes of this thread's vectors from `first` to before `last`, the last ones first."""
        for back in range(first, last, self.unroll):
            step = first + last - back - self.unroll
            loaded = [self.load(mX, lib.select(step + k >= first, step + k, Int32(-1))) for k in range(self.unroll)]
            for k in cutlass.range_constexpr(self.unroll):
                at = lib.select(step + k >= first, step + k, Int32(-1))
                self.encode(mQ, mX, at, loaded[k], inverse)
