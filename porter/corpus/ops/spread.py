"""How element-wise work is spread over threads: blocks of a row's vectors, as many SMs as there is work for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.tuning import choose

_BLOCKS = (256, 224, 192, 160, 128)  # preferred first where several waste the same


@dataclass(frozen=True)
class Elements:
    """How element-wise work is spread: threads of a block, rows that a thread works on at once, and whether the input
    is asked for in L2 before the previous kernel has finished."""

    threads: int
    rows: int
    prefetch: bool


def spread_elements(device: Device, op: str, dtype: str, rows: int, length: int, vec: int) -> Elements:
    """The tuning table's choice for rows of `length` elements, `vec` a thread, or a rule.

    Little work: blocks of one warp or a few, so that every SM gets some. Much: the block size that leaves the fewest
    threads of a row without work.
    """
    vectors = -(-length // vec)
    share = -(-rows * vectors // device.sm_count)
    if share < 128:
        threads = max(32, min(1 << (share - 1).bit_length(), 128))
    else:
        threads = min(_BLOCKS, key=lambda threads: -(-vectors // threads) * threads)
    default = {"threads": threads, "rows": 1, "prefetch": share <= 2048}

    def candidates() -> list[dict[str, Any]]:
        blocks = [t for t in (32, 64, 128, 192, 224, 256, 512, 1024) if t == 32 or t < 2 * vectors]
        several = [n for n in (1, 2, 4) if rows >= n * 32 or n == 1]
        return [{"threads": t, "rows": n, "prefetch": p} for t in blocks for n in several for p in (False, True)]

    return Elements(**choose(device, op, f"{dtype}x{vec} {length}", rows, default, candidates))
