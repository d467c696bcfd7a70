"""How element-wise work is spread over threads: blocks of a row's vectors, as many SMs as there is work for."""

from __future__ import annotations

from porter.corpus.runtime.device import Device

_BLOCKS = (256, 224, 192, 160, 128)  # preferred first where several waste the same


def spread_elements(device: Device, rows: int, length: int, vec: int) -> tuple[int, int]:
    """(threads of a block, rows of a thread) for rows of `length` elements, `vec` a thread.

    Little work: blocks of one warp or a few, so that every SM gets some. Much: the block size that leaves the fewest
    threads of a row without work.
    """
    vectors = -(-length // vec)
    share = -(-rows * vectors // device.sm_count)
    if share < 128:
        return max(32, min(1 << (share - 1).bit_length(), 128)), 1
    return min(_BLOCKS, key=lambda threads: -(-vectors // threads) * threads), 1
