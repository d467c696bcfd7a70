"""How activations, rotary embedding, embedding, softmax and top-k are tried: arguments, outputs, lengths of rows."""

from __future__ import annotations

from typing import Any

import torch

from tests.corpus import float64
from tests.corpus.inputs import CODES, E4M3, KINDS, Inputs
from tests.corpus.numerics import Op, Output

WIDTHS = (64, 96, 128, 576, 768, 769, 1536, 2048, 2880, 4096, 5125, 7168, 13824, 14336)
FEW_WIDTHS = (64, 96, 769, 2880, 7168)
GROUPS = (128, 2048, 2944, 7168, 14336)
HEADS = (64, 80, 96, 128, 192, 256)
LENGTHS = (1, 64, 77, 128, 1000, 4096, 5125, 32768, 65536, 131072, 151936)
ROWS = (64, 77, 128, 256, 1000, 4096, 32768)
HALVES = (torch.bfloat16, torch.float16)
FINITE = tuple(k for k in KINDS if k != "special")


def gated(*options: Any, profiles: bool = False) -> Any:
    def make(new: Inputs, tokens: int, width: int, variant: str) -> tuple[Any, ...]:
        x = new(tokens, 2 * width, pad={"strided": 16, "odd stride": 1}.get(variant, 0))
        profile = ("flashinfer" if variant == "flashinfer" else "vllm",) if profiles else ()
        return new.out(tokens, width), x, *options, *profile

    return make


def pointwise(new: Inputs, tokens: int, width: int, variant: str) -> tuple[Any, ...]:
    x = new(tokens, width)
    return (x if variant == "in place" else new.out(tokens, width)), x


def silu_and_mul_quant(new: Inputs, tokens: int, width: int, variant: str) -> tuple[Any, ...]:
    return new.out(tokens, width, dtype=E4M3), new(tokens, 2 * width), new.number(0.021)


def silu_and_mul_per_block_quant(new: Inputs, tokens: int, width: int, variant: str) -> tuple[Any, ...]:
    group = 64 if "64" in variant else 128
    codes = new.out(tokens, width, dtype=CODES["int8" in variant])
    scales = new.out(tokens, width // group, dtype=torch.float32)
    return codes, new(tokens, 2 * width), scales, group, new.number(0.01) if "bounded" in variant else None, False


def rotary(new: Inputs, tokens: int, head: int, variant: str) -> tuple[Any, ...]:
    packed, (rot, offset) = new(tokens, 42 * head), (head, 0) if "part" not in variant else (head // 2, head // 4)
    table = new.angles(512, rot, torch.float32 if "part" in variant else new.dtype)
    q, k = packed[:, : 32 * head], packed[:, 32 * head : 40 * head]
    return new.whole(0, 512, tokens), q, k, head, table, "pairs" not in variant, offset, "inverse" in variant


def rotary_fp8(new: Inputs, tokens: int, head: int, variant: str) -> tuple[Any, ...]:
    positions, q, k, *rest, inverse = rotary(new, tokens, head, variant)
    outs = [new.out(*t.shape, dtype=E4M3) for t in (q, k)]
    return *outs, positions, q, k, *rest[:3], 0.5, 40.0, rest[3], inverse


def rope_quantize(new: Inputs, tokens: int, rot: int, variant: str) -> tuple[Any, ...]:
    """Latent attention: 16 heads of q and one of k; "heads" several of both; q is the front of a longer row."""
    heads, nope = (3, 128) if "heads" in variant else (1, 512)
    q = new(tokens, 16, rot + nope)
    packed = q[..., :rot], q[..., rot:]
    k = [new(tokens, heads, n) if heads > 1 else new(tokens, n) for n in (rot, nope)]
    tensors = [packed[0], k[0], packed[1], k[1]]
    outs = [new.out(*t.shape, dtype=E4M3) for t in tensors]
    if "no nope" in variant:
        tensors[2:], outs[2:] = (None, None), (None, None)
    table = new.angles(512, rot, torch.float32)
    return *tensors, table, new.whole(0, 512, tokens), "pairs" in variant, 0.5, 40.0, *outs


def softmax(new: Inputs, tokens: int, length: int, variant: str) -> tuple[Any, ...]:
    x = new(tokens, length)
    temperature = None if variant != "temperature" else new.angles(tokens, 2, torch.float32)[:, 0].abs().add(0.25)
    return x if variant == "in place" else new.out(tokens, length), x, temperature


def topk(new: Inputs, tokens: int, length: int, variant: str) -> tuple[Any, ...]:
    k = min(length, int(variant))
    x = new(tokens, length)
    x = x if new.kind != "normal" else (x.float() * 2).round().to(new.dtype)  # ties
    return new.out(tokens, k), new.out(tokens, k, dtype=torch.int32), x, False


def embedding(new: Inputs, tokens: int, width: int, variant: str) -> tuple[Any, ...]:
    indices = new.whole(-100, 1500, tokens, dtype=torch.int32 if variant == "int32" else torch.int64)
    return new.out(tokens, width), indices, new(1000, width), 200, 1100


_TWICE = (1.6, 4.0)  # the activation is rounded, then the product
_ANY = float("inf")  # every step is rounded
ELEMENTS = (
    Op("silu_and_mul", gated(profiles=True), WIDTHS, exact=float64.silu_and_mul,
       variants=("plain", "strided", "odd stride"), units=(0, 4), equal=1.0, float64_units=_TWICE),
    Op("mul_and_silu", gated(profiles=True), FEW_WIDTHS, exact=float64.mul_and_silu, units=(0, 4), equal=1.0,
       float64_units=_TWICE),
    Op("gelu_and_mul", gated(profiles=True), FEW_WIDTHS, exact=float64.gelu_and_mul, units=(2, 16),
       float64_units=_TWICE),
    Op("gelu_tanh_and_mul", gated(profiles=True), FEW_WIDTHS, exact=float64.gelu_tanh_and_mul, units=(2, 16),
       float64_units=(1.6, 8.0)),
    Op("fatrelu_and_mul", gated(0.5), FEW_WIDTHS, exact=float64.fatrelu_and_mul, units=(0, 0), equal=1.0),
    Op("silu_and_mul_with_clamp", gated(2.0, 1.5, 0.25), FEW_WIDTHS, exact=float64.silu_and_mul_with_clamp,
       units=(2, 16), float64_units=(2.6, 8.0)),
    Op("swigluoai_and_mul", gated(1.702, 2.0), FEW_WIDTHS, exact=float64.swigluoai_and_mul, float64_units=(0.52, 8.0)),
    Op("relu_squared", pointwise, FEW_WIDTHS, exact=float64.relu_squared, variants=("plain", "in place"), units=(0, 0),
       equal=1.0),
    Op("gelu_new", pointwise, FEW_WIDTHS, exact=float64.gelu_new, units=(1, 16), float64_units=(_ANY, 8.0)),
    Op("gelu_fast", pointwise, FEW_WIDTHS, exact=float64.gelu_new, units=(1, 16), float64_units=(_ANY, 8.0)),
    Op("gelu_quick", pointwise, FEW_WIDTHS, exact=float64.gelu_quick, float64_units=(0.52, 8.0)),
    Op("silu_and_mul_quant", silu_and_mul_quant, WIDTHS, (Output(0, "codes"),), float64.silu_and_mul_quant,
       units=(0, 0), equal=1.0),
    Op("silu_and_mul_per_block_quant", silu_and_mul_per_block_quant, GROUPS,
       (Output(0, "codes", 2), Output(2, "scale")), float64.silu_and_mul_per_block_quant,
       variants=("fp8", "fp8 64", "fp8 bounded", "int8", "int8 64 bounded")),
    Op("rotary_embedding", rotary, HEADS, (Output(1), Output(2)), float64.rotary,
       variants=("plain", "pairs", "part", "part pairs inverse"), units=(0, 0), equal=1.0, width=42),
    Op("rotary_embedding_fp8", rotary_fp8, HEADS, (Output(0, "codes"), Output(1, "codes")), float64.rotary_fp8,
       variants=("plain", "pairs", "part", "part pairs inverse"), units=(0, 0), equal=1.0, width=42),
    Op("rope_quantize_fp8", rope_quantize, (64, 128, 96), tuple(Output(i, "codes") for i in (9, 10, 11, 12)),
       float64.rope_quantize, variants=("plain", "pairs", "heads", "no nope"), units=(0, 0), equal=1.0, width=64),
    Op("softmax", softmax, LENGTHS, exact=float64.softmax, variants=("plain", "temperature", "in place"),
       units=(1, 64), float64_units=(0.52, 64.0)),
    Op("topk", topk, ROWS, (Output(0), Output(1)), variants=("8", "1", "50"), units=(0, 0), equal=1.0),
    Op("embedding", embedding, FEW_WIDTHS, exact=float64.embedding, variants=("int64", "int32"), units=(0, 0),
       equal=1.0, float64_units=(0.0, 0.0)),
)  # fmt: skip
# Rounded once: what CUDA's and torch's exp, erf and tanh differ by may show.
ONCE = tuple(
    Op(op.name, op.make, (96, 2880), exact=op.exact, variants=("flashinfer",), float64_units=(0.53, 8.0))
    for op in ELEMENTS
    if op.name in ("silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul")
)
