"""Launches that no GPU of an architecture accepts, with the limit they break.

The numbers are those of the CUDA programming guide's table of compute capabilities. Multiprocessors are those of the
largest chip: a cooperative grid beyond what it holds runs on none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.case.model import LaunchShape

KIB = 1024
GRID = (2**31 - 1, 65535, 65535)
BLOCK = (1024, 1024, 64)
THREADS = 1024
CLUSTER = 8  # blocks, without asking for more than every device of the architecture has
STATIC_SHARED = 48 * KIB


@dataclass(frozen=True)
class Limits:
    """Of one architecture: shared memory in bytes (a block's includes its static part), threads and blocks an SM."""

    block_shared: int
    sm_shared: int
    sm_threads: int
    sm_blocks: int
    sms: int
    clusters: bool
    sm_registers: int = 65536


_LIMITS = {
    "75": Limits(64 * KIB, 64 * KIB, 1024, 16, 72, False),
    "80": Limits(163 * KIB, 164 * KIB, 2048, 32, 128, False),
    "86": Limits(99 * KIB, 100 * KIB, 1536, 16, 84, False),
    "87": Limits(163 * KIB, 164 * KIB, 1536, 16, 16, False),
    "89": Limits(99 * KIB, 100 * KIB, 1536, 24, 144, False),
    "90": Limits(227 * KIB, 228 * KIB, 2048, 32, 144, True),
    "100": Limits(227 * KIB, 228 * KIB, 2048, 32, 160, True),
    "103": Limits(227 * KIB, 228 * KIB, 2048, 32, 160, True),
    "110": Limits(227 * KIB, 228 * KIB, 1536, 24, 20, True),
    "120": Limits(99 * KIB, 100 * KIB, 1536, 24, 192, True),
    "121": Limits(99 * KIB, 100 * KIB, 1536, 24, 192, True),
}


def limits_of(arch: str) -> Limits:
    """The limits of `sm_90a` and the like; of architectures that are not listed those of sm_90."""
    found = re.match(r"(?:sm|compute)_(\d+)", arch)
    return _LIMITS.get(found.group(1) if found else "", _LIMITS["90"])


@dataclass(frozen=True)
class KernelResources:
    """What of a compiled kernel limits its launches: registers a thread (0: unknown), static shared memory in bytes."""

    registers: int = 0
    static_smem: int = 0


def resident_blocks(shape: LaunchShape, kernel: KernelResources, arch: str) -> int:
    """Blocks of a launch that one multiprocessor holds at once."""
    limits = limits_of(arch)
    warps = -(-shape.block[0] * shape.block[1] * shape.block[2] // 32)
    found = min(limits.sm_blocks, limits.sm_threads // (warps * 32))
    memory = shape.smem + kernel.static_smem
    if limits.block_shared > 100 * KIB or limits.clusters or memory:
        found = min(found, limits.sm_shared // (memory + KIB))  # 1 KiB of each block's is the system's
    if kernel.registers:
        of_warp = -(-kernel.registers * 32 // 256) * 256
        found = min(found, limits.sm_registers // of_warp // warps)
    return found


def broken_limit(shape: LaunchShape, kernel: KernelResources, arch: str, sm_count: int = 0) -> str:
    """What no GPU of the architecture accepts in a launch; "" where there is nothing, or where it launches no block.

    `sm_count`: of the machine, where the grid was scaled with it; 0: the largest of the architecture.
    """
    if shape.is_empty:
        return ""
    limits = limits_of(arch)
    for axis, size, most in zip("xyz", shape.grid, GRID, strict=True):
        if size > most:
            return f"a grid of {size} blocks in {axis} (grid.{axis}): at most {most}"
    for axis, size, most in zip("xyz", shape.block, BLOCK, strict=True):
        if not 1 <= size <= most:
            return f"a block of {size} threads in {axis} (block.{axis}): 1 to {most}"
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    if threads > THREADS:
        return f"a block of {threads} threads: at most {THREADS}"
    memory = shape.smem + kernel.static_smem
    if shape.smem < 0 or memory > limits.block_shared:
        return f"a block with {memory} bytes of shared memory: at most {limits.block_shared} on {arch}"
    if not shape.smem and kernel.static_smem > STATIC_SHARED:
        return f"a block with {kernel.static_smem} bytes of static shared memory: at most {STATIC_SHARED}"
    if kernel.registers and resident_blocks(shape, kernel, arch) < 1:
        return f"a block of {threads} threads with {kernel.registers} registers each: an SM has {limits.sm_registers}"
    blocks = shape.cluster[0] * shape.cluster[1] * shape.cluster[2]
    if blocks > 1 and not limits.clusters:
        return f"a launch in clusters: {arch} has none"
    if blocks > CLUSTER:
        return f"a cluster of {blocks} blocks: at most {CLUSTER} on every GPU"
    if any(g % c for g, c in zip(shape.grid, shape.cluster, strict=True)):
        return f"a grid of {shape.grid} in clusters of {shape.cluster}: not a multiple"
    grid = shape.grid[0] * shape.grid[1] * shape.grid[2]
    most = resident_blocks(shape, kernel, arch) * (sm_count or limits.sms)
    if shape.cooperative and grid > most:
        return f"a cooperative grid of {grid} blocks: at most {most} of these run at once on {arch}"
    return ""
