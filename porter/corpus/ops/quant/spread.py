"""How quantising kernels that need more choices than rows or elements are spread over threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.tuning import choose
from porter.corpus.runtime.two_phases import one_launch

_THREADS = 1024  # of a block: one of them fits into an SM whatever its registers, so all blocks of a launch run at once
_KEPT = 8  # vectors of 16 bytes, of 64 registers


@dataclass(frozen=True)
class TensorSpread:
    """How all numbers of a tensor are spread where they share a scale. launches: 2, or 1 with a barrier of all
    `blocks`; kept: vectors that a thread keeps in registers over the barrier."""

    launches: int
    threads: int
    blocks: int
    kept: int


def spread_tensor(device: Device, op: str, dtype: str, rows: int, length: int, vec: int) -> TensorSpread:
    """The tuning table's choice, or a rule: one block where its threads can keep all numbers in four vectors each; else
    one launch with a barrier where `two_phases.one_launch` says so, which is while most numbers stay in registers."""
    vectors = rows * (length // vec)
    most = device.sm_count
    alone = -(-vectors // _THREADS)
    if alone <= 4:
        default = {"launches": 1, "threads": _threads(vectors), "blocks": 1, "kept": _power(alone)}
    else:
        blocks = min(most, -(-vectors // (_THREADS // 2)))
        each = -(-vectors // (blocks * _THREADS))
        nbytes = vectors * vec * {"f32": 4}.get(dtype, 2)
        again = max(0, nbytes - blocks * _THREADS * _KEPT * 16)
        kept = nbytes - 2 * again  # what is not read again counts, what is, costs as much in either way
        if one_launch(device, blocks, most, kept):
            default = {"launches": 1, "threads": _THREADS, "blocks": blocks, "kept": min(_KEPT, _power(each))}
        else:
            default = {"launches": 2, "threads": 512, "blocks": _many(device, vectors, 512), "kept": 0}

    def candidates() -> list[dict[str, Any]]:
        found = []
        if alone <= 2 * _KEPT:
            found += [{"launches": 1, "threads": t, "blocks": 1, "kept": min(_KEPT, _power(-(-vectors // t)))}
                      for t in (256, 512, 1024) if t <= 2 * vectors]  # fmt: skip
        for threads in (512, 1024):
            for per_sm in (1, 0.5, 0.25):
                blocks = min(int(most * per_sm), -(-vectors // threads))
                if blocks > 1:
                    each = -(-vectors // (blocks * threads))
                    found += [{"launches": 1, "threads": threads, "blocks": blocks, "kept": kept}
                              for kept in (0, 2, 4, 8, 16) if kept <= _power(each)
                              and kept * threads <= _KEPT * _THREADS]  # fmt: skip
        for threads in (256, 512, 1024):
            for times in (1, 2, 4):
                blocks = min(times * most * 1024 // threads, -(-vectors // threads))
                if blocks > 1:
                    found.append({"launches": 2, "threads": threads, "blocks": blocks, "kept": 0})
        return list({tuple(c.items()): c for c in found}.values())

    return TensorSpread(**choose(device, op, f"{dtype}x{vec} {length}", rows, default, candidates))


def _many(device: Device, vectors: int, threads: int) -> int:
    return max(2, min(device.blocks_at_once(threads), -(-vectors // threads)))


def _threads(vectors: int) -> int:
    return min(_THREADS, max(32, -(-vectors // 32) * 32))


def _power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()
