"""Floats as unsigned integers in the same order, for exact comparisons and selections: NaN above all, zeros equal."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Uint32

from porter.corpus.lib.integers import select
from porter.corpus.lib.warp import redux, shfl_xor

NOTHING = 0  # below the code of every float
_NAN = 0xFFFFFFFF


def ordered(x):
    """The code of a Float32: larger numbers have larger codes, -0 that of 0, every NaN the largest."""
    bits = (x + Float32(0.0)).bitcast(Uint32)  # -0 + 0 is 0
    negative = bits >= Uint32(0x80000000)
    code = select(negative, ~bits, bits | Uint32(0x80000000))
    return select(x == x, code, Uint32(_NAN))


def from_ordered(code):
    """The Float32 that a code stands for."""
    bits = select(code >= Uint32(0x80000000), code & Uint32(0x7FFFFFFF), ~code)
    return select(code == Uint32(_NAN), Uint32(0x7FFFFFFF), bits).bitcast(Float32)


def warp_argmax(code, index):
    """(largest code of the warp, lowest index of those with it), in every lane (two `redux.sync`)."""
    best = redux(code, "max")
    return best, redux(select(code == best, index, Uint32(0xFFFFFFFF)), "min")


def group_argmax(code, index, width=32):
    """`warp_argmax` over groups of `width` lanes (a power of two; two `shfl.sync.bfly.b32` a step)."""
    if width == 32:
        return warp_argmax(code, index)
    offset = width // 2
    while offset:
        other, where = shfl_xor(code, offset), shfl_xor(index, offset)
        better = (other > code) | ((other == code) & (where < index))
        code, index = select(better, other, code), select(better, where, index)
        offset //= 2
    return code, index


def group_top_k(codes, indices, k, width=32):
    """The k (constant) largest of all codes of groups of `width` lanes, equal ones in the order of their indices.

    A list of (code, index), the same in every lane of a group. `codes`, `indices`: Python lists of a lane's Uint32;
    indices differ. Past the last number the code is NOTHING. k times `group_argmax`.
    """
    found = []
    for _ in range(k):
        code, index = codes[0], indices[0]
        for c, i in zip(codes[1:], indices[1:], strict=True):
            better = (c > code) | ((c == code) & (i < index))
            code, index = select(better, c, code), select(better, i, index)
        found.append(group_argmax(code, index, width))
        taken = found[-1][1]
        codes = [select(i == taken, Uint32(NOTHING), c) for c, i in zip(codes, indices, strict=True)]
    return found


@cute.jit
def block_argmax(code, index, codes: cute.Pointer, indices: cute.Pointer, warps: cutlass.Constexpr, parity):
    """`warp_argmax` over the `warps` warps of a block, from each warp's result; every thread gets the result.

    `codes`, `indices`: shared memory for 2 * `warps` Uint32 each. One `bar.sync`; calls whose `parity` alternates
    between 0 and 1 need no other barrier between them.
    """
    lane = cute.arch.lane_idx()
    slot = parity * warps
    if lane == 0:
        codes[slot + cute.arch.thread_idx()[0] // 32] = code
        indices[slot + cute.arch.thread_idx()[0] // 32] = index
    cute.arch.sync_threads()
    mine = slot + cutlass.min(lane, warps - 1)
    return warp_argmax(Uint32(codes[mine]), Uint32(indices[mine]))
