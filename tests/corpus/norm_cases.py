"""How the norms of the corpus are tried: arguments, outputs, lengths of rows."""

from __future__ import annotations

from typing import Any

import torch

from tests.corpus import float64
from tests.corpus.inputs import CODES, E4M3, KINDS, Inputs
from tests.corpus.numerics import Op, Output

EPS = 1e-6
HIDDEN = (64, 96, 128, 576, 768, 769, 1536, 2048, 2880, 4096, 5120, 5125, 7168, 8192, 16384, 32768)
BLOCKS = (64, 128, 576, 768, 1536, 2048, 2880, 4096, 5120, 7168, 8192, 16384, 32768)  # whole groups of 64
HEADS = (64, 80, 96, 128, 192, 256)
FINITE = tuple(k for k in KINDS if k != "special")


def rms_norm(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x = new(tokens, hidden, pad={"strided": 8, "odd stride": 1}.get(variant, 0))
    w = None if variant == "weightless" else new.weight(hidden, torch.float32 if variant == "float32 weight" else None)
    out = x if variant == "in place" else new.out(tokens, hidden)
    profile = variant if variant in ("hf", "flashinfer") else "vllm"
    return out, x, w, EPS, 1.0 if variant == "gemma" else 0.0, profile


def fused_add_rms_norm(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    pad = 8 if variant == "strided" else 0
    x, r = new(tokens, hidden, pad=pad), new(tokens, hidden, pad=2 * pad)
    w = None if variant == "weightless" else new.weight(hidden)
    return x, r, w, EPS, 1.0 if variant == "gemma" else 0.0, variant if variant in ("hf", "flashinfer") else "vllm"


def layer_norm(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x, affine = new(tokens, hidden), torch.float32 if variant == "float32 affine" else None
    w, b = (None if variant == "plain norm" else new.weight(hidden, affine) for _ in range(2))
    return new.out(tokens, hidden), x, w, None if variant == "no bias" else b, EPS


def rms_norm_gated(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x, z = new(tokens, hidden), new(tokens, hidden, kind="normal")
    norm_first, activation = variant != "gate first", "sigmoid" if variant == "sigmoid" else "silu"
    return new.out(tokens, hidden), x, z, new.weight(hidden), EPS, norm_first, activation


def rms_norm_silu(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    return new.out(tokens, hidden), new(tokens, hidden), new.weight(hidden), EPS


def static_fp8(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x, w = new(tokens, hidden), new.weight(hidden)
    return new.out(tokens, hidden, dtype=E4M3), x, w, new.number(0.017), EPS, variant


def add_static_fp8(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x, r, w = new(tokens, hidden), new(tokens, hidden), new.weight(hidden)
    return new.out(tokens, hidden, dtype=E4M3), x, r, w, new.number(0.017), EPS, variant


def per_token(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    x, w = new(tokens, hidden), new.weight(hidden)
    r = new(tokens, hidden) if "add" in variant else None
    codes, scale = new.out(tokens, hidden, dtype=_codes(variant)), new.out(tokens, 1, dtype=torch.float32)
    return codes, x, w, scale, EPS, new.number(2.5) if "bounded" in variant else None, r


def per_block(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    """Transposed scales are tried with addresses of their own in the test of layouts."""
    group = 64 if "64" in variant or hidden % 128 else 128
    x, w = new(tokens, hidden), new.weight(hidden)
    r = new(tokens, hidden) if "add" in variant else None
    codes, scale = new.out(tokens, hidden, dtype=_codes(variant)), new.out(tokens, hidden // group, dtype=torch.float32)
    return codes, x, w, scale, EPS, None, r, group, False


def _codes(variant: str) -> torch.dtype:
    return CODES["int8" in variant]


def qk_norm(new: Inputs, tokens: int, head: int, variant: str) -> tuple[Any, ...]:
    packed, wq, wk = new(tokens, 48 * head), new.weight(head), new.weight(head)
    q, k = packed[:, : 32 * head], packed[:, 32 * head : 40 * head]
    return q, k, wq, wk, EPS, 1.0 if variant == "gemma" else 0.0, variant if variant == "hf" else "vllm"


def qk_norm_rope(new: Inputs, tokens: int, head: int, variant: str) -> tuple[Any, ...]:
    qkv, wq, wk = new(tokens, 48 * head), new.weight(head), new.weight(head)
    rot = head // 2 if "half" in variant and head // 2 % 2 == 0 else head
    table = new.angles(512, rot, torch.float32 if "float32" in variant else new.dtype)
    return qkv, 32, 8, 8, head, EPS, wq, wk, table, "pairs" not in variant, new.whole(0, 512, tokens)


_SUM = (Output(0), Output(1))
NORMS = (
    Op("rms_norm", rms_norm, HIDDEN, exact=float64.rms_norm,
       variants=("plain", "gemma", "weightless", "float32 weight", "strided", "odd stride", "in place", "flashinfer")),
    Op("fused_add_rms_norm", fused_add_rms_norm, HIDDEN, _SUM, float64.fused_add_rms_norm,
       variants=("plain", "flashinfer", "gemma", "weightless", "strided")),
    Op("layer_norm", layer_norm, HIDDEN, exact=float64.layer_norm,
       variants=("plain", "float32 affine", "no bias", "plain norm"), equal=0.995),
    Op("rms_norm_gated", rms_norm_gated, HIDDEN, exact=float64.rms_norm_gated,
       variants=("plain", "gate first", "sigmoid"), equal=0.998, units=(1, 32), float64_units=(0.52, 32.0)),
    Op("rms_norm_silu", rms_norm_silu, HIDDEN, exact=float64.rms_norm_silu, equal=0.998, units=(1, 32),
       float64_units=(0.52, 32.0)),
    Op("rms_norm_static_fp8_quant", static_fp8, HIDDEN, (Output(0, "codes"),), float64.static_fp8,
       variants=("vllm", "flashinfer")),
    Op("fused_add_rms_norm_static_fp8_quant", add_static_fp8, HIDDEN, (Output(0, "codes"), Output(2)),
       float64.add_static_fp8, variants=("vllm", "flashinfer")),
    Op("rms_norm_dynamic_per_token_quant", per_token, HIDDEN,
       (Output(0, "codes", 3), Output(3, "scale"), Output(6)), float64.dynamic_quant,
       variants=("fp8", "fp8 add", "fp8 bounded", "int8", "int8 add")),
    Op("rms_norm_per_block_quant", per_block, BLOCKS,
       (Output(0, "codes", 3), Output(3, "scale"), Output(6)), float64.dynamic_quant,
       variants=("fp8", "fp8 64", "fp8 add", "int8", "int8 64 add")),
    Op("qk_norm", qk_norm, HEADS, _SUM, float64.qk_norm, variants=("plain", "gemma"), width=48),
    Op("qk_norm_rope", qk_norm_rope, HEADS, exact=float64.qk_norm_rope,
       variants=("plain", "half float32", "pairs", "pairs half"), width=48, equal=0.998),
)  # fmt: skip
# Two roundings: a unit more, where the first falls the other way.
TWICE = (
    Op("rms_norm", rms_norm, (128, 2880, 7168), exact=float64.rms_norm, variants=("hf",), units=(2, 16),
       float64_units=(1.6, 8.0)),
    Op("fused_add_rms_norm", fused_add_rms_norm, (128, 2880, 7168), _SUM, float64.fused_add_rms_norm,
       variants=("hf",), units=(2, 16), float64_units=(1.6, 8.0)),
    Op("qk_norm", qk_norm, (128,), _SUM, float64.qk_norm, variants=("hf",), width=48, units=(2, 16),
       float64_units=(1.6, 8.0)),
)  # fmt: skip
