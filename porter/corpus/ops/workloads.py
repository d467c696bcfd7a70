"""Arguments of the sizes that engines use, for every op: what is tuned, timed and built ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

EPS = 1e-6


@dataclass(frozen=True)
class Workload:
    """`make(tokens, dtype, device, **dims)` gives the arguments of an op; `dims` are the sizes to use it with.

    `traffic(tokens, itemsize, **dims)`: bytes that must move. `candidates(device, args)`: choices that the tuner tries;
    `key(args)` and `rows(args)`: what the plan asks the tuning table with.
    """

    make: Callable[..., tuple[Any, ...]]
    traffic: Callable[..., int]
    dims: tuple[Mapping[str, int], ...]


HIDDEN = tuple({"hidden": h} for h in (2048, 2880, 4096, 5120, 7168, 8192))
HEADS = tuple({"q_heads": 32, "k_heads": 8, "head": d} for d in (64, 128, 256))


def _rms_norm(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, w = _normal(tokens, hidden, dtype=dtype, device=device), _normal(hidden, dtype=dtype, device=device)
    return _empty(x), x, w, EPS, 0.0, "vllm"


def _fused_add_rms_norm(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    x, r = (_normal(tokens, hidden, dtype=dtype, device=device) for _ in range(2))
    return x, r, _normal(hidden, dtype=dtype, device=device), EPS, 0.0, "vllm"


def _qk_norm(tokens: int, dtype: Any, device: Any, q_heads: int, k_heads: int, head: int) -> tuple[Any, ...]:
    q, k = (_normal(tokens, heads, head, dtype=dtype, device=device) for heads in (q_heads, k_heads))
    return q, k, *(_normal(head, dtype=dtype, device=device) for _ in range(2)), EPS, 0.0, "vllm"


WORKLOADS: dict[str, Workload] = {
    "rms_norm": Workload(_rms_norm, lambda t, e, hidden: 2 * t * hidden * e + hidden * e, HIDDEN),
    "fused_add_rms_norm": Workload(_fused_add_rms_norm, lambda t, e, hidden: 4 * t * hidden * e + hidden * e, HIDDEN),
    "qk_norm": Workload(
        _qk_norm, lambda t, e, q_heads, k_heads, head: 2 * t * (q_heads + k_heads) * head * e + 2 * head * e, HEADS
    ),
}


def _normal(*shape: int, dtype: Any, device: Any) -> Any:
    import torch

    if str(device) == "meta":
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.randn(shape, device=device).to(dtype)


def _empty(like: Any, dtype: Any = None) -> Any:
    import torch

    return torch.empty_like(like, dtype=dtype or like.dtype)
