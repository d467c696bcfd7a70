"""What an engine sees of the corpus: a decoder layer in a CUDA graph, where each operation reads what the last wrote.

    python -m bench.layer [--tokens 1 8 64 256 1024 8192] [--layers 8] [--device cuda|cpu] [--output FILE]

Independent calls in one graph flatter kernels that start early; in a layer the rows come from a GEMM. Timed are the
GEMMs alone, and with the operations between them of the corpus and of vLLM (VLLM_C names its library; without it that
column is absent). "added" is what the operations cost on top of the GEMMs, "floor" the time of a copy of their bytes.
The layer: residual and RMS norm, QKV projection, norm of the heads and rotary, output projection (of the queries:
attention itself is left out), residual and RMS norm, gate and up projections, SiLU and product, down projection; bf16,
hidden 4096, 32 and 8 heads of 128, 12288 intermediate. Both sides' results are compared first, and not timed when they
differ. With --device cpu nothing is timed: the layer runs once on each side that there is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import porter.corpus as corpus

OUTPUT = Path(__file__).resolve().parent / "results/layer.json"
EPS, POSITIONS, ROUNDS, DISCARDED, CLOSE = 1e-6, 40960, 17, 3, 0.02
Operation = Callable[..., Any]
Buffers = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Sizes:
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    intermediate: int = 12288

    @property
    def qkv(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    def bytes_between(self, tokens: int) -> int:
        """What the operations between the GEMMs read and write at least, in bytes: bf16 elements, weights left out."""
        norms = 2 * 4 * self.hidden  # the input, the residual, and both written
        heads = 2 * (self.heads + self.kv_heads) * self.head_dim
        return 2 * tokens * (norms + heads + 3 * self.intermediate)


def weights(sizes: Sizes, device: str, seed: int) -> Buffers:
    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape, device=device, generator=generator) * 0.02).to(torch.bfloat16)

    h, d = sizes.hidden, sizes.head_dim
    return {
        "norm_1": normal(h), "norm_2": normal(h), "q_norm": normal(d), "k_norm": normal(d),
        "qkv": normal(h, sizes.qkv), "o": normal(sizes.heads * d, h),
        "gate_up": normal(h, 2 * sizes.intermediate), "down": normal(sizes.intermediate, h),
    }  # fmt: skip


def buffers(sizes: Sizes, tokens: int, device: str) -> Buffers:
    generator = torch.Generator(device=device).manual_seed(tokens)

    def normal(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape, device=device, generator=generator) * 0.02).to(torch.bfloat16)

    return {
        "x": normal(tokens, sizes.hidden), "residual": normal(tokens, sizes.hidden),
        "qkv": normal(tokens, sizes.qkv), "gate_up": normal(tokens, 2 * sizes.intermediate),
        "act": normal(tokens, sizes.intermediate), "positions": torch.arange(tokens, device=device),
        "cos_sin": torch.rand(POSITIONS, sizes.head_dim, device=device, generator=generator).to(torch.bfloat16),
    }  # fmt: skip


def run_layer(ops: dict[str, Operation] | None, sizes: Sizes, b: Buffers, w: Buffers) -> None:
    """One layer; without `ops` its GEMMs alone."""
    if ops:
        ops["fused_add_rms_norm"](b["x"], b["residual"], w["norm_1"], EPS)
    torch.mm(b["x"], w["qkv"], out=b["qkv"])
    if ops:
        ops["fused_qk_norm_rope"](
            b["qkv"], sizes.heads, sizes.kv_heads, sizes.kv_heads, sizes.head_dim, EPS, w["q_norm"], w["k_norm"],
            b["cos_sin"], True, b["positions"],
        )  # fmt: skip
    torch.mm(b["qkv"][:, : sizes.heads * sizes.head_dim], w["o"], out=b["x"])
    if ops:
        ops["fused_add_rms_norm"](b["x"], b["residual"], w["norm_2"], EPS)
    torch.mm(b["x"], w["gate_up"], out=b["gate_up"])
    if ops:
        ops["silu_and_mul"](b["act"], b["gate_up"])
    torch.mm(b["act"], w["down"], out=b["x"])


NAMES = ("fused_add_rms_norm", "fused_qk_norm_rope", "silu_and_mul")


def sides() -> dict[str, dict[str, Operation]]:
    """The operations by library; vLLM's where its library is."""
    found: dict[str, dict[str, Operation]] = {"porter": {n: getattr(corpus, n) for n in NAMES}}
    if library := os.environ.get("VLLM_C"):
        torch.ops.load_library(library)
        theirs = {n: getattr(torch.ops._C, n) for n in NAMES}
        schema = str(torch.ops._C.fused_qk_norm_rope.default._schema)
        if "forced_token_heads_per_warp" in schema:
            rope = theirs["fused_qk_norm_rope"]
            theirs["fused_qk_norm_rope"] = lambda *args: rope(*args, -1)
        found["vllm"] = theirs
    return found


def difference(one: Buffers, other: Buffers) -> float:
    """The largest difference of what a layer leaves, in parts of each buffer's largest magnitude."""
    found = 0.0
    for name in ("x", "residual", "qkv", "act"):
        a, b = one[name].float(), other[name].float()
        found = max(found, float((a - b).abs().max() / a.abs().max()))
    return found


def graph_of(call: Callable[[], None]) -> torch.cuda.CUDAGraph:
    from bench.torch_timing import warm_up

    warm_up(call)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def measure(sizes: Sizes, tokens: int, all_weights: list[Buffers]) -> dict[str, Any]:
    """Microseconds a layer: medians of rounds in which the sides take turns, each from the same inputs."""
    kinds: dict[str, dict[str, Operation] | None] = {"gemms": None, **sides()}
    first = buffers(sizes, tokens, "cuda")
    results = {}
    for name, ops in kinds.items():
        if ops:
            results[name] = {k: v.clone() for k, v in first.items()}
            run_layer(ops, sizes, results[name], all_weights[0])
    row: dict[str, Any] = {"tokens": tokens}
    if "vllm" in results:
        row["difference"] = round(difference(results["vllm"], results["porter"]), 5)
        if row["difference"] > CLOSE:
            return row | {"not_timed": "the sides' results differ"}
    work = {k: v.clone() for k, v in first.items()}

    def start_again() -> None:
        for name in ("x", "residual"):
            work[name].copy_(first[name])

    graphs = {}
    for name, ops in kinds.items():
        start_again()

        def layers(ops: dict[str, Operation] | None = ops) -> None:
            for w in all_weights:
                run_layer(ops, sizes, work, w)

        graphs[name] = graph_of(layers)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS + DISCARDED):
        for name, graph in graphs.items():
            start_again()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn >= DISCARDED:
                times[name].append(begin.elapsed_time(end) * 1e3 / len(all_weights))
    us = {name: statistics.median(t) for name, t in times.items()}
    row["us"] = {name: round(t, 2) for name, t in us.items()}
    row["added_us"] = {name: round(t - us["gemms"], 2) for name, t in us.items() if name != "gemms"}
    if "vllm" in us:
        row["added_ratio"] = round((us["porter"] - us["gemms"]) / (us["vllm"] - us["gemms"]), 3)
        row["layer_ratio"] = round(us["porter"] / us["vllm"], 3)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layer", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 8, 64, 256, 1024, 8192])
    parser.add_argument("--layers", type=int, default=8, help="in one graph, each with weights of its own")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    if args.device == "cpu":
        sizes = Sizes(hidden=256, heads=4, kv_heads=2, head_dim=64, intermediate=512)
        for tokens in args.tokens:
            b = buffers(sizes, tokens, "cpu")
            run_layer({n: getattr(corpus, n) for n in NAMES}, sizes, b, weights(sizes, "cpu", 1))
            print(f"tokens {tokens}: largest {float(b['x'].abs().max()):.3g}")
        return 0
    from bench.corpus_vs_peers import commit, driver, versions
    from bench.torch_timing import copy_ceiling

    sizes = Sizes()
    all_weights = [weights(sizes, "cuda", n) for n in range(args.layers)]
    speed = copy_ceiling("cuda")
    rows: list[dict[str, Any]] = []
    for tokens in args.tokens:
        row = measure(sizes, tokens, all_weights)
        row["floor_us"] = round(sizes.bytes_between(tokens) / speed * 1e-3, 2)
        rows.append(row)
        print(row, flush=True)
        record = {
            "schema": 1, "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
            "device": torch.cuda.get_device_name(), "driver": driver(), "versions": versions(),
            "copy_gbps": round(speed, 1), "method": " ".join((__doc__ or "").split("\n\n")[2].split()), "rows": rows,
        }  # fmt: skip
        args.output.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if any("not_timed" in r for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
