"""Times the reference kernels' ports over tensors against those over pointers on a GPU: `python -m bench.styles`.

graph_cold, as in bench/ports_vs_originals.py: N calls in one CUDA graph over buffer sets of twice the L2 cache (at most
400), the cache swept before the replay. The port over pointers, the one over tensors and the first again are replayed
in turn, at least 11 times and until the first differs from itself by at most 1 % (porter/verify/backends/timing.py).
Both ports run on the same inputs once before, and their outputs have to be equal to the bit.

Needs two bundles of the same kernels, one a style (`python -m tools.gpu.bundle build/gpu`, and build/gpu_tensor with
`--style tensor`). Prints a line a shape; writes bench/results/styles.json. A kernel in which nothing was lifted is not
timed. With --again, what an earlier result has is kept, and the rest is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.ports_vs_originals import (
    DEVICE,
    Subject,
    buffer_sets,
    circumstances,
    compare_graphs,
    same_outputs,
    subject_of,
)
from bench.shapes import ROWS, SHAPES
from bench.torch_timing import Sweep, TorchGraph, rotation_for
from porter.verify.backends.timing import geomean
from porter.verify.launches.inputs import make_inputs
from tools.gpu.manifest import Bundle, KernelFacts, read_bundle
from tools.gpu.original import Original
from tools.gpu.port import Port

GEOMEAN_GATE, SHAPE_GATE = 1.005, 1.03
STYLES = ("pointer", "tensor")


def paired(pointer: Bundle, tensor: Bundle) -> tuple[list[tuple[KernelFacts, KernelFacts]], list[str]]:
    """The kernels of both bundles whose ports differ, and the names of those whose ports are the same text.

    Raises ValueError where the bundles are not of these styles, of other sources or cases, or of other kernels.
    """
    for bundle, style in ((pointer, "pointer"), (tensor, "tensor")):
        if bundle.style != style:
            raise ValueError(f"{bundle.folder} has ports in {bundle.style} style, not in {style} style")
    names = [[k.name for k in b.kernels] for b in (pointer, tensor)]
    if names[0] != names[1]:
        raise ValueError(f"{pointer.folder} and {tensor.folder} hold other kernels: make both again")
    pairs, same = [], []
    for a, b in zip(pointer.kernels, tensor.kernels, strict=True):
        port = Path(a.port).name
        if {**a.sha256, port: ""} != {**b.sha256, port: ""} or a.arguments != b.arguments:
            raise ValueError(f"{a.name}: its source, case or original differs between the bundles: make both again")
        if a.sha256[port] == b.sha256[port]:
            same.append(a.name)
        else:
            pairs.append((a, b))
    return pairs, same


def bench(sides: dict[str, Subject], sweep: Sweep, seed: int) -> dict[str, Any]:
    """Both ports of one kernel at one shape."""
    subject = sides["pointer"]
    host = make_inputs(subject.case, subject.launch.point, dict(subject.instance.values), "normal", seed)
    held = sum(b.allocation.nbytes for b in host.values())
    rotation = rotation_for(held, held, sweep.l2)
    sets = buffer_sets(host, rotation.sets)
    for style, buffers in zip(STYLES, sets, strict=False):
        sides[style].run_port(buffers)
    torch.cuda.synchronize()
    equal = same_outputs(host, sets[0], sets[1])
    order = [sets[i % rotation.sets] for i in range(rotation.calls)]
    graphs = {style: TorchGraph([partial(sides[style].run_port, b) for b in order]) for style in STYLES}
    return {
        "sizes": {k: subject.launch.sizes[k] for k in subject.case.base_sizes},
        "instance": str(subject.instance),
        "grid": subject.launch.grid,
        "block": subject.launch.block,
        "bytes": subject.counted_bytes(host),
        "sets": rotation.sets,
        "calls": rotation.calls,
        "outputs_equal": equal,
        "graph_cold": compare_graphs(graphs, sweep, "pointer", "tensor"),
    }


def line(name: str, row: dict[str, Any]) -> str:
    cold, sizes = row["graph_cold"], "x".join(str(v) for v in row["sizes"].values())
    text = f"{name:26.26} {sizes:22.22} pointer {cold['pointer_us']:8.2f} tensor {cold['tensor_us']:8.2f}"
    text += f" {cold['ratio']:6.3f} +-{100 * cold['a_vs_a']:.1f}%"
    return text + ("" if row["outputs_equal"] in (True, None) else " bits differ")


def summary(kernels: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The gates over all shapes: the mean, and the worst of the ratios that are outside what was measured twice."""
    rows = [(n, r) for n, shapes in kernels.items() for r in shapes]
    ratios = [r["graph_cold"]["ratio"] for _, r in rows]
    worst, row = max(rows, key=lambda r: float(r[1]["graph_cold"]["ratio"]))
    over = [n for n, r in rows if r["graph_cold"]["counts"] and r["graph_cold"]["ratio"] > SHAPE_GATE]
    differ = [n for n, r in rows if r["outputs_equal"] is False]
    return {
        "kernels": len(kernels),
        "shapes": len(rows),
        "geomean": round(geomean(ratios), 4),
        "geomean_by_kernel": {
            n: round(geomean([r["graph_cold"]["ratio"] for r in shapes]), 4) for n, shapes in kernels.items()
        },
        "worst": {"kernel": worst, "sizes": row["sizes"], "ratio": row["graph_cold"]["ratio"]},
        "bits_differ": sorted(set(differ)),
        "over": sorted(set(over)),
        "unsettled": sum(not r["graph_cold"]["settled"] for _, r in rows),
        "passes": geomean(ratios) <= GEOMEAN_GATE and not over and not differ,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.styles", description=__doc__)
    parser.add_argument("--pointer", type=Path, default=Path("build/gpu"), help="bundle of the ports over pointers")
    parser.add_argument("--tensor", type=Path, default=Path("build/gpu_tensor"), help="bundle of those over tensors")
    parser.add_argument("--output", type=Path, default=Path("bench/results/styles.json"))
    parser.add_argument("--again", type=Path, help="an earlier result, of which what is there is kept")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--seconds", type=float, default=360.0, help="start no further shape after this long")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    start = time.perf_counter()
    bundles = {style: read_bundle(getattr(args, style).resolve()) for style in STYLES}
    pairs, same = paired(bundles["pointer"], bundles["tensor"])
    earlier = json.loads(args.again.read_text()) if args.again else {"kernels": {}}
    torch.zeros(1, device=DEVICE)
    torch.cuda.synchronize()
    sweep = Sweep(DEVICE)
    kernels: dict[str, list[dict[str, Any]]] = {}
    skipped: list[str] = []
    record = {
        "schema": 1,
        **circumstances(bundles["pointer"]),
        "commit_tensor": bundles["tensor"].commit,
        "l2_bytes": sweep.l2,
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()),
        "gates": {"geomean": GEOMEAN_GATE, "shape": SHAPE_GATE},
        "summary": {},
        "not_lifted": same,
        "not_run": skipped,
        "kernels": kernels,
    }
    for pair in pairs:
        name = pair[0].name
        if args.kernel and name not in args.kernel:
            continue
        rows: list[dict[str, Any]] = list(earlier["kernels"].get(name, []))
        originals: dict[int, Original] = {}
        try:
            ports = [Port(b, f) for b, f in zip(bundles.values(), pair, strict=True)]
        except Exception as error:
            skipped.append(f"{name}: {type(error).__name__}: {error}"[:500])
            print(skipped[-1], flush=True)
            continue
        for sizes in SHAPES.get(name, ROWS):
            if any(sizes.items() <= r["sizes"].items() for r in rows):
                continue
            if time.perf_counter() - start > args.seconds:
                skipped.append(f"{name} {sizes}: out of time")
                continue
            try:
                subjects = [
                    subject_of(b, f, sizes, p, originals) for b, f, p in zip(bundles.values(), pair, ports, strict=True)
                ]
                rows.append(bench(dict(zip(STYLES, subjects, strict=True)), sweep, args.seed))
                print(line(name, rows[-1]), flush=True)
            except Exception as error:
                skipped.append(f"{name} {sizes}: {type(error).__name__}: {error}"[:500])
                print(skipped[-1], flush=True)
                torch.cuda.empty_cache()
        if rows:
            kernels[name] = rows
            record["summary"] = summary(kernels)
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(record, indent=1) + "\n")  # what is known so far
    if kernels:
        found = summary(kernels)
        worst, over = found["worst"], found["over"] or "none"
        print(f"{found['shapes']} shapes of {found['kernels']} kernels, geomean {found['geomean']}")
        print(f"worst {worst['ratio']} {worst['kernel']} {worst['sizes']}; over {SHAPE_GATE}: {over}")
        print(f"{len(skipped)} not run; bits differ: {found['bits_differ'] or 'none'}; passes: {found['passes']}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
