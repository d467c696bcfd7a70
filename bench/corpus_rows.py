"""What the corpus is timed on: kernels and shapes as engines call them, fresh inputs, float32 references, bytes moved.

Sides (porter, peers) are functions of the inputs' dict that give the outputs; bench.peers has the peers'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from bench.block_rows import ROWS
from bench.corpus_tensors import BF16, DEVICE, EPS, FP8, Inputs, Shape, empty, normal

Side = Callable[[Inputs], Sequence[torch.Tensor]]


@dataclass(frozen=True)
class Workload:
    """One kernel. `compiled` computes the result from torch operators, as torch.compile is given it.

    tolerance: largest error of an output against the reference, over the reference's largest value; an e4m3 code beside
    the reference's is an eighth off. close: shapes at
    which torch.compile was within 10 % of the best peer when all were timed; elsewhere compiling it costs more GPU time
    than it tells; all shapes of rows that were never timed with it. units: for outputs that are numbers to count with,
    such as zero points, the largest difference instead of `tolerance`.
    """

    name: str
    shapes: tuple[Shape, ...]
    inputs: Callable[..., Inputs]
    compiled: Callable[..., Any]
    operands: tuple[str, ...]  # of `compiled`, names of inputs
    nbytes: Callable[..., int]
    tolerance: float = 2e-2
    close: frozenset[Shape] = frozenset()
    exact: tuple[int, ...] = ()  # outputs that are compared; (): all
    units: Mapping[int, int] = field(default_factory=dict)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        found = self.compiled(*(inputs[n] for n in self.operands))
        return found if isinstance(found, tuple) else (found,)


# ---------------------------------------------------------------- what is computed, in float32


def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.float()
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPS) * w.float()


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return normed(x, w).to(BF16)


def add_rms_norm(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total = x.float() + r.float()
    return normed(total, w).to(BF16), total.to(BF16)


def qk_norm(q: torch.Tensor, k: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return rms_norm(q, wq), rms_norm(k, wk)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.nn.functional.silu(x[..., :half]) * x[..., half:]


def to_fp8(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x / scale).clamp(-448, 448).to(FP8)


def token_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.float()
    scale = (y.abs().amax(-1, keepdim=True) / 448).clamp_min(1 / (448 * 512))
    return to_fp8(y, scale), scale


def group_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, length = x.shape
    y = x.float().view(rows, length // 128, 128)
    scale = y.abs().amax(-1, keepdim=True).clamp_min(1e-10) / 448
    return to_fp8(y, scale).view(rows, length), scale.squeeze(-1)


def tensor_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.float()
    scale = (y.abs().amax() / 448).clamp_min(1 / (448 * 512)).reshape(1)
    return to_fp8(y, scale), scale


def static_fp8(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return to_fp8(x.float(), scale)


def to_int8(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(-128, 127).to(torch.int8)


def static_int8(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return to_int8((x.float() / scale).round())


def token_int8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.float()
    scale = y.abs().amax(-1, keepdim=True) / 127
    return to_int8((y / scale).round()), scale


def token_int8_azp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    y = x.float()
    low = y.amin(-1, keepdim=True)
    scale = (y.amax(-1, keepdim=True) - low) / 255
    zero = (-128 - low / scale).round()
    return to_int8((y / scale).round() + zero), scale, zero.int()


def group_int8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, length = x.shape
    y = x.float().view(rows, length // 128, 128)
    scale = y.abs().amax(-1, keepdim=True).clamp_min(1e-10) / 127
    return to_int8((y / scale).trunc()).view(rows, length), scale.squeeze(-1)


def group_packed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, length = x.shape
    y = x.float().view(rows, length // 128, 128)
    exponent = (y.abs().amax(-1, keepdim=True).clamp_min(1e-10) / 448).clamp_min(1e-10).log2().ceil()
    codes = to_fp8(y, exponent.exp2()).view(rows, length)
    powers = (exponent + 127).to(torch.uint8).view(rows, length // 512, 4)
    return codes, powers.view(torch.int32).squeeze(-1)


def norm_static_fp8(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return to_fp8(normed(x, w), scale)


def norm_token_fp8(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return token_fp8(rms_norm(x, w))


def silu_group_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    half = x.shape[-1] // 2
    gate = x[..., :half].float()
    return group_fp8(gate * torch.sigmoid(gate) * x[..., half:].float())


def rotated(positions: torch.Tensor, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
    angles = cache[positions].float()
    cos, sin = angles[:, None, :64], angles[:, None, 64:]
    heads = x.view(x.shape[0], -1, 128).float()
    a, b = heads[..., :64], heads[..., 64:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(BF16).view(x.shape[0], -1)


def rotary(p: torch.Tensor, q: torch.Tensor, k: torch.Tensor, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return rotated(p, q, cache), rotated(p, k, cache)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.float(), -1).to(BF16)


def topk_softmax(gate: torch.Tensor) -> torch.Tensor:
    weights = torch.topk(torch.softmax(gate, -1), 8, -1)[0]
    return weights / weights.sum(-1, keepdim=True)


def moe_sum(x: torch.Tensor) -> torch.Tensor:
    return x.float().sum(1).to(BF16)


def padded_tokens(ids: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(ids.flatten().long(), minlength=experts.numel())
    return ((counts + 63) // 64 * 64).sum().reshape(1)


def permuted(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return x[torch.argsort(ids.flatten().long(), stable=True) // 8]


# ---------------------------------------------------------------- inputs


def norm_inputs(t: int, h: int) -> Inputs:
    return {"x": normal(t, h), "r": normal(t, h), "w": normal(h), "out": empty(t, h)}


def head_inputs(t: int, d: int) -> Inputs:
    return {"q": normal(t, 32, d), "k": normal(t, 8, d), "wq": normal(d), "wk": normal(d)}


def gated_inputs(t: int, d: int) -> Inputs:
    return {
        "x": normal(t, 2 * d), "out": empty(t, d), "q": empty(t, d, dtype=FP8),
        "g": empty(t, d // 128, dtype=torch.float32),
    }  # fmt: skip


def quant_inputs(t: int, h: int) -> Inputs:
    return {
        "x": normal(t, h), "w": normal(h), "q": empty(t, h, dtype=FP8), "s": empty(t, 1, dtype=torch.float32),
        "g": empty(t, h // 128, dtype=torch.float32), "scale": torch.full((1,), 0.02, device=DEVICE),
    }  # fmt: skip


def int8_inputs(t: int, h: int) -> Inputs:
    return {
        "x": normal(t, h), "q": empty(t, h, dtype=torch.int8), "s": empty(t, 1, dtype=torch.float32),
        "g": empty(t, h // 128, dtype=torch.float32), "scale": torch.full((1,), 0.02, device=DEVICE),
        "z": empty(t, 1, dtype=torch.int32),
    }  # fmt: skip


def tensor_inputs(t: int, h: int) -> Inputs:
    return {"x": normal(t, h), "q": empty(t, h, dtype=FP8), "s": empty(1, dtype=torch.float32)}


def packed_inputs(t: int, h: int) -> Inputs:
    packed = empty(h // 512, -(-t // 4) * 4, dtype=torch.int32).t()[:t]
    return {"x": normal(t, h), "q": empty(t, h, dtype=FP8), "p": packed}


def rotary_inputs(t: int) -> Inputs:
    inverse = 1.0 / (10000 ** (torch.arange(0, 128, 2, device=DEVICE).float() / 128))
    angles = torch.outer(torch.arange(8192, device=DEVICE).float(), inverse)
    cache = torch.cat([angles.cos(), angles.sin()], -1).to(BF16)
    positions = torch.randint(0, 8192, (t,), device=DEVICE)
    return {"p": positions, "q": normal(t, 32 * 128), "k": normal(t, 8 * 128), "cache": cache}


def softmax_inputs(t: int, n: int) -> Inputs:
    return {"x": normal(t, n), "out": empty(t, n)}


def routing_inputs(t: int, e: int) -> Inputs:
    return {
        "gate": torch.randn(t, e, device=DEVICE), "w": empty(t, 8, dtype=torch.float32),
        "i": empty(t, 8, dtype=torch.int32), "s": empty(t, 8, dtype=torch.int32),
    }  # fmt: skip


def expert_ids(t: int, e: int) -> torch.Tensor:
    """Eight different experts a token."""
    return torch.rand(t, e, device=DEVICE).topk(8, -1)[1].int().contiguous()


def align_inputs(t: int, e: int) -> Inputs:
    length = -(-(t * 8 + e * 63) // 64) * 64
    return {
        "ids": expert_ids(t, e), "experts": empty(e), "sorted": empty(length, dtype=torch.int32),
        "blocks": empty(length // 64, dtype=torch.int32), "n": empty(1, dtype=torch.int32), "e": e,
    }  # fmt: skip


def sum_inputs(t: int, h: int) -> Inputs:
    return {"x": normal(t, 8, h), "out": empty(t, h)}


def permute_inputs(t: int, h: int) -> Inputs:
    e = 128
    return {
        "x": normal(t, h), "ids": expert_ids(t, e), "out": empty(t * 8, h), "e": e,
        "token_expert": torch.arange(t * 8, device=DEVICE, dtype=torch.int32).view(t, 8),
        "offsets": empty(e + 1, dtype=torch.int64), "inverse": empty(t, 8, dtype=torch.int32),
        "index": empty(t * 8, dtype=torch.int32),
    }  # fmt: skip


# ---------------------------------------------------------------- the rows

_TOKENS = (1, 16, 128, 1024, 8192)
_NORM = tuple((t, h) for h in (4096, 7168) for t in _TOKENS)
_QUANT = tuple((t, h) for h in (4096, 7168) for t in (1, 128, 8192))
_GATED = tuple((t, d) for d in (2048, 14336) for t in _TOKENS)
_FEW = tuple((t, d) for d in (2048, 14336) for t in (1, 128, 8192))
_ROUTED = tuple((t, e) for e in (128, 256) for t in (1, 128, 8192))


def _shapes(*shapes: Shape) -> frozenset[Shape]:
    return frozenset(shapes)


WORKLOADS: tuple[Workload, ...] = (
    Workload("rms_norm", _NORM, norm_inputs, rms_norm, ("x", "w"), lambda t, h: 4 * t * h + 2 * h,
             close=_shapes((1024, 4096), (8192, 4096))),
    Workload("fused_add_rms_norm", _NORM, norm_inputs, add_rms_norm, ("x", "r", "w"), lambda t, h: 8 * t * h + 2 * h,
             close=_shapes((16, 4096), (1024, 4096), (8192, 4096), (1, 7168), (16, 7168))),
    Workload("qk_norm 32+8 heads", tuple((t, d) for d in (64, 128, 256) for t in (1, 128, 8192)), head_inputs, qk_norm,
             ("q", "k", "wq", "wk"), lambda t, d: 4 * t * 40 * d,
             close=_shapes((1, 64), (8192, 64), (1, 128), (8192, 128), (1, 256))),
    Workload("silu_and_mul", _GATED, gated_inputs, silu_and_mul, ("x",), lambda t, d: 6 * t * d,
             close=_shapes(*[s for s in _GATED if s not in ((1024, 14336), (8192, 14336))])),
    Workload("per_token_fp8", _NORM, quant_inputs, token_fp8, ("x",), lambda t, h: 3 * t * h + 4 * t, 0.13,
             _shapes((1, 4096), (8192, 4096), (128, 7168))),
    Workload("per_token_group128_fp8", _NORM, quant_inputs, group_fp8, ("x",),
             lambda t, h: 3 * t * h + t * h // 32, 0.13,
             _shapes((1, 4096), (16, 4096), (1024, 4096), (8192, 4096), (1, 7168), (16, 7168), (128, 7168))),
    Workload("per_token_group128_fp8 packed", _QUANT, packed_inputs, group_packed, ("x",),
             lambda t, h: 3 * t * h + t * h // 128, 0.13, frozenset(_QUANT)),
    Workload("per_tensor_fp8", _QUANT, tensor_inputs, tensor_fp8, ("x",), lambda t, h: 3 * t * h, 0.13,
             frozenset(_QUANT)),
    Workload("static_fp8", _QUANT, quant_inputs, static_fp8, ("x", "scale"), lambda t, h: 3 * t * h, 0.13,
             frozenset(_QUANT)),
    Workload("static_int8", _QUANT, int8_inputs, static_int8, ("x", "scale"), lambda t, h: 3 * t * h,
             close=frozenset(_QUANT)),
    Workload("per_token_int8", _QUANT, int8_inputs, token_int8, ("x",), lambda t, h: 3 * t * h + 4 * t,
             close=frozenset(_QUANT)),
    Workload("per_token_int8 azp", _QUANT, int8_inputs, token_int8_azp, ("x",), lambda t, h: 3 * t * h + 8 * t,
             close=frozenset(_QUANT), units={2: 1}),  # a quotient in the middle of two
    Workload("per_token_group128_int8", _QUANT, int8_inputs, group_int8, ("x",),
             lambda t, h: 3 * t * h + t * h // 32, close=frozenset(_QUANT)),
    Workload("rms_norm_static_fp8", _NORM, quant_inputs, norm_static_fp8, ("x", "w", "scale"),
             lambda t, h: 3 * t * h + 2 * h, 0.13),
    Workload("rms_norm_per_token_fp8", _NORM, quant_inputs, norm_token_fp8, ("x", "w"),
             lambda t, h: 3 * t * h + 2 * h + 4 * t, 0.13,
             _shapes(*[s for s in _NORM if s not in ((1024, 7168), (8192, 7168))])),
    Workload("silu_mul_group128_fp8", _FEW, gated_inputs, silu_group_fp8, ("x",),
             lambda t, d: 5 * t * d + t * d // 32, 0.13, frozenset(_FEW)),
    Workload("rotary 32+8x128", ((1,), (128,), (8192,)), rotary_inputs, rotary, ("p", "q", "k", "cache"),
             lambda t: 4 * t * 40 * 128 + t * 256, close=_shapes((1,), (128,), (8192,))),
    Workload("softmax", ((4096, 4096), (1024, 32768), (256, 131072)), softmax_inputs, softmax, ("x",),
             lambda t, n: 4 * t * n),
    Workload("topk_softmax k=8", _ROUTED, routing_inputs, topk_softmax, ("gate",), lambda t, e: 4 * t * e + 96 * t),
    Workload("moe_sum k=8", tuple((t, h) for h in (2048, 7168) for t in (1, 128, 4096)), sum_inputs, moe_sum, ("x",),
             lambda t, h: 18 * t * h, close=_shapes((1, 2048), (4096, 2048), (1, 7168), (4096, 7168))),
    Workload("moe_align bs=64 k=8", _ROUTED, align_inputs, padded_tokens, ("ids", "experts"),
             lambda t, e: 64 * t + 256 * e),
    Workload("moe_permute k=8 E=128", tuple((t, h) for h in (2048, 7168) for t in (1, 128, 4096)), permute_inputs,
             permuted, ("x", "ids"), lambda t, h: 18 * t * h),
    *(Workload(*row) for row in ROWS),
)  # fmt: skip


def label(shape: Shape) -> str:
    return "x".join(map(str, shape))


def held_bytes(inputs: Mapping[str, Any]) -> int:
    return sum(v.nbytes for v in inputs.values() if isinstance(v, torch.Tensor))
