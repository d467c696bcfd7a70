"""Expert routing: scores of a token's router logits, the k best experts in order, and their weights."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib
from porter.corpus.lib.moe import routing
from porter.corpus.runtime.dtypes import cutlass_type
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, Tensor, rows_of, vector, written
from porter.corpus.runtime.specialisation import Specialisation

LEAST_SUM = 1e-20  # added to the sum of weights of grouped routing before it divides


def put(mS, row, lane, value):
    """Store one element."""
    mS[row, lane] = value


def results(k: int, index: str, order: bool):
    """Weights, experts and, with `order`, numbers of entries: what a routing writes for each token and choice."""
    weights, experts, entries = (written(rows_of(t, "T", k, scalar(t).bytes)) for t in ("f32", index, "i32"))
    return weights, experts, entries if order else None


@cute.jit
def store_choice(
    mW: cute.Tensor, mI: cute.Tensor, mS, row: Int32, total: Int32, lane: Int32, k: cutlass.Constexpr,
    weight: Float32, expert: Int32,
):  # fmt: skip
    """Write choice `lane` of a token, where there is such a choice and such a token."""
    if (lane < k) & (row < total):
        mW[row, lane] = weight
        mI[row, lane] = mI.element_type(expert)
        if cutlass.const_expr(mS is not None):
            put(mS, row, lane, lane * total + row)


@dataclass(frozen=True)
class Routing(Specialisation):
    """Static choices of a routing.

    lanes: lanes of a warp that share a token, a power of two, k or more; each holds `per_lane` neighbouring experts,
    read `vec` at a time.  rows: tokens of a block.  score: one of `routing.SCORES`.  bias: added to a score for the
    choice only.  padding: whether tokens may be marked as padding, which get expert -1 with weight 0.
    groups, kept: experts are in so many groups, of which so many are chosen first (0: no groups).
    sigmoid_after: the weights are the sigmoid of the chosen scores.
    """

    dtype: str
    index: str
    experts: int
    k: int
    vec: int
    per_lane: int
    lanes: int
    rows: int
    score: str
    bias: bool = False
    renormalize: bool = False
    scaled: bool = False
    padding: bool = False
    order: bool = True
    groups: int = 0
    kept: int = 0
    sigmoid_after: bool = False
    pdl: bool = True

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    def arguments(self):
        logits = rows_of(self.dtype, "T", self.experts, self.vec * scalar(self.dtype).bytes)
        bias = vector("f32", self.experts, min(self.vec * 4, 16)) if self.bias else None
        padding = Tensor("u8", ("T",), (None,), 1) if self.padding else None
        return *results(self.k, self.index, self.order), logits, bias, padding, Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mW: cute.Tensor,  # (T, k) float32
        mI: cute.Tensor,  # (T, k)
        mS: cute.Tensor | None,  # (T, k) int32
        mX: cute.Tensor,  # (T, E)
        mB: cute.Tensor | None,  # (E,) float32
        mP: cute.Tensor | None,  # (T,) bytes
        scale: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mW, mI, mS, mX, mB, mP, scale).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mW: cute.Tensor,
        mI: cute.Tensor,
        mS: cute.Tensor | None,
        mX: cute.Tensor,
        mB: cute.Tensor | None,
        mP: cute.Tensor | None,
        scale: Float32,
    ):
        tid, total = cute.arch.thread_idx()[0], mX.shape[0]
        lane = tid % self.lanes
        row = cute.arch.block_idx()[0] * self.rows + tid // self.lanes
        clamped = cutlass.min(row, total - 1)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        inside = self.inside(lane)
        logits = self.load(mX[clamped, None].iterator, cutlass_type(self.dtype), lane, inside)
        bias = None if mB is None else self.load(mB.iterator, Float32, lane, inside)
        counts = None if mP is None else cutlass.Uint8(mP[clamped]) == cutlass.Uint8(0)

        weight, expert = self.route(logits, inside, bias, lane, scale)
        if cutlass.const_expr(counts is not None):
            weight = lib.select(counts, weight, Float32(0.0))
            expert = lib.select(counts, expert, Int32(-1))
        store_choice(mW, mI, mS, row, total, lane, self.k, weight, expert)

    def inside(self, lane):
        """For each expert of a lane, whether there is one: True, or a Boolean."""
        if self.lanes * self.per_lane == self.experts:
            return [True] * self.per_lane
        first = lane * self.per_lane
        accesses = [first + i < self.experts for i in range(0, self.per_lane, self.vec)]
        return [there for there in accesses for _ in range(self.vec)]

    def load(self, ptr, dtype, lane, inside):
        """A lane's numbers as Float32 values."""
        nbytes, found = self.vec * dtype.width // 8, []
        for i in range(0, self.per_lane, self.vec):
            words = lib.load_words(ptr + (lane * self.per_lane + i), nbytes, lib.CACHED, inside=inside[i])
            found += lib.unpack(words, self.vec, dtype)
        return found

    def route(self, logits, inside, bias, lane, scale):
        """(weight, expert) of choice `lane` of this lane's token."""
        scores = routing.expert_scores(logits, inside, self.score, self.lanes, clean=not self.groups)
        if self.groups or self.score == "none" or bias is not None:
            choices = scores if bias is None else [s + b for s, b in zip(scores, bias, strict=True)]
            low = Float32(-routing.INFINITY)
            if self.groups:
                choices = [lib.select(routing.finite(c), c, low) for c in choices]
                scores = routing.cleaned(scores)
            codes, weight_of = routing.choice_codes(choices, inside), lib.from_ordered
        else:
            codes, weight_of = routing.score_codes(scores, inside), routing.score_of
        alive = Int32(0)
        if self.groups:
            of_group = self.experts // self.groups // self.per_lane
            kept, alive = routing.kept_groups(choices, inside, lane, self.lanes, of_group, self.kept)
            codes = [lib.select(kept, c, Uint32(lib.NOTHING)) for c in codes]
        chosen_is_weight = bias is None and not self.groups
        found = routing.top_experts(codes, None if chosen_is_weight else scores, self.k, self.lanes, lane)
        if chosen_is_weight:
            found = [(expert, weight_of(code)) for expert, code in found]
        if self.sigmoid_after:
            found = [(expert, lib.rcp_rn(Float32(1.0) + cute.math.exp(Float32(0.0) - w))) for expert, w in found]
        weight, expert = self.weigh(found, lane, scale)
        if self.groups:
            proceed = alive >= self.kept
            weight = lib.select(proceed, weight, Float32(1.0 / self.k))
            expert = lib.select(proceed, expert, lane)
        return weight, expert

    def weigh(self, found, lane, scale):
        """(weight, expert) of choice `lane` from those of all, renormalised and scaled."""
        expert, weight = found[0]
        total = weight
        for r, (other, w) in enumerate(found[1:], 1):
            expert = lib.select(lane == r, other, expert)
            weight = lib.select(lane == r, w, weight)
            total = total + w
        if self.groups:
            factor = lib.div_rn(scale, total + Float32(LEAST_SUM)) if self.renormalize else scale
            return lib.mul_rn(weight, factor), expert
        if self.renormalize:
            weight = weight * routing.normaliser(total)
        return weight * scale if self.scaled else weight, expert
