"""Tensors that the rows of bench.corpus_rows are made of."""

from __future__ import annotations

from typing import Any

import torch

DEVICE = torch.device("cuda", 0)
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
EPS = 1e-6

Inputs = dict[str, Any]
Shape = tuple[int, ...]


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE, dtype=torch.float32).to(BF16)


def empty(*shape: int, dtype: Any = BF16) -> torch.Tensor:
    return torch.empty(*shape, device=DEVICE, dtype=dtype)
