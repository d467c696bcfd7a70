"""Buffers of the verifier on a device: guard zones included, as torch tensors with the case's shapes and strides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from porter.corpus.runtime import torch_type
from porter.verify.launches.buffers import Buffers, HostBuffer


@dataclass
class DeviceBuffer:
    """`allocation` holds every byte, guards too; `tensor` is the view that a caller of the port would have."""

    allocation: torch.Tensor
    tensor: torch.Tensor

    @property
    def address(self) -> int:
        return self.tensor.data_ptr()


DeviceBuffers = dict[str, DeviceBuffer]


def offset_of(buffer: HostBuffer) -> int:
    """Bytes from the start of the allocation to the first element (0 for an empty buffer)."""
    return buffer.raw.ctypes.data - buffer.allocation.ctypes.data if buffer.raw.size else 0


def view(buffer: HostBuffer, allocation: torch.Tensor) -> torch.Tensor:
    """The buffer's elements in a device copy of its allocation (uint8)."""
    dtype = torch_type(buffer.dtype)
    if buffer.raw.size == 0:
        return torch.empty(buffer.shape, dtype=dtype, device=allocation.device)
    start = offset_of(buffer)
    return allocation[start : start + buffer.raw.nbytes].view(dtype).as_strided(buffer.shape, buffer.strides)


def upload(buffers: Buffers, device: Any, null: frozenset[str] = frozenset()) -> DeviceBuffers:
    """Device copies of all buffers but the null ones, byte for byte."""
    found = {}
    for name, buffer in buffers.items():
        if name not in null:
            allocation = torch.from_numpy(buffer.allocation).clone().to(device)
            found[name] = DeviceBuffer(allocation, view(buffer, allocation))
    return found


def restore(device: DeviceBuffers, pristine: Mapping[str, torch.Tensor]) -> None:
    """Set every byte back, on the current stream."""
    for name, buffer in device.items():
        buffer.allocation.copy_(pristine[name])


def pristine_of(device: DeviceBuffers) -> dict[str, torch.Tensor]:
    return {name: b.allocation.clone() for name, b in device.items()}


def fetch(device: DeviceBuffers, like: Buffers) -> Buffers:
    """Host buffers with the bytes that are on the device now; null buffers as they are in `like`."""
    found = {}
    for name, buffer in like.items():
        twin = buffer.copy()
        if name in device:
            twin.allocation[:] = device[name].allocation.cpu().numpy()
        found[name] = twin
    return found
