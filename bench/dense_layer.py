"""A dense decoder layer for bench.layer.

Residual and RMS norm, QKV projection, norm of the heads and rotary, output projection (of the queries: attention itself
is left out), residual and RMS norm, gate and up projections, SiLU and product, down projection; bf16.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import porter.corpus as corpus
from bench.chains import ALONE, graph_of, medians, row_error, summary
from porter.corpus.runtime.ops import OPS

EPS, POSITIONS, CLOSE = 1e-6, 40960, 0.02
NAMES = ("fused_add_rms_norm", "fused_qk_norm_rope", "silu_and_mul")
Operation = Callable[..., Any]
Buffers = dict[str, torch.Tensor]


@dataclass(frozen=True)
class DenseLayer:
    """Sizes of the layer; `layers` are chained in one graph, each with weights of its own."""

    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    intermediate: int = 12288
    layers: int = 8

    @property
    def name(self) -> str:
        return f"dense {self.hidden}x{self.intermediate} bf16"

    @property
    def qkv(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    def bytes_between(self, tokens: int) -> int:
        """What the operations between the GEMMs read and write at least, in bytes: bf16 elements, weights left out."""
        norms = 2 * 4 * self.hidden  # the input, the residual, and both written
        heads = 2 * (self.heads + self.kv_heads) * self.head_dim
        return 2 * tokens * (norms + heads + 3 * self.intermediate)

    def weights(self, device: str, seed: int) -> Buffers:
        generator = torch.Generator(device=device).manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return (torch.randn(*shape, device=device, generator=generator) * 0.02).to(torch.bfloat16)

        h, d = self.hidden, self.head_dim
        return {
            "norm_1": normal(h), "norm_2": normal(h), "q_norm": normal(d), "k_norm": normal(d),
            "qkv": normal(h, self.qkv), "o": normal(self.heads * d, h),
            "gate_up": normal(h, 2 * self.intermediate), "down": normal(self.intermediate, h),
        }  # fmt: skip

    def buffers(self, tokens: int, device: str) -> Buffers:
        generator = torch.Generator(device=device).manual_seed(tokens)

        def normal(*shape: int) -> torch.Tensor:
            return (torch.randn(*shape, device=device, generator=generator) * 0.02).to(torch.bfloat16)

        return {
            "x": normal(tokens, self.hidden), "residual": normal(tokens, self.hidden),
            "qkv": normal(tokens, self.qkv), "gate_up": normal(tokens, 2 * self.intermediate),
            "act": normal(tokens, self.intermediate), "positions": torch.arange(tokens, device=device),
            "cos_sin": torch.rand(POSITIONS, self.head_dim, device=device, generator=generator).to(torch.bfloat16),
        }  # fmt: skip

    def run(self, ops: dict[str, Operation] | None, b: Buffers, w: Buffers) -> None:
        """One layer; without `ops` its GEMMs alone."""
        if ops:
            ops["fused_add_rms_norm"](b["x"], b["residual"], w["norm_1"], EPS)
        torch.mm(b["x"], w["qkv"], out=b["qkv"])
        if ops:
            ops["fused_qk_norm_rope"](
                b["qkv"], self.heads, self.kv_heads, self.kv_heads, self.head_dim, EPS, w["q_norm"], w["k_norm"],
                b["cos_sin"], True, b["positions"],
            )  # fmt: skip
        torch.mm(b["qkv"][:, : self.heads * self.head_dim], w["o"], out=b["x"])
        if ops:
            ops["fused_add_rms_norm"](b["x"], b["residual"], w["norm_2"], EPS)
        torch.mm(b["x"], w["gate_up"], out=b["gate_up"])
        if ops:
            ops["silu_and_mul"](b["act"], b["gate_up"])
        torch.mm(b["act"], w["down"], out=b["x"])


def sides(absent: dict[str, str]) -> dict[str, dict[str, Operation]]:
    """The operations by library; `absent` gets why one is left out."""
    found: dict[str, dict[str, Operation]] = {"porter": {n: getattr(corpus, n) for n in NAMES}}
    library = os.environ.get("VLLM_C", "")
    if not library:
        absent["vllm"] = "VLLM_C is not set"
        return found
    try:
        torch.ops.load_library(library)
        theirs = {n: getattr(torch.ops._C, n) for n in NAMES}
        schema = str(torch.ops._C.fused_qk_norm_rope.default._schema)
    except (OSError, AttributeError) as error:
        absent["vllm"] = f"{type(error).__name__}: {error}"[:300]
        return found
    if "forced_token_heads_per_warp" in schema:
        rope = theirs["fused_qk_norm_rope"]
        theirs["fused_qk_norm_rope"] = lambda *args: rope(*args, -1)
    return found | {"vllm": theirs}


def reference() -> dict[str, Operation]:
    """The same operations written with torch's, in float32 inside."""
    return {n: OPS[n].fallback for n in NAMES if hasattr(corpus, n)}  # OPS has what the corpus has been asked for


def wrong(layer: DenseLayer, ops: dict[str, Operation], first: Buffers, w: Buffers, expected: Buffers) -> str:
    """Why a side is not timed: "" where what a layer leaves is what `expected` holds."""
    found = {k: v.clone() for k, v in first.items()}
    try:
        layer.run(ops, found, w)
        errors = {n: row_error(found[n], expected[n]) for n in ("x", "residual", "qkv", "act")}
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    name = max(errors, key=errors.__getitem__)
    return "" if errors[name] <= CLOSE else f"a row of {name} is off by {errors[name]:.3g} of its length"


def row(layer: DenseLayer, tokens: int, all_weights: list[Buffers], device: str) -> dict[str, Any]:
    """One row: the sides that are right, timed in turns (on a CPU only checked)."""
    found: dict[str, Any] = {"layer": layer.name, "tokens": tokens, "layers": len(all_weights)}
    absent: dict[str, str] = {}
    first = layer.buffers(tokens, device)
    expected = {k: v.clone() for k, v in first.items()}
    layer.run(reference(), expected, all_weights[0])
    good: dict[str, dict[str, Operation]] = {}
    for name, ops in sides(absent).items():
        if why := wrong(layer, ops, first, all_weights[0], expected):
            absent[name] = why
        else:
            good[name] = ops
    found["checked"] = list(good)
    if absent:
        found["not_timed"] = absent
    if device == "cpu" or not good:
        return found
    del expected
    work = {k: v.clone() for k, v in first.items()}

    def restart() -> None:
        for name in ("x", "residual"):
            work[name].copy_(first[name])

    kinds: dict[str, dict[str, Operation] | None] = {ALONE: None, **good}
    graphs = {}
    for name, each in kinds.items():

        def layers(ops: dict[str, Operation] | None = each) -> None:
            for w in all_weights:
                layer.run(ops, work, w)

        restart()
        graphs[name] = graph_of(layers)
    return found | summary(medians(graphs, restart, len(all_weights)))
