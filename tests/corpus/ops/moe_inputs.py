"""Arguments and comparisons that the tests of mixture-of-experts operations share."""

from __future__ import annotations

from typing import Any

import torch

from porter.corpus.runtime.ops import OPS
from tests.corpus.emulated import run


def filled(*shape: int, dtype: torch.dtype = torch.int32, value: float = -9) -> torch.Tensor:
    """Memory to write to whose contents no result has."""
    return torch.full(shape, value, dtype=dtype)


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ids(low: int, high: int, *shape: int, seed: int = 0, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def distinct(tokens: int, experts: int, k: int, seed: int = 0) -> torch.Tensor:
    """k different experts a token."""
    rand = torch.rand(tokens, experts, generator=torch.Generator().manual_seed(seed))
    return rand.topk(k, -1).indices.int().contiguous()


def local_numbers(experts: int, here: int, seed: int = 3) -> torch.Tensor:
    """A map of experts to local numbers 0 to here - 1, -1 for those elsewhere."""
    order = torch.randperm(experts, generator=torch.Generator().manual_seed(seed)).int()
    return torch.where(order < here, order, torch.full_like(order, -1))


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view(torch.uint8)


def same(function: Any, make: Any, **options: Any) -> tuple[Any, ...]:
    """Run an op in the emulator and its reference on arguments of `make()`: all tensors equal to the bit after it."""
    got, want = make(), make()
    run(function, *got, **options)
    OPS[function.op.name].fallback(*function.op.bind(want, {}))
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if isinstance(a, torch.Tensor):
            assert torch.equal(bits(a), bits(b)), (function.op.name, i, a, b)
    return got


def align_arguments(
    topk_ids: torch.Tensor, experts: int, block: int, expert_map: Any = None, scatter: bool = False, more: int = 0
) -> tuple[Any, ...]:
    length = -(-(topk_ids.numel() + experts * (block - 1)) // block) * block + more
    places, owners, total = filled(length), filled(-(-length // block)), filled(1)
    return topk_ids, experts, block, places, owners, total, expert_map, filled(*topk_ids.shape) if scatter else None


def permute_arguments(
    x: torch.Tensor, topk_ids: torch.Tensor, experts: int, here: int, expert_map: Any = None, order: Any = None
) -> tuple[Any, ...]:
    tokens, k = topk_ids.shape
    order = torch.arange(tokens * k, dtype=torch.int32).view(tokens, k) if order is None else order
    out, offsets = filled(tokens * k, x.shape[1], dtype=x.dtype, value=7), filled(here + 1, dtype=torch.int64)
    return x, topk_ids, order, expert_map, experts, here, k, out, offsets, filled(tokens, k), filled(tokens * k)
