"""How quantising kernels that need more choices than rows or elements are spread over threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.tuning import choose
from porter.corpus.runtime.two_phases import Costs, one_launch

_THREADS = 1024  # of a block: one of them fits into an SM whatever its registers, so all blocks of a launch run at once
_KEPT = 8  # vectors of 16 bytes, of 64 registers
_COSTS = Costs(launch_us=2 * Costs.launch_us)  # what sets the scale to zero is a launch too


@dataclass(frozen=True)
class TensorSpread:
    """How all numbers of a tensor are spread where they share a scale. launches: 2, or 1 with a barrier of all blocks,
    `most` at most; kept: vectors that a thread keeps in registers over the barrier."""

    launches: int
    threads: int
    most: int
    kept: int


def spread_tensor(device: Device, op: str, dtype: str, rows: int, length: int, vec: int) -> TensorSpread:
    """The tuning table's choice, or a rule: one block where its threads can keep all numbers in four vectors each; else
    two launches if the second may start while the first ends: it finds in L2 what the first has read, and on an H200
    (bench/results/one_or_two_launches.json) that is quicker than a barrier in most shapes, and at most 4 % slower in
    the others. Without such starts, one launch with a barrier where `two_phases.one_launch` says so, which is while
    most numbers stay in registers. Blocks of one launch are never more than SMs."""
    vectors = rows * (length // vec)

    def one(threads: int, most: int, kept: int | None = None) -> dict[str, Any]:
        each = -(-vectors // (threads * min(most, -(-vectors // threads))))
        return {"launches": 1, "threads": threads, "most": most, "kept": min(_KEPT, _power(each), kept or _KEPT)}

    def two(threads: int, times: int) -> dict[str, Any]:
        most = max(2, times * device.sm_count * _THREADS // threads)
        return {"launches": 2, "threads": threads, "most": most, "kept": 0}

    if vectors <= 4 * _THREADS:
        default = one(min(_THREADS, max(32, _power(vectors))), 1)
    elif device.pdl:
        # all threads of an SM in blocks of 256 are twice `_THREADS`: worth their start if each has much to do
        default = two(256, 2 if vectors > _KEPT * _THREADS * device.sm_count else 1)
    else:
        nbytes = vectors * vec * {"f32": 4}.get(dtype, 2)
        again = max(0, nbytes - device.sm_count * _THREADS * _KEPT * 16)
        blocks = min(device.sm_count, -(-vectors // _THREADS))
        kept = nbytes - 2 * again  # what is not read again counts, what is, costs as much in either way
        pays = one_launch(device, blocks, device.sm_count, kept, _COSTS)
        default = one(_THREADS, device.sm_count) if pays else two(512, 2)

    def candidates() -> list[dict[str, Any]]:
        found = [one(t, 1) for t in (256, 512, 1024) if t <= 2 * vectors and vectors <= 2 * _KEPT * _THREADS]
        if vectors > 256:
            most = [m for m in (device.sm_count, device.sm_count // 2, device.sm_count // 4) if m > 1]
            found += [one(t, m, kept) for t in (512, 1024) for m in most for kept in (1, 4, _KEPT)]
            found += [two(t, times) for t in (256, 512, 1024) for times in (1, 2)]
        return list({tuple(c.items()): c for c in found}.values())

    return TensorSpread(**choose(device, op, f"{dtype}x{vec} {length}", rows, default, candidates))


def _power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()
