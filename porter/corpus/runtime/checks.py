"""What a torch-facing function checks before it launches, and the mark that a hole leaves in a port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from porter.corpus.runtime.dtypes import name_of


def aligned(tensor: Any, nbytes: int) -> bool:
    """True when the tensor starts at a multiple of `nbytes` (None, an absent operand, is)."""
    return tensor is None or tensor.data_ptr() % nbytes == 0


def check(
    name: str,
    tensor: Any,
    dtype: str,
    shape: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    device: Any = None,
    optional: bool = False,
) -> None:
    """Raise ValueError unless the tensor has this dtype (scalar name), shape, element strides and device.

    Without `strides` the tensor must be contiguous. Strides of dimensions of length 0 or 1 do not matter.
    """
    if tensor is None:
        if optional:
            return
        raise ValueError(f"{name} is None")
    if name_of(tensor.dtype) != dtype and not (dtype in ("u8", "bool") and name_of(tensor.dtype) in ("u8", "bool")):
        raise ValueError(f"{name} has dtype {tensor.dtype}, the kernel takes {dtype}")
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, the other operands imply {tuple(shape)}")
    if device is not None and tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device}, another operand on {device}")
    if strides is None:
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous, it has strides {tensor.stride()}")
        return
    if tensor.numel() == 0:
        return
    for i, (have, want, length) in enumerate(zip(tensor.stride(), strides, tensor.shape, strict=True)):
        if length > 1 and have != want:
            raise ValueError(f"{name} has stride {have} in dimension {i}, the kernel takes {want}")


class HoleReached(NotImplementedError):
    """Tracing reached a place that porter could not translate."""


def hole(number: int, code: str, *_: Any) -> Any:
    """Stands in a port where CUDA code was not translated; a port with holes does not compile."""
    raise HoleReached(f"hole {number} ({code}) is open: see the comment at this line")
