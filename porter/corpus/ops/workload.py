"""What a workload is: arguments of an op at the sizes that engines use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

EPS = 1e-6
HIDDEN = tuple({"hidden": h} for h in (2048, 2880, 4096, 5120, 7168, 8192))


@dataclass(frozen=True)
class Workload:
    """`make(tokens, dtype, device, **dims)` gives all arguments of an op; `dims` are the sizes to use it with.

    `traffic(tokens, itemsize, **dims)`: bytes that must move. `tuned`: whether the tuning table is asked in this op's
    name; others use what was found for another op, or have no choices.
    """

    make: Callable[..., tuple[Any, ...]]
    traffic: Callable[..., int]
    dims: tuple[Mapping[str, int], ...]
    tuned: bool = True


def normal(*shape: int, dtype: Any, device: Any) -> Any:
    """Normally distributed numbers; on the "meta" device a tensor without memory."""
    import torch

    if str(device) == "meta":
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.randn(shape, device=device).to(dtype)


def empty(*shape: int, dtype: str, device: Any) -> Any:
    """Memory to write to. `dtype` is torch's name of one."""
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype) if isinstance(dtype, str) else dtype, device=device)


def constant(value: float, device: Any) -> Any:
    """One float32, shape (1,)."""
    import torch

    return torch.full((1,), value, device=device)
