"""How the ops with block scales (NVFP4, MXFP4, MXFP8) are tried. All but NVFP4's recipe "fast" on a GPU, whose
reciprocals are approximate there, are equal to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.corpus.inputs import E4M3, Inputs
from tests.corpus.numerics import Op, Output

LENGTHS = (32, 96, 576, 768, 1536, 2880, 4096, 7168, 16384)
_TILES = {"128x4": (128, 4), "8x4": (8, 4)}


def results(new: Inputs, tokens: int, hidden: int, variant: str, group: int, fp8: bool) -> tuple[Any, Any, Any]:
    """(codes, scales, flags of the layout) to be written."""
    layout = next((n for n in _TILES if n in variant), "linear")
    rows, columns = _TILES.get(layout, (1, 1))
    size = -(-tokens // rows) * rows, -(-(hidden // group) // columns) * columns
    codes = new.out(tokens, hidden, dtype=E4M3) if fp8 else new.out(tokens, hidden // 2, dtype=torch.uint8)
    return codes, new.out(*size, dtype=torch.uint8), (layout != "linear", layout == "8x4")


def _given(group: int) -> tuple[float, ...]:
    return (417.0,) if group == 16 else ()


def quantise(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    def make(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
        codes, scales, flags = results(new, tokens, hidden, variant, group, fp8)
        x = new(tokens, hidden, pad=16 if "strided" in variant else 1 if "odd" in variant else 0)
        rule = "floor" if "floor" in variant else "ceil"
        if group == 16:
            rule = "exact" if "exact" in variant else "fast"
        return codes, x, scales, *(new.number(g) for g in _given(group)), *flags, rule

    return make


def dequantise(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    """Any bytes are codes and scales; e4m3 scales are positive, and no code is NaN."""

    def make(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
        codes, scales, flags = results(new, tokens, hidden, variant, group, fp8)
        codes.view(torch.uint8).copy_(new.whole(0, 127 if fp8 else 256, *codes.shape, dtype=torch.uint8))
        scales.copy_(new.whole(0, 127 if group == 16 else 250, *scales.shape, dtype=torch.uint8))
        return new.out(tokens, hidden), codes, scales, *(new.number(g) for g in _given(group)), *flags

    return make


_BITS: dict[str, Any] = {"units": (0, 0), "equal": 1.0}
_VARIANTS = ("128x4", "linear", "8x4", "linear strided", "128x4 odd")
_POWERS = (*_VARIANTS, "floor 128x4", "floor linear")
_BACK: dict[str, Any] = {"variants": ("128x4", "linear", "8x4"), "kinds": ("normal",), **_BITS}
BLOCKS = (
    Op("scaled_fp4_quant", quantise(16, False), LENGTHS, (Output(0, "e2m1"), Output(2)),
       variants=(*_VARIANTS, "exact 128x4", "exact linear"), units=(1, 1), equal=0.9999),
    Op("mxfp4_quantize", quantise(32, False), LENGTHS, (Output(0, "e2m1"), Output(2)), variants=_POWERS, **_BITS),
    Op("mxfp8_quantize", quantise(32, True), LENGTHS, (Output(0), Output(2)), variants=_POWERS, **_BITS),
    Op("nvfp4_dequantize", dequantise(16, False), LENGTHS, (Output(0),), **_BACK),
    Op("mxfp4_dequantize", dequantise(32, False), LENGTHS, (Output(0),), **_BACK),
    Op("mxfp8_dequantize", dequantise(32, True), LENGTHS, (Output(0),), **_BACK),
)  # fmt: skip
