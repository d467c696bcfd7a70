"""Warp-level exchange, votes and reductions. Masks are Uint32 lane masks; `width` is a power of two up to 32."""

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float64, Int32, Int64, Uint32

from porter.corpus.lib.floats import larger, smaller

FULL = 0xFFFFFFFF


def _mask(mask):
    # the DSL takes the mask as a signed 32-bit value
    return mask - (1 << 32) if isinstance(mask, int) and mask >= 1 << 31 else Int32(mask)


def _native(v):
    return v.width >= 32


def _bits(v):
    # narrower types go through float32 in the DSL's shuffle, which canonicalises NaNs; shuffling the bits does not
    if type(v) is Boolean:
        return Uint32(v)
    return Uint32(v.bitcast({16: cutlass.Uint16, 8: cutlass.Uint8}[v.width]))


def _restore(r, t):
    if t is Boolean:
        return r != 0
    narrow = {16: cutlass.Uint16, 8: cutlass.Uint8}[t.width](r)
    return narrow.bitcast(t)


def _shuffle(op, v, lane, mask, clamp):
    t = type(v)
    if t is Float64:
        return op(v.bitcast(Int64), lane, mask=_mask(mask), mask_and_clamp=clamp).bitcast(Float64)
    if _native(v):
        return op(v, lane, mask=_mask(mask), mask_and_clamp=clamp)
    return _restore(op(_bits(v), lane, mask=_mask(mask), mask_and_clamp=clamp), t)


def _segment(width):
    # PTX packs the segment mask in bits 8-12 and the clamp in bits 0-4
    return (32 - width) << 8


def shfl_xor(v, lane_mask, mask=FULL, width=32):
    """`__shfl_xor_sync` (`shfl.sync.bfly.b32`): the value of lane `lane ^ lane_mask` within groups of `width`."""
    return _shuffle(cute.arch.shuffle_sync_bfly, v, lane_mask, mask, _segment(width) | 31)


def shfl_down(v, delta, mask=FULL, width=32):
    """`__shfl_down_sync` (`shfl.sync.down.b32`); lanes past the end of their group keep their own value."""
    return _shuffle(cute.arch.shuffle_sync_down, v, delta, mask, _segment(width) | 31)


def shfl_up(v, delta, mask=FULL, width=32):
    """`__shfl_up_sync` (`shfl.sync.up.b32`); lanes before the start of their group keep their own value."""
    return _shuffle(cute.arch.shuffle_sync_up, v, delta, mask, _segment(width))


def shfl(v, lane, mask=FULL, width=32):
    """`__shfl_sync` (`shfl.sync.idx.b32`): the value of lane `lane` of the group of `width`."""
    return _shuffle(cute.arch.shuffle_sync, v, lane, mask, _segment(width) | 31)


def as_predicate(x):
    """A Boolean from a Boolean or an integer (C's test against zero)."""
    return Boolean(x) if isinstance(x, bool | int) or type(x) is Boolean else x != type(x)(0)


def ballot(pred, mask=FULL):
    """`__ballot_sync` (`vote.sync.ballot.b32`), Uint32."""
    return Uint32(cute.arch.vote_ballot_sync(as_predicate(pred), _mask(mask)))


def any_sync(pred, mask=FULL):
    """`__any_sync` (`vote.sync.any.pred`), Boolean."""
    return Boolean(cute.arch.vote_any_sync(as_predicate(pred), _mask(mask)))


def all_sync(pred, mask=FULL):
    """`__all_sync` (`vote.sync.all.pred`), Boolean."""
    return Boolean(cute.arch.vote_all_sync(as_predicate(pred), _mask(mask)))


def activemask():
    """`__activemask`, Uint32 (`activemask.b32`)."""
    return Uint32(cute.arch.activemask())


def match_any(v, mask=FULL):
    """`__match_any_sync`: lanes of the mask that hold the same value, Uint32 (`match.any.sync`)."""
    return Uint32(cute.arch.match_sync(_mask(mask), v, kind="any"))


def sync_warp(mask=FULL):
    """`__syncwarp` (`bar.warp.sync`)."""
    cute.arch.sync_warp(_mask(mask))


def redux(v, op, mask=FULL):
    """`__reduce_add/min/max/and/or/xor_sync` on 32-bit integers (`redux.sync`)."""
    return cute.arch.warp_redux_sync(v, op, mask_and_clamp=_mask(mask))


def lane_id():
    """This thread's lane, Int32."""
    return cute.arch.lane_idx()


def warp_sum(v, width=32):
    """Sum over groups of `width` lanes, in every lane (xor shuffles from width/2 down to 1)."""
    offset = width // 2
    while cutlass.const_expr(offset > 0):
        v = v + shfl_xor(v, offset, width=width)
        offset //= 2
    return v


def warp_max(v, width=32):
    """Largest value of groups of `width` lanes, in every lane; floats ignore NaN as `fmaxf` does."""
    offset = width // 2
    while cutlass.const_expr(offset > 0):
        other = shfl_xor(v, offset, width=width)
        v = larger(v, other)
        offset //= 2
    return v


def warp_min(v, width=32):
    """Smallest value of groups of `width` lanes, in every lane; floats ignore NaN as `fminf` does."""
    offset = width // 2
    while cutlass.const_expr(offset > 0):
        other = shfl_xor(v, offset, width=width)
        v = smaller(v, other)
        offset //= 2
    return v


def elect_mask_lt():
    """Mask of the lanes below this one, Uint32 (`%lanemask_lt`)."""
    return Uint32(cute.arch.lanemask_lt())


def tile_mask(size):
    """Lane mask of this thread's tile of `size` lanes, Uint32."""
    first = (cute.arch.lane_idx() // size) * size
    return Uint32((1 << size) - 1) << Uint32(first)
