"""What one GPU has otherwise than the next, drawn anew for each launch: nothing that a kernel leaves may depend on it.

Multiprocessors and which of them a block runs on, clocks, the number of the grid, performance counters, and where in
memory the buffers lie. The draw depends on the schedule's seed and on the launch alone, so that a run can be repeated.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from porter.verify.emulator.memory.layout import GLOBAL_BASE

SM_COUNTS = (78, 132, 160)  # of an H20, an H100 SXM or H200, and a whole GB100
# Where drivers put allocations: above 4 GiB, or beside the host's own mappings.
_LOW, _LOW_SPAN = 0x2_0000_0000, 0x3E_0000_0000
_HIGH_SPAN = 0xE00_0000_0000
_PAGE = 1 << 21


@dataclass(frozen=True)
class Machine:
    """One drawn machine. `first_sm` and `stride` place block b on multiprocessor (first_sm + b * stride) % sms."""

    sms: int
    first_sm: int
    stride: int
    clock: int  # cycles at the start of the launch
    tick: int  # cycles from one look at the clock to the next, at least
    time: int  # nanoseconds, of %globaltimer
    grid_id: int
    noise: int  # of performance counters and of what else is nobody's business
    buffers: int  # address from which on buffers are placed

    def smid(self, blocks: np.ndarray) -> np.ndarray:
        """The multiprocessor of each linear block number."""
        return (self.first_sm + blocks * self.stride) % self.sms


def draw(seed: int, facts: Sequence[int]) -> Machine:
    """The machine of one launch. `facts`: grid, block, sizes of buffers, whatever tells launches apart."""
    rng = np.random.default_rng([seed, zlib.crc32(repr(tuple(facts)).encode())])
    sms = int(rng.choice(SM_COUNTS))
    strides = [s for s in range(1, sms) if np.gcd(s, sms) == 1]
    low = rng.random() < 0.5
    start = _LOW + int(rng.integers(_LOW_SPAN // _PAGE)) * _PAGE
    if not low:
        start = GLOBAL_BASE + (1 << 40) + int(rng.integers((_HIGH_SPAN - (1 << 40)) // _PAGE)) * _PAGE
    return Machine(
        sms=sms,
        first_sm=int(rng.integers(sms)),
        stride=int(rng.choice(strides)),
        clock=int(rng.integers(1 << 30, 1 << 50)),
        tick=int(rng.integers(8, 400)),
        time=int(rng.integers(1_500_000_000, 2_500_000_000)) * 1_000_000_000 + int(rng.integers(1_000_000_000)),
        grid_id=int(rng.integers(1, 1 << 40)),
        noise=int(rng.integers(1, 1 << 62)),
        buffers=start,
    )


USUAL = draw(0, ())
