"""What a kernel's launch is planned from: the architecture and the number of SMs, as a value that can be made up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from porter.corpus.runtime import arch as archs


@dataclass(frozen=True)
class Device:
    """An architecture name (`"sm_90a"`), how many SMs there are, and the device's name for the tuning table."""

    arch: str
    sm_count: int
    name: str = ""

    @property
    def capability(self) -> int:
        """90 for sm_90a."""
        return int("".join(c for c in self.arch.removeprefix("sm_") if c.isdigit()))

    @property
    def pdl(self) -> bool:
        """Whether kernels are launched so that they may start before the previous kernel has finished
        (`griddepcontrol`); from sm_90 on, unless PORTER_PDL=0."""
        return self.capability >= 90 and os.environ.get("PORTER_PDL", "1") != "0"

    def max_resident_blocks(self, threads: int) -> int:
        """Blocks of so many threads that run at once: 2048 threads and 32 blocks an SM (sm_90, sm_100), if registers
        and shared memory allow."""
        return self.sm_count * max(1, min(32, 2048 // threads))

    def early_blocks(self, threads: int) -> int:
        """How many blocks are worth prefetching their input before the previous kernel has finished: half of those that
        are resident at once, as the tuner found on an H200."""
        return self.max_resident_blocks(threads) // 2

    def prefetch_blocks(self, blocks: int, threads: int) -> int:
        """How many of `blocks` prefetch their input before the previous kernel has finished: `early_blocks`, or 0, that
        is all, where all are resident at once."""
        return self.early_blocks(threads) if blocks > self.max_resident_blocks(threads) else 0


def device_of(tensor: Any) -> Device:
    """The device that a CUDA tensor is on."""
    return device_of_index(tensor.get_device())


@cache
def device_of_index(index: int) -> Device:
    """The CUDA device with this number."""
    import torch

    return Device(archs.arch_for(index), archs.sm_count(index), torch.cuda.get_device_name(index))


@cache
def one_kind_of_device() -> bool:
    """Whether all GPUs of this process are alike, so that what is planned for one is right for the others."""
    import torch

    return len({device_of_index(i) for i in range(torch.cuda.device_count())}) == 1
