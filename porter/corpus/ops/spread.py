"""How element-wise work is spread over threads: blocks of a row's vectors, as many SMs as there is work for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.tuning import choose

_BLOCKS = (224, 256, 192, 160, 128)  # preferred first where several waste the same
_SM_THREADS = 2048  # of an SM at once (`Device.max_resident_blocks`)
_THREAD_BYTES = 64  # of input that a thread asks for at once: four loads of 16 bytes


@dataclass(frozen=True)
class ElementSpread:
    """How element-wise work is spread: threads of a block, rows that a thread works on at once, whether the input is
    prefetched into L2 before the previous kernel has finished, whether its loads leave nothing in L1, how many blocks,
    the first, prefetch (0: all), and elements of a thread and row (0: as the caller has them)."""

    threads: int
    rows: int
    prefetch: bool
    streaming: bool
    prefetch_blocks: int = 0
    vec: int = 0


def spread_elements(
    device: Device, op: str, dtype: str, rows: int, length: int, vec: int, vecs: Sequence[int] = ()
) -> ElementSpread:
    """The tuning table's choice for rows of `length` elements, `vec` a thread, or a rule: the block size that leaves
    the fewest threads of a row without work, and (without `vecs`) two rows a thread where all of them then run at once.
    (Fitted to what the tuner found on an H200; smaller blocks for little work start later.) Where not all blocks run at
    once, half of those that do prefetch their input, and loads pass through L1.

    `vecs`: other elements of a thread and row that the table may choose, where the kernel takes them; the rule keeps
    `vec`, and takes as few rows a thread as let all threads run at once, within 64 bytes a thread. An SM starts a block
    in the time that it needs to move some 3 KB: with a row a thread, much work is bound by the start of blocks.
    """
    vectors = -(-length // vec)
    share = -(-rows * vectors // device.sm_count)
    sizes = _BLOCKS if vectors > 1024 else (128, *_BLOCKS)
    threads = min(sizes, key=lambda threads: -(-vectors // threads) * threads)
    threads = min(threads, max(32, 1 << (vectors - 1).bit_length()))
    if vecs:
        most = max(1, _THREAD_BYTES // (vec * {"f32": 4}.get(dtype, 2)))
        several = _rows_of_a_thread(share, _SM_THREADS, most) if rows >= 64 else 1
    else:
        several = 2 if rows >= 64 and 200 <= share <= 2000 else 1

    def prefetch_blocks(vectors: int, threads: int, several: int) -> int:
        return device.prefetch_blocks(-(-vectors // threads) * -(-rows // several), threads)

    first = prefetch_blocks(vectors, threads, several)
    default = {"threads": threads, "rows": several, "prefetch": True, "streaming": not first, "prefetch_blocks": first}

    if vecs:
        default["vec"] = vec

    def candidates() -> list[dict[str, Any]]:
        if not vecs:
            return of_width(vectors)
        # several widths: a block of every power of two is near enough, and L1 matters with all else chosen only
        every = [c | {"vec": n} for n in vecs for c in of_width(-(-length // n))]
        return [c for c in every if c["threads"] in (64, 128, 256, 512, default["threads"])
                and c["streaming"] == default["streaming"]]  # fmt: skip

    def of_width(vectors: int) -> list[dict[str, Any]]:
        sizes = [t for t in (32, 64, 128, 192, 224, 256, 512, 1024) if t == 32 or t < 2 * vectors]
        found = [
            {"threads": t, "rows": n, "prefetch": p, "streaming": s, "prefetch_blocks": 0}
            for t in sizes for n in (1, 2, 4) if rows >= n * 32 or n == 1
            for p in (False, True) for s in (False, True)
        ]  # fmt: skip
        early = [(c, prefetch_blocks(vectors, c["threads"], c["rows"])) for c in found if c["prefetch"]]
        return found + [c | {"prefetch_blocks": first} for c, first in early if first]

    return ElementSpread(**choose(device, op, f"{dtype}x{vec} {length}", rows, default, candidates))


def _rows_of_a_thread(share: int, at_once: int, most: int) -> int:
    """The least power of two, `most` at most, with which an SM's `share` of vectors is no more than its threads."""
    rows = 1
    while 2 * rows <= most and share > rows * at_once:
        rows *= 2
    return rows
