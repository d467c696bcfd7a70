"""What an engine sees of the corpus: layers in CUDA graphs, where each operation reads what the last wrote.

    python -m bench.layer [--only REGEX] [--tokens 1 8 64] [--seconds S] [--device cuda|cpu] [--output FILE]

Independent calls in one graph flatter kernels that start early; in a layer the rows come from a GEMM. Timed are the
GEMMs alone, and with the operations between them of the corpus and of vLLM (VLLM_C and VLLM_MOE_C name its libraries;
a side that is absent or wrong is left out with the reason). "added" is what the operations cost on top of the GEMMs,
"added_ratio" the corpus's part of the best other side's, "floor" the time of a copy of their bytes. Each side's result
is checked first against one in float32; times are medians of 15 rounds in which the sides take turns from the same
inputs. bench/dense_layer.py and bench/moe_layer.py say what the layers are.
With --device cpu nothing is timed: small layers run once and are checked. Rows of earlier runs stay in the file unless
they are timed again; it is written after each row.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from bench import dense_layer, moe_layer
from bench.dense_layer import DenseLayer
from bench.moe_layer import MoeLayer

OUTPUT = Path(__file__).resolve().parent / "results/layer.json"
TOKENS = (1, 8, 64, 256, 1024, 8192)
Layer = DenseLayer | MoeLayer
LAYERS: tuple[Layer, ...] = (
    DenseLayer(),
    MoeLayer(2048, 768, "bf16", layers=8),
    MoeLayer(2048, 768, "fp8", layers=8),
    MoeLayer(7168, 2048, "bf16", layers=4),  # 11.3 GB of weights each
    MoeLayer(7168, 2048, "fp8", layers=4),
)
SMALL: tuple[Layer, ...] = (
    DenseLayer(hidden=256, heads=4, kv_heads=2, head_dim=64, intermediate=512, layers=1),
    MoeLayer(128, 64, "bf16", layers=1, experts=16, topk=4),
    MoeLayer(128, 64, "fp8", layers=1, experts=16, topk=4),
)


def key(layer: str, tokens: int) -> str:
    """What --only is matched with."""
    return f"{layer} {tokens}"


def rows_of(layers: tuple[Layer, ...], tokens: list[int], only: str, device: str, until: float) -> Iterator[Any]:
    """Rows as they are made, the weights of one kind of layer in memory at a time; a count of those left out last."""
    left = 0
    for layer in layers:
        wanted = [t for t in tokens if re.search(only, key(layer.name, t))]
        weights: list[dict[str, torch.Tensor]] = []
        for t in wanted:
            if time.perf_counter() > until:
                left += 1
                continue
            row: dict[str, Any] = {"layer": layer.name, "tokens": t}
            try:
                weights = weights or [layer.weights(device, n) for n in range(layer.layers)]
                row = _row(layer, t, weights, device)
            except Exception as error:  # the next rows may do
                row["failed"] = f"{type(error).__name__}: {error}"[:300]
            yield row
            if device == "cuda":
                torch.cuda.empty_cache()
        del weights
    yield left


def _row(layer: Layer, tokens: int, weights: list[dict[str, torch.Tensor]], device: str) -> dict[str, Any]:
    if isinstance(layer, MoeLayer):
        return moe_layer.row(layer, tokens, weights, device)
    return dense_layer.row(layer, tokens, weights, device)


def merged(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, and those of the file that they do not replace, in the order of layers and tokens."""
    old = json.loads(path.read_text())["rows"] if path.is_file() else []
    by_key = {(r["layer"], r["tokens"]): r for r in [*old, *rows]}
    names = [layer.name for layer in LAYERS]
    place = {name: n for n, name in enumerate(names)}
    return [by_key[k] for k in sorted(by_key, key=lambda k: (place.get(k[0], len(names)), k[0], k[1]))]


def line(row: dict[str, Any]) -> str:
    """A row for a person."""
    text = f"{row['layer']:20} T={row['tokens']:<5}"
    if "us" in row:
        text += " " + " ".join(f"{name} {us:.1f}" for name, us in row["us"].items())
        text += " | added " + " ".join(f"{name} {us:.1f}" for name, us in row["added_us"].items())
        if "added_ratio" in row:
            text += f" | {row['added_ratio']} of {row['best']}, layer {row['layer_ratio']}"
        text += f" | floor {row['floor_us']:.1f}"
    elif row.get("checked"):
        text += " right: " + ", ".join(row["checked"])
    for name, why in row.get("not_timed", {}).items():
        text += f" [{name}: {why}]"
    return text + (f" failed: {row['failed']}" if "failed" in row else "")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layer", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="a regular expression over rows: 'moe 2048x768 fp8 64'")
    parser.add_argument("--tokens", type=int, nargs="+", default=list(TOKENS))
    parser.add_argument("--layers", type=int, default=0, help="in one graph, each with weights of its own")
    parser.add_argument("--seconds", type=float, default=330.0, help="start no further row after this long")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args(argv)
    start = time.perf_counter()
    cuda = args.device == "cuda"
    layers = LAYERS if cuda else SMALL
    if args.layers:
        layers = tuple(dataclasses.replace(layer, layers=args.layers) for layer in layers)
    header: dict[str, Any] = {"schema": 2}
    speed = 0.0
    if cuda:
        from bench.corpus_vs_peers import commit, driver, versions
        from bench.torch_timing import copy_ceiling

        speed = copy_ceiling("cuda")
        torch.cuda.empty_cache()
        header |= {
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
            "device": torch.cuda.get_device_name(), "driver": driver(), "versions": versions(),
            "copy_gbps": round(speed, 1), "method": " ".join((__doc__ or "").split("\n\n")[2].split()),
        }  # fmt: skip
        print(f"{header['device']}, copy {speed:.0f} GB/s", flush=True)
    sizes = {layer.name: layer for layer in layers}
    rows: list[dict[str, Any]] = []
    for row in rows_of(layers, args.tokens, args.only, args.device, start + args.seconds):
        if isinstance(row, int):
            print(f"{len(rows)} rows, {row} left out for time, {time.perf_counter() - start:.0f} s")
            continue
        if cuda:
            row["floor_us"] = round(sizes[row["layer"]].bytes_between(row["tokens"]) / speed * 1e-3, 2)
            row |= {"date": header["date"], "commit": header["commit"]}
        rows.append(row)
        print(line(row), flush=True)
        if cuda:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            args.output.write_text(json.dumps(header | {"rows": merged(args.output, rows)}, indent=1) + "\n")
    ours_right = all("porter" in r.get("checked", []) for r in rows)
    return 0 if rows and ours_right else 1


if __name__ == "__main__":
    sys.exit(main())
