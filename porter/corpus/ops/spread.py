"""How element-wise work is spread over threads: blocks of a row's vectors, as many SMs as there is work for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.tuning import choose

_BLOCKS = (224, 256, 192, 160, 128)  # preferred first where several waste the same


@dataclass(frozen=True)
class Elements:
    """How element-wise work is spread: threads of a block, rows that a thread works on at once, whether the input is
    asked for in L2 before the previous kernel has finished, whether its loads leave nothing in L1, how many blocks, the
    first, ask (0: all), and elements of a thread and row (0: as the caller has them)."""

    threads: int
    rows: int
    prefetch: bool
    stream: bool
    lead: int = 0
    vec: int = 0


def spread_elements(
    device: Device, op: str, dtype: str, rows: int, length: int, vec: int, vecs: Sequence[int] = ()
) -> Elements:
    """The tuning table's choice for rows of `length` elements, `vec` a thread, or a rule: the block size that leaves
    the fewest threads of a row without work, and two rows a thread where all of them then run at once. (Fitted to what
    the tuner found on an H200; smaller blocks for little work start later.) Where not all blocks run at once, half of
    those that do ask for their input, and loads pass through L1.

    `vecs`: other elements of a thread and row that the table may choose, where the kernel takes them; the rule keeps
    `vec`.
    """
    vectors = -(-length // vec)
    share = -(-rows * vectors // device.sm_count)
    sizes = _BLOCKS if vectors > 1024 else (128, *_BLOCKS)
    threads = min(sizes, key=lambda threads: -(-vectors // threads) * threads)
    threads = min(threads, max(32, 1 << (vectors - 1).bit_length()))
    several = 2 if rows >= 64 and 200 <= share <= 2000 else 1

    def lead_of(vectors: int, threads: int, several: int) -> int:
        return device.lead(-(-vectors // threads) * -(-rows // several), threads)

    lead = lead_of(vectors, threads, several)
    default = {"threads": threads, "rows": several, "prefetch": True, "stream": not lead, "lead": lead}

    if vecs:
        default["vec"] = vec

    def candidates() -> list[dict[str, Any]]:
        if not vecs:
            return of_width(vectors)
        # several widths: a block of every power of two is near enough, and L1 matters with all else chosen only
        every = [c | {"vec": n} for n in vecs for c in of_width(-(-length // n))]
        return [c for c in every if c["threads"] in (64, 128, 256, 512, default["threads"])
                and c["stream"] == default["stream"]]  # fmt: skip

    def of_width(vectors: int) -> list[dict[str, Any]]:
        sizes = [t for t in (32, 64, 128, 192, 224, 256, 512, 1024) if t == 32 or t < 2 * vectors]
        found = [
            {"threads": t, "rows": n, "prefetch": p, "stream": s, "lead": 0}
            for t in sizes for n in (1, 2, 4) if rows >= n * 32 or n == 1
            for p in (False, True) for s in (False, True)
        ]  # fmt: skip
        asking = [(c, lead_of(vectors, c["threads"], c["rows"])) for c in found if c["prefetch"]]
        return found + [c | {"lead": lead} for c, lead in asking if lead]

    return Elements(**choose(device, op, f"{dtype}x{vec} {length}", rows, default, candidates))
