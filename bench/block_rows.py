"""Rows of bench.corpus_rows with block scales (NVFP4, MXFP4, MXFP8).

No peer has them below Blackwell: what counts there is the floor, the time that their bytes take at copy speed.
"""

from __future__ import annotations

from typing import Any

import torch

from bench.corpus_tensors import BF16, DEVICE, EPS, FP8, Inputs, Shape, empty, normal
from porter.corpus.ops.quant import block_scaled_reference as reference

Outputs = tuple[torch.Tensor, torch.Tensor]
GIVEN = 448.0 * 6 / 5  # the largest of normal numbers is about five


def _results(t: int, h: int) -> Inputs:
    """Codes and scales of every format, in tiles of 128x4."""
    rows = -(-t // 128) * 128
    return {
        "q4": empty(t, h // 2, dtype=torch.uint8), "q8": empty(t, h, dtype=FP8),
        "s16": empty(rows, -(-h // 64) * 4, dtype=torch.uint8), "s32": empty(rows, -(-h // 128) * 4, dtype=torch.uint8),
        "g": torch.full((1,), GIVEN, device=DEVICE),
    }  # fmt: skip


def rows_inputs(t: int, h: int) -> Inputs:
    return {"x": normal(t, h), "w": normal(h), "out": empty(t, h), **_results(t, h)}


def halves_inputs(t: int, d: int) -> Inputs:
    return {"x": normal(t, 2 * d), **_results(t, d)}


def codes_inputs(t: int, h: int) -> Inputs:
    """As rows_inputs, with codes and scales of normal numbers."""
    made = rows_inputs(t, h)
    reference.scaled_fp4_quant(made["q4"], made["x"], made["s16"], made["g"])
    return made


def _made(codes: str, scales: str, x: torch.Tensor, *given: torch.Tensor) -> Outputs:
    made = _results(*x.shape)
    quantise = {"s16": reference.scaled_fp4_quant, "q4": reference.mxfp4_quantize, "q8": reference.mxfp8_quantize}
    quantise[scales if scales == "s16" else codes](made[codes], x, made[scales], *given)
    return made[codes], made[scales]


def nvfp4(x: torch.Tensor, g: torch.Tensor) -> Outputs:
    return _made("q4", "s16", x, g)


def mxfp4(x: torch.Tensor) -> Outputs:
    return _made("q4", "s32", x)


def mxfp8(x: torch.Tensor) -> Outputs:
    return _made("q8", "s32", x)


def silu_nvfp4(x: torch.Tensor, g: torch.Tensor) -> Outputs:
    gate, up = x.float().chunk(2, dim=-1)
    return nvfp4((torch.nn.functional.silu(gate) * up).to(BF16), g)


def norm_nvfp4(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> Outputs:
    y = x.float()
    return nvfp4((y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPS) * w.float()).to(BF16), g)


def back_nvfp4(q4: torch.Tensor, s16: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    out = empty(q4.shape[0], 2 * q4.shape[1])
    reference.nvfp4_dequantize(out, q4, s16, g)
    return out


_SHAPES: tuple[Shape, ...] = tuple((t, h) for h in (4096, 7168) for t in (1, 128, 1024, 8192))
_HALVES: tuple[Shape, ...] = tuple((t, d) for d in (2048, 14336) for t in (1, 128, 8192))

# name, shapes, inputs, what is computed, its operands, bytes, tolerance: a step of the upper code of a byte
ROWS: tuple[tuple[Any, ...], ...] = (
    ("nvfp4", _SHAPES, rows_inputs, nvfp4, ("x", "g"), lambda t, h: 2 * t * h + t * h // 2 + t * h // 16, 0.13),
    ("mxfp4", _SHAPES, rows_inputs, mxfp4, ("x",), lambda t, h: 2 * t * h + t * h // 2 + t * h // 32, 0.13),
    ("mxfp8", _SHAPES, rows_inputs, mxfp8, ("x",), lambda t, h: 3 * t * h + t * h // 32, 0.13),
    ("nvfp4 back", _SHAPES, codes_inputs, back_nvfp4, ("q4", "s16", "g"),
     lambda t, h: 2 * t * h + t * h // 2 + t * h // 16, 0.02),
    ("silu_mul_nvfp4", _HALVES, halves_inputs, silu_nvfp4, ("x", "g"),
     lambda t, d: 4 * t * d + t * d // 2 + t * d // 16, 0.13),
    ("rms_norm_nvfp4", _SHAPES, rows_inputs, norm_nvfp4, ("x", "w", "g"),
     lambda t, h: 2 * t * h + t * h // 2 + t * h // 16, 0.13),
)  # fmt: skip
