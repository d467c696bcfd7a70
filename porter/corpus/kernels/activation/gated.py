"""Gated activations: out = act(gate) * up, gate and up side by side in a row of the input, or interleaved."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import rows_of, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Gated(ChunkedRows, Specialisation):
    """Static choices of a gated activation.

    act: "silu", "gelu", "gelu_tanh", "fatrelu"; "silu_clamp" and "swigluoai" clamp gate and up to `limit` first. It is
    rounded to the dtype before the product, except in "swigluoai" and with `once` (one rounding).
    vec: outputs of a thread and row, at most 32 bytes (16 before sm_100).  rows: rows that a thread works on at once.
    second: the second half is the gate.
    prefetch: the input is prefetched into L2 before the previous kernel has finished, by the first `prefetch_blocks`
    blocks (0: all).
    streaming: loads leave nothing in L1.
    """

    dtype: str
    d: int
    vec: int
    block: int  # threads
    rows: int = 1
    act: str = "silu"
    second: bool = False
    once: bool = False
    interleaved: bool = False
    limit: float = 0.0  # of "fatrelu": the threshold
    alpha: float = 1.0
    beta: float = 0.0
    pdl: bool = True
    prefetch: bool = False
    streaming: bool = True
    prefetch_blocks: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of a vector."""
        return self.vec * scalar(self.dtype).bytes

    def arguments(self):
        wide = self.nbytes * (2 if self.interleaved else 1)
        return written(rows_of(self.dtype, "T", self.d, self.nbytes)), rows_of(self.dtype, "T", 2 * self.d, wide)

    @cute.jit
    def __call__(
        self,
        mO: cute.Tensor,  # (T, d)
        mX: cute.Tensor,  # (T, 2 d)
        blocks: Int32,
        stream,
    ):
        self.kernel(mO, mX).launch(grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl)

    @cute.kernel
    def kernel(self, mO: cute.Tensor, mX: cute.Tensor):
        first, col = lib.rows_and_column(self)
        lib.pdl_launch_dependents()
        if cutlass.const_expr(self.prefetch):
            self.prefetch_input(mX, first, col, lib.in_first_blocks(self.prefetch_blocks))
        lib.pdl_wait()
        if col < self.d:
            tXrX = [self.load(mX, lib.clamped_row(first, r, mX), col) for r in range(self.rows)]
            for r in cutlass.range_constexpr(self.rows):
                y = self.combine(*tXrX[r])
                if cutlass.const_expr(r == 0) or first + r < mX.shape[0]:
                    lib.store_words(mO[first + r, None].iterator + col, y, self.nbytes, self.nbytes)

    def prefetch_input(self, mX, first, col, early):
        """Prefetch what this thread and its neighbours will load."""
        wide, parts = (2 * self.nbytes, (2 * col,)) if self.interleaved else (self.nbytes, (col, col + self.d))
        wanted = lib.first_in_cache_line(wide) & (col < self.d) & early
        for r in range(self.rows):
            gX = mX[lib.clamped_row(first, r, mX), None].iterator
            for part in parts:
                lib.prefetch_line(gX + part, wanted)

    def load(self, mX, row, col):
        """(gate, up) of one row at a column, as vectors."""
        gX, kind = mX[row, None].iterator, lib.STREAMING if self.streaming else lib.CACHED
        if self.interleaved:
            T = cutlass_type(self.dtype)
            pairs = lib.unpack(lib.load_words(gX + 2 * col, 2 * self.nbytes, kind), 2 * self.vec, T)
            return lib.pack(pairs[::2], T), lib.pack(pairs[1::2], T)
        halves = (gX + col, gX + col + self.d)
        first, second = (lib.load_words(half, self.nbytes, kind, self.nbytes) for half in halves)
        return (second, first) if self.second else (first, second)

    def combine(self, gate, up):
        """The output vector of a gate and an up vector."""
        T = cutlass_type(self.dtype)
        gates, ups = lib.unpack(gate, self.vec, T), lib.unpack(up, self.vec, T)
        if self.act == "swigluoai":
            return lib.pack([self.swigluoai(g, u) for g, u in zip(gates, ups, strict=True)], T)
        if self.act == "silu_clamp":
            up = lib.pack([self.clamped_up(u, T) for u in ups], T)
        if self.once:
            return lib.pack([lib.mul_rn(self.activation(g, T), u) for g, u in zip(gates, ups, strict=True)], T)
        return lib.mul_words(lib.pack([self.activation(g, T) for g in gates], T), up, T)

    def activation(self, x, T):
        """The activation of one gate, Float32."""
        if self.act == "silu":
            return lib.silu_exact(x) if T is Float32 else lib.silu(x)
        if self.act == "silu_clamp":
            x = lib.fmin_nan(x, lib.constant(T, self.limit).to(Float32))
            return lib.over_one_plus_exp(x, x * Float32(-self.alpha))
        if self.act == "fatrelu":
            return lib.relu_above(x, self.limit)
        return {"gelu": lib.gelu, "gelu_tanh": lib.gelu_tanh}[self.act](x)

    def clamped_up(self, u, T):
        """One up value of "silu_clamp": clamped to the limit as T holds it, plus beta; NaN stays."""
        limit = lib.constant(T, self.limit).to(Float32)
        return lib.fmax_nan(lib.fmin_nan(u, limit), -limit) + Float32(self.beta)

    def swigluoai(self, gate, up):
        """One output of "swigluoai", Float32; the limit takes the place of NaN."""
        limit = Float32(self.limit)
        gate, up = lib.fmin(gate, limit), lib.fmax(lib.fmin(up, limit), -limit)
        return lib.over_one_plus_exp((up + Float32(1.0)) * gate, gate * Float32(-self.alpha))
