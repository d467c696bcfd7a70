"""Tensors in CPU memory as kernel arguments, known by what they can do: torch is not imported here."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from porter.verify.emulator.errors import LaunchError
from porter.verify.emulator.memory.buffers import Buffer


def is_tensor(value: object) -> bool:
    """Whether it is a torch tensor, or as good as one."""
    return all(hasattr(value, name) for name in ("data_ptr", "element_size", "stride", "device", "shape"))


def tensors_as_buffers(args: Sequence[object]) -> list[object]:
    """`args` with each tensor replaced by a pointer into a Buffer over its memory.

    A buffer reaches from a tensor's first element to its last; tensors that overlap (views of one another) share one,
    so that they are as far apart as on a GPU. Raises LaunchError for tensors elsewhere, with negative strides or
    with gradients wanted (their memory is not to be written behind autograd's back).
    """
    spans = {id(a): _span(a) for a in args if is_tensor(a)}
    merged: list[list[int]] = []
    for start, end in sorted(spans.values()):
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    buffers = [(start, end, Buffer(_memory(start, end))) for start, end in merged]
    found: list[object] = []
    for a in args:
        if id(a) not in spans:
            found.append(a)
            continue
        at = spans[id(a)][0]
        whole = next(b for b in buffers if b[0] <= at < b[1] or b[0] == at)
        found.append(whole[2].at(at - whole[0]))
    return found


def _span(tensor: Any) -> tuple[int, int]:
    """Addresses of a tensor's first byte and of the byte after its last."""
    if str(tensor.device) != "cpu":
        raise LaunchError(f"a tensor on {tensor.device}: the emulator takes those in CPU memory")
    if getattr(tensor, "requires_grad", False):
        raise LaunchError("a tensor that requires a gradient: pass tensor.detach()")
    start, size = int(tensor.data_ptr()), int(tensor.element_size())
    if 0 in tuple(tensor.shape):
        return start, start
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * size


def _memory(start: int, end: int) -> np.ndarray:
    """The bytes between two addresses. The caller of the launch keeps them alive: it holds the tensors."""
    if start == end:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
