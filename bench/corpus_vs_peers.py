"""Times the corpus against other libraries on one GPU, in one process: `python -m bench.corpus_vs_peers`.

Each side's result is checked against a float32 reference first; what is wrong is not timed. graph_cold: N calls in one
CUDA graph over sets of inputs of twice the L2 cache, the cache swept before each replay; sides take turns
(porter/verify/backends/timing.py). Beside them: the bytes' floor at this run's copy speed, and an empty kernel in
porter's grid. A row is won by one of: at most 0.97x the best peer and outside twice the spread; at most 1.02x the
floor; at most 1.10x the empty kernel. Rows of earlier runs stay in the file unless they are timed again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from bench.corpus_rows import DEVICE, WORKLOADS, Shape, Side, Workload, held_bytes, label
from bench.peers import all_sides, compiled_side
from bench.torch_timing import Sweep, TorchGraph, copy_ceiling, grid_of, host_us, rotation_for, warm_up
from bench.verdict import OURS, judge
from porter.verify.backends.timing import Timing, interleave

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench/results/corpus_vs_peers.json"
COMPILED = "torch.compile"
PACKAGES = ("torch", "triton", "nvidia-cutlass-dsl", "cuda-bindings", "quack-kernels", "vllm", "flashinfer-python")


def wrong(workload: Workload, shape: Shape, side: Side) -> str:
    """Why a side is not timed: "" when its outputs are the reference's within the tolerance."""
    inputs = workload.inputs(*shape)
    expected = workload.reference({k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()})
    try:
        found = side(inputs)
        torch.cuda.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    for n, (e, f) in enumerate(zip(expected, found, strict=False)):
        scale = max(float(e.float().abs().max()), 1e-12)
        error = float((e.float() - f.float().reshape(e.shape)).abs().max())
        if n in workload.units:
            if not error <= workload.units[n]:
                return f"output {n} is off by {error:.3g}, {workload.units[n]} at most"
            continue
        error /= scale
        if not error <= workload.tolerance:
            return f"output {n} is off by {error:.3g} of the largest value"
    return ""


def time_row(workload: Workload, shape: Shape, sides: dict[str, Side], sweep: Sweep, seconds: float) -> dict[str, Any]:
    """One row: every side that is right, timed in turns."""
    refused = {name: why for name, side in sides.items() if (why := wrong(workload, shape, side))}
    good = {name: side for name, side in sides.items() if name not in refused}
    row: dict[str, Any] = {"kernel": workload.name, "shape": list(shape), "bytes": workload.nbytes(*shape)}
    if refused:
        row["not_timed"] = refused
    if not good:
        return row
    first = workload.inputs(*shape)
    rotation = rotation_for(row["bytes"], held_bytes(first), sweep.l2)
    sets = [first, *(workload.inputs(*shape) for _ in range(rotation.sets - 1))]
    graphs: dict[str, TorchGraph] = {}
    for name, side in good.items():
        try:
            warm_up(partial(side, first))
            graphs[name] = TorchGraph([partial(side, sets[i % rotation.sets]) for i in range(rotation.calls)])
        except Exception as error:
            row.setdefault("not_timed", {})[name] = f"not captured: {type(error).__name__}: {error}"[:300]
            torch.cuda.synchronize()
    baseline = OURS if OURS in graphs else next(iter(graphs), "")
    if not baseline:
        return row
    if OURS in good:
        row["grid"] = grid_of(partial(good[OURS], first)) or ((shape[0], 1, 1), (128, 1, 1))
        empty = partial(_empty, *row["grid"])
        warm_up(empty)
        graphs["empty"] = TorchGraph([empty] * max(rotation.calls, 100))
    replays: dict[str, Callable[[], float]] = {n: partial(g.replay_us, sweep) for n, g in graphs.items()}
    timing = interleave(replays, baseline, seconds=seconds)
    row |= {"sets": rotation.sets, "calls": rotation.calls, "graph_cold": timing.data()}
    row["host_us"] = {n: host_us(partial(good[n], first), 100, 3) for n in graphs if n in good}
    row["_timing"] = timing
    return row


def _empty(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    from porter.verify.backends.timing_kernels import EMPTY

    EMPTY.launch({}, [], grid=grid, block=block, device=DEVICE)


def driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def commit() -> str:
    """The commit that is timed; PORTER_COMMIT names it where the files are a copy without their history."""
    if named := os.environ.get("PORTER_COMMIT"):
        return named
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def line(row: dict[str, Any]) -> str:
    """A row for a person."""
    head = f"{row['kernel']:24.24} {label(tuple(row['shape'])):12.12}"
    if "graph_cold" not in row:
        return f"{head} not timed: {row.get('not_timed', 'no side is present')}"
    us = {k: v for k, v in row["graph_cold"]["us"].items() if k != "again"}
    text = " ".join(f"{k} {v:.2f}" for k, v in us.items())
    text += f" | floor {row['floor_us']:.2f} +-{row['graph_cold']['a_vs_a']:.1%} | {row['verdict']['text']}"
    more = "".join(f" [{k}: {v[:60]}]" for k, v in row.get("not_timed", {}).items())
    return f"{head} {text}{more}"


def merged(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, and those of the file that they do not replace, in the order of the workloads."""
    old = json.loads(path.read_text())["rows"] if path.is_file() else []
    by_key = {(r["kernel"], tuple(r["shape"])): r for r in [*old, *rows]}
    order = [(w.name, s) for w in WORKLOADS for s in w.shapes]
    return [by_key[k] for k in order if k in by_key]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus_vs_peers", description=__doc__)
    parser.add_argument("--kernel", action="append", default=[], help="rows whose name holds this (repeatable)")
    parser.add_argument("--rows", default="", help="a regular expression over 'NAME SHAPE', as in 'rms_norm 1x'")
    parser.add_argument("--sides", default="", help="only these, by comma: porter,vllm,flashinfer,quack,triton,...")
    which = "rows that torch.compile is timed in: where it was near the best (default), all, none"
    parser.add_argument("--compile", choices=("close", "all", "none"), default="close", help=which)
    parser.add_argument("--seconds", type=float, default=420.0, help="start no further row after this long")
    parser.add_argument("--row-seconds", type=float, default=1.5, help="ask for no more rounds of a row after this")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    start = time.perf_counter()
    torch.cuda.set_device(DEVICE)
    sides, notes = all_sides()
    for note in notes:
        print(note, flush=True)
    only = {s for s in args.sides.split(",") if s}
    sweep, ceiling = Sweep(DEVICE), copy_ceiling(DEVICE)
    print(f"{torch.cuda.get_device_name()}, copy {ceiling:.0f} GB/s", flush=True)
    now, at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), commit()
    rows: list[dict[str, Any]] = []
    left = 0
    for workload in WORKLOADS:
        for shape in workload.shapes:
            key = f"{workload.name} {label(shape)}"
            if args.kernel and not any(k in workload.name for k in args.kernel):
                continue
            if not re.search(args.rows, key):
                continue
            if time.perf_counter() - start > args.seconds:
                left += 1
                continue
            wanted = {n: s for n, s in sides[workload.name].items() if not only or n in only}
            if (not only or COMPILED in only) and (
                args.compile == "all" or (args.compile == "close" and shape in workload.close)
            ):
                wanted[COMPILED] = compiled_side(workload, shape)
            try:
                row = time_row(workload, shape, wanted, sweep, args.row_seconds)
            except Exception as error:
                row = {"kernel": workload.name, "shape": list(shape), "bytes": workload.nbytes(*shape),
                       "not_timed": {"all": f"{type(error).__name__}: {error}"[:300]}}  # fmt: skip
            timing: Timing | None = row.pop("_timing", None)
            row |= {"date": now, "commit": at, "floor_us": round(row["bytes"] / ceiling / 1e3, 3)}
            if timing is not None:
                row["verdict"] = judge(timing, row["floor_us"])
            rows.append(row)
            print(line(row), flush=True)
            torch.cuda.empty_cache()
        record = {
            "schema": 1, "date": now, "commit": at, "device": torch.cuda.get_device_name(), "driver": driver(),
            "versions": versions(), "l2_bytes": sweep.l2, "copy_gbps": round(ceiling, 1),
            "method": " ".join((__doc__ or "").split("\n\n")[1].split()), "absent": notes,
            "rows": merged(args.output, rows),
        }  # fmt: skip
        if rows:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            args.output.write_text(json.dumps(record, indent=1) + "\n")
    judged = [r for r in rows if "verdict" in r]
    met = sum(r["verdict"]["met"] for r in judged)
    print(f"{met} of {len(judged)} rows met, {len(rows) - len(judged)} not judged, {left} left out for time, "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
