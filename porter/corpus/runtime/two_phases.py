"""Host-side choice for two phases of work of all blocks: one cooperative launch with a grid barrier, or two."""

from __future__ import annotations

from dataclasses import dataclass

from porter.corpus.runtime.device import Device

# Per SM by compute capability: threads, registers, bytes of shared memory, blocks (CUDA programming guide, "technical
# specifications per compute capability"). One block's shared memory also holds 1 KB of the driver's.
_LIMITS = {
    80: (2048, 65536, 164 << 10, 32), 86: (1536, 65536, 100 << 10, 16), 89: (1536, 65536, 100 << 10, 24),
    90: (2048, 65536, 228 << 10, 32), 100: (2048, 65536, 228 << 10, 32), 103: (2048, 65536, 228 << 10, 32),
    120: (1536, 65536, 100 << 10, 24), 121: (1536, 65536, 100 << 10, 24),
}  # fmt: skip
_RESERVED = 1024


@dataclass(frozen=True)
class Costs:
    """Microseconds. barrier_us: a grid barrier, about 1.1 on an H200; launch_us, launch_pdl_us: a second launch in a
    graph, without and with programmatic dependent launch; bytes_per_us: what global memory gives."""

    barrier_us: float = 1.1
    launch_us: float = 1.6
    launch_pdl_us: float = 0.6
    bytes_per_us: float = 4.3e6


def resident_blocks(device: Device, threads: int, registers: int, shared_bytes: int = 0) -> int:
    """How many blocks of a kernel run at once on a device, which is what a cooperative launch may have at most.

    `registers` of a thread; `shared_bytes` of a block. Raises ValueError for a compute capability without limits here.
    """
    limits = _LIMITS.get(device.capability)
    if limits is None:
        raise ValueError(f"the limits of {device.arch} are not known; known: {', '.join(map(str, _LIMITS))}")
    most_threads, most_registers, most_shared, most_blocks = limits
    warps = -(-threads // 32)
    per_warp = -(-max(registers, 1) * 32 // 256) * 256  # registers come in units of 256 a warp
    most_warps = most_registers // 4 // per_warp * 4  # each quarter of an SM has its own
    found = min(
        most_blocks, most_threads // (warps * 32), most_warps // warps, most_shared // (shared_bytes + _RESERVED)
    )  # fmt: skip
    return found * device.sm_count


def one_launch(device: Device, blocks: int, resident: int, kept_bytes: int, costs: Costs | None = None) -> bool:
    """Whether one cooperative launch of `blocks` blocks is to be preferred to two launches.

    `resident`: see `resident_blocks`; with more blocks than that the barrier would never open. `kept_bytes`: what all
    blocks together keep in registers or shared memory over the barrier, and two launches would read again.
    """
    if blocks > resident:
        return False
    costs = costs or Costs()
    second = costs.launch_pdl_us if device.pdl else costs.launch_us
    return costs.barrier_us < second + kept_bytes / costs.bytes_per_us
