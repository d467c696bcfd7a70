"""Routing by a table: experts of a token's id, weighed by their logits."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from porter.corpus import lib
from porter.corpus.kernels.moe.routing import results, store_choice
from porter.corpus.lib.moe import routing
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, rows_of, vector
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class HashRouting(Specialisation):
    """Static choices of a routing by token ids. `lanes`, a power of two of k or more, share a token."""

    dtype: str
    index: str
    ids: str
    table: str
    experts: int
    k: int
    lanes: int
    rows: int
    renormalize: bool
    order: bool = True
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    def arguments(self):
        logits = rows_of(self.dtype, "T", self.experts, scalar(self.dtype).bytes)
        ids, table = (
            vector(self.ids, "T", scalar(self.ids).bytes),
            rows_of(self.table, "V", self.k, scalar(self.table).bytes),
        )
        return *results(self.k, self.index, self.order), logits, ids, table, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mW: cute.Tensor,  # (T, k) float32
        mI: cute.Tensor,  # (T, k)
        mS: cute.Tensor | None,  # (T, k) int32
        mX: cute.Tensor,  # (T, E)
        mD: cute.Tensor,  # (T,)
        mE: cute.Tensor,  # (V, k)
        scale: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mW, mI, mS, mX, mD, mE, scale).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mW: cute.Tensor,
        mI: cute.Tensor,
        mS: cute.Tensor | None,
        mX: cute.Tensor,
        mD: cute.Tensor,
        mE: cute.Tensor,
        scale: Float32,
    ):
        tid, total = cute.arch.thread_idx()[0], mX.shape[0]
        lane = tid % self.lanes
        row = cute.arch.block_idx()[0] * self.rows + tid // self.lanes
        clamped, slot = cutlass.min(row, total - 1), cutlass.min(lane, self.k - 1)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        expert = Int32(mE[Int64(mD[clamped]), slot])
        held = (expert >= 0) & (expert < self.experts)
        logit = Float32(mX[clamped, lib.select(held, expert, Int32(0))])
        (weight,) = routing.expert_scores([logit], [True], "softplus_sqrt", 1)
        weight = lib.select(held, weight, Float32(0.0))
        if cutlass.const_expr(self.renormalize):
            sum_ = lib.shfl(weight, 0, width=self.lanes)
            for r in cutlass.range_constexpr(1, self.k):
                sum_ = sum_ + lib.shfl(weight, r, width=self.lanes)
            weight = weight * routing.normaliser(sum_)
        store_choice(mW, mI, mS, row, total, lane, self.k, weight * scale, expert)
