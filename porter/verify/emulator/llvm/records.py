"""What compiled code remembers of the last write and the last reads of each granule, for its race check.

The check (runtime/races.c) must find every race that checks/races.py would report in any order of the same accesses,
and may suspect more: what looks like a race makes the launch go back to the interpreter, which decides and reports. So
two accesses are ordered here by barriers and warp-synchronising instructions only, blocks never are, and what cannot be
told apart counts as unordered.

A record is 32 bits: the thread in its block, flags, and an epoch. Epochs grow over the launch: a warp takes a new one
when it synchronises after an access, all warps of a barrier take a common one when they cross it, and every block
starts above those of the blocks before. An access is ordered behind a record of another warp when the record's epoch is
below what it knows of that warp. 0 means nobody.
"""

from __future__ import annotations

import numpy as np

LANE, WARP_BITS = 0x1F, 0x3E0  # of the thread
LANES = 1 << 10  # several lanes of the warp
WARPS = 1 << 11  # several warps, or (epoch 1) other blocks; the epoch is the latest of theirs
STRONG = 1 << 12  # strong accesses only, of a scope that other blocks share
AFTER_WEAK = 1 << 13  # strong, but the same warp has made a weak access before that others may not know of
FLAGS = 0x3FFF
SHIFT, EPOCHS = 14, 1 << 18
FOREIGN = 1 << SHIFT | WARPS
RENUMBER = 1 << 17  # no block starts at a later epoch


STRETCH = 1 << 20  # records that are looked at in one go


def renumber(records: np.ndarray) -> None:
    """Turns all records of a region of global memory into those of other blocks, so that epochs may start anew."""
    for start in range(0, records.size, STRETCH):
        part = records[start : start + STRETCH]
        where = np.flatnonzero(part)
        if where.size:
            part[where] = FOREIGN | np.where(part[where] & AFTER_WEAK, 0, part[where] & STRONG)


def fill_foreign(records: np.ndarray, threads: list[np.ndarray], strong: np.ndarray, level: int) -> None:
    """Records of granules that blocks have used whose `threads` are not 0.

    They are strong where only the first thread is known, and its scope in `strong` is `level` or wider.
    """
    for start in range(0, strong.size, STRETCH):
        part = slice(start, start + STRETCH)
        first, *others = (t[part] > 0 for t in threads)
        known = first & (strong[part] >= level)
        for other in others:
            known &= ~other
            first = first | other
        where = np.flatnonzero(first)
        if where.size:
            records[part][where] = FOREIGN | np.where(known[where], STRONG, 0)
