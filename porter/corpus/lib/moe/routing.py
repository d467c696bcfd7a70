"""Choice of experts by groups of lanes that hold a token's router logits, a run of neighbouring experts each.

Because lane order is expert order, the lowest lane among equal maxima has the lowest expert: one maximum over the group
and a ballot find the winner, without a second reduction for the index. Lists are Python lists of register values.
"""

import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus.lib.blocks import tree_reduce
from porter.corpus.lib.floats import exp_approx, fmax, fmin, rcp_rn, sqrt_rn
from porter.corpus.lib.integers import ffs, imax, select
from porter.corpus.lib.ordered import NOTHING, ordered
from porter.corpus.lib.warp import ballot, redux, shfl, shfl_xor, tile_mask, warp_max, warp_sum

INFINITY = float("inf")
SCORES = ("softmax", "sigmoid", "softplus_sqrt", "none")


def finite(x):
    """Whether a Float32 is neither NaN nor infinite, Boolean (`sub.f32`: infinity less itself is NaN)."""
    return (x - x) == Float32(0.0)


def normaliser(total):
    """What weights that add up to `total` are multiplied by so that they add up to one; 1 where none is above zero
    (`rcp.rn.f32`)."""
    return select(total > Float32(0.0), rcp_rn(total), Float32(1.0))


def expert_scores(logits, inside, kind, lanes, clean=True):
    """Scores of a lane's experts, Float32: "softmax" over all experts of the group's lanes, "sigmoid", "softplus_sqrt"
    (the square root of log(1 + exp(x))), or the logits themselves ("none").

    `inside[i]`: whether expert i exists (True, or a Boolean). Exponentials are CUDA's expf for softmax and softplus and
    __expf for sigmoid. With `clean`, scores that are NaN or infinite become 0, except with
    "none".
    """
    if kind == "none":
        return list(logits)
    if kind == "softmax":
        low = Float32(-INFINITY)
        logits = [x if there is True else select(there, x, low) for x, there in zip(logits, inside, strict=True)]
        largest = warp_max(tree_reduce(logits, fmax), lanes)
        terms = [cute.math.exp(x - largest) for x in logits]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        inverse = rcp_rn(warp_sum(total, lanes))
        found = [term * inverse for term in terms]
    elif kind == "sigmoid":
        found = [rcp_rn(Float32(1.0) + exp_approx(Float32(0.0) - x)) for x in logits]
    else:
        found = [sqrt_rn(softplus(x)) for x in logits]
    return cleaned(found) if clean else found


def cleaned(scores):
    """Scores with 0 for those that are NaN or infinite."""
    return [select(finite(s), s, Float32(0.0)) for s in scores]


def softplus(x):
    """log(1 + exp(x)), without overflow: max(x, 0) + log1p(exp(-|x|))."""
    return fmax(x, Float32(0.0)) + cute.math.log1p(cute.math.exp(fmin(x, Float32(0.0) - x)))


def score_codes(scores, inside):
    """Codes of scores that are not negative: larger scores have larger codes, above NOTHING, which those get that are
    not `inside`."""
    codes = [s.bitcast(Uint32) + Uint32(1) for s in scores]
    return [c if there is True else select(there, c, Uint32(NOTHING)) for c, there in zip(codes, inside, strict=True)]


def score_of(code):
    """The score that a code of `score_codes` stands for."""
    return (code - Uint32(1)).bitcast(Float32)


def choice_codes(choices, inside):
    """Codes of any numbers, as `score_codes`; NaN counts as minus infinity."""
    low = Float32(-INFINITY)
    codes = [ordered(select(c == c, c, low)) for c in choices]
    return [c if there is True else select(there, c, Uint32(NOTHING)) for c, there in zip(codes, inside, strict=True)]


def group_max(code, lanes):
    """Largest Uint32 over groups of `lanes` lanes, in every lane (`redux.sync`, or `shfl.sync.bfly.b32`)."""
    if lanes == 32:
        return redux(code, "max")
    offset = lanes // 2
    while offset:
        code = imax(code, shfl_xor(code, offset))
        offset //= 2
    return code


def chosen(values, element):
    """`values[element]` for a run-time element (a chain of `selp`)."""
    found = values[0]
    for e in range(1, len(values)):
        found = select(element == e, values[e], found)
    return found


def top_experts(codes, weights, k, lanes, lane):
    """The k (constant) experts with the largest codes over groups of `lanes` lanes: strictly larger wins, equal ones go
    to the lower expert.

    A list of (expert Int32, weight), the same in every lane of a group. `lane` is the lane within its group, which
    holds experts lane * len(codes) on; `weights` what belongs to them, or None: then the winners' codes are given.
    """
    count = len(codes)
    found = []
    for _ in range(k):
        best = tree_reduce(list(codes), imax)
        top = group_max(best, lanes)
        equal = ballot(best == top)
        if lanes < 32:
            equal = equal & tile_mask(lanes)
        winner = ffs(equal) - 1
        element = Int32(count - 1)
        for e in range(count - 2, -1, -1):
            element = select(codes[e] == top, Int32(e), element)
        weight = top if weights is None else shfl(chosen(weights, element), winner)
        mine = select(cute.arch.lane_idx() == winner, element, Int32(-1))
        codes = [select(mine == e, Uint32(NOTHING), code) for e, code in enumerate(codes)]
        found.append((shfl(lane * count + element, winner), weight))
    return found


def kept_groups(choices, inside, lane, lanes, of_group, wanted):
    """(whether this lane's experts are in one of the `wanted` best groups, how many groups have a score above minus
    infinity).

    A group's experts lie in `of_group` lanes (a power of two); its score is the sum of the two largest choices in it.
    Equal scores go to the lower group.
    """
    low = Float32(-INFINITY)
    first, second = low, low
    for choice, there in zip(choices, inside, strict=True):
        c = select(choice == choice, choice, low)
        c = c if there is True else select(there, c, low)
        second = fmax(second, fmin(first, c))
        first = fmax(first, c)
    offset = of_group // 2
    while offset:
        other, runner = shfl_xor(first, offset), shfl_xor(second, offset)
        second = fmax(fmin(first, other), fmax(second, runner))
        first = fmax(first, other)
        offset //= 2
    score = first + second
    group = lane // of_group
    before, alive = Int32(0), Int32(0)
    one, zero = Int32(1), Int32(0)
    for g in range(lanes // of_group):
        other = shfl(score, g * of_group, width=lanes)
        ahead = (other > score) | ((other == score) & (group > g))
        before = before + select(ahead, one, zero)
        alive = alive + select(other > low, one, zero)
    return before < wanted, alive
