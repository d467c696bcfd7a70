"""Times each reference kernel's port against its original on a GPU: `python -m bench.ports_vs_originals`.

graph_cold: N calls in one CUDA graph over buffer sets of twice the L2 cache (at most 400), the cache swept before the
replay. graph_warm: calls on one set. Original, port and the original again are replayed in turn, at least 11 times and
until the original differs from itself by at most 1 % (porter/verify/backends/timing.py). An empty kernel (in the same
grid) and a copy of as many bytes stand beside them. Scratch stays as the launch before left it: these
kernels allow that.

Needs the bundle that the GPU tests need (PORTER_GPU_BUNDLE). Prints a line a shape; writes JSON. The port is called as
a user would call it; bench/gpu_verdicts.py times the cubins alone and judges.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.shapes import ROWS, SHAPES
from bench.torch_timing import Sweep, TorchGraph, host_us, rotation_for
from porter.case.reader import Case
from porter.verify.backends.timing import geomean, interleave, warm_calls
from porter.verify.launches.buffers import Buffers
from porter.verify.launches.inputs import make_inputs
from tools.gpu.manifest import Bundle, InstanceFacts, KernelFacts, Launch, chosen_instance, read_bundle
from tools.gpu.original import Original
from tools.gpu.port import Port
from tools.gpu.tensors import DeviceBuffer, DeviceBuffers, upload, view

GEOMEAN_GATE, SHAPE_GATE, SUSPICIOUS = 1.05, 1.10, 0.5
DEVICE = torch.device("cuda", 0)

# Inputs that a kernel reads rows of: it moves as many bytes of them as of the buffer named.
GATHERED = {("embedding", "weight"): "out", ("rotary_embedding", "cos_sin_cache"): "positions"}


@dataclass
class Subject:
    """One kernel at one shape: both sides ready to be called on any set of buffers."""

    bundle: Bundle
    facts: KernelFacts
    case: Case
    n: int
    launch: Launch
    original: Original
    port: Port

    @property
    def instance(self) -> InstanceFacts:
        return self.facts.instances[self.n]

    def run_original(self, buffers: DeviceBuffers) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        values: list[int | float | bool] = []
        for p in self.instance.parameters:
            values.append(buffers[p.name].address if p.dtype == "ptr" else self.launch.scalars[p.name])
        self.original.launch(self.launch.shape, values, stream)

    def run_port(self, buffers: DeviceBuffers) -> None:
        self.port.call(self.launch, {name: b.tensor for name, b in buffers.items()})

    def counted_bytes(self, host: Buffers) -> int:
        """Bytes that have to move: inputs read once, outputs written once, what is both twice; scratch not at all."""
        size = {name: int(np.prod(b.shape, dtype=np.int64)) * b.itemsize for name, b in host.items()}
        total = 0
        for name, b in host.items():
            times = {"in": 1, "out": 1, "inout": 2}.get(b.spec.role, 0)
            total += times * size[GATHERED.get((self.facts.name, name), name)]
        return total


def subject_of(
    bundle: Bundle, facts: KernelFacts, sizes: dict[str, int], port: Port, originals: dict[int, Original]
) -> Subject:
    """The first bf16 instance that the port's function takes at these sizes (the first of any dtype where none is)."""
    case = bundle.case(facts)
    values = [dict(i.values) for i in facts.instances]
    asked = replace(case, shapes=(dict(sizes),), only_shapes=True)
    for n in sorted(range(len(values)), key=lambda n: "bf16" not in values[n].values()):
        points = [p for p in asked.instance_points(case.instances[n], values[n]) if not p.null]
        if points and chosen_instance(case, list(values), n, points[0], frozenset()) == n:
            point = points[0]
            break
    else:
        raise ValueError(f"no instance takes {sizes}")
    shape = case.launch_at(point, values[n], torch.cuda.get_device_properties(DEVICE).multi_processor_count)
    launch = Launch(
        point.sizes, point.scalars, {k: list(v) for k, v in point.shapes.items()},
        {k: list(v) for k, v in point.strides.items()}, [], "normal", [], "function", list(shape.grid),
        list(shape.block), shape.smem, shape.cooperative,
    )  # fmt: skip
    if n not in originals:
        instance = facts.instances[n]
        cubin = (bundle.folder / facts.cubin).read_bytes()
        originals[n] = Original(cubin, instance.entry, instance.parameters)
    return Subject(bundle, facts, case, n, launch, originals[n], port)


# ---------------------------------------------------------------- timing


def buffer_sets(host: Buffers, count: int) -> list[DeviceBuffers]:
    """Independent copies of the buffers on the device."""
    first = upload(host, DEVICE)
    found = [first]
    for _ in range(count - 1):
        copies = {name: b.allocation.clone() for name, b in first.items()}
        found.append({name: DeviceBuffer(a, view(host[name], a)) for name, a in copies.items()})
    return found


def same_outputs(host: Buffers, one: DeviceBuffers, two: DeviceBuffers) -> bool | None:
    """Whether what is compared is equal to the bit, guards included; None where the kernel may order it otherwise."""
    compared = [b for b in host.values() if b.spec.is_compared]
    if any(b.spec.compare == "set-per-segment" for b in compared):
        return None
    return all(torch.equal(one[b.name].allocation, two[b.name].allocation) for b in compared)


def compare_graphs(
    graphs: dict[str, TorchGraph], before: Callable[[], None] | None, baseline: str = "original", side: str = "port"
) -> dict[str, Any]:
    """Baseline and side in turn, and what else there is; `again` is the baseline a second time in each round."""
    replays = {name: partial(graph.replay_us, before) for name, graph in graphs.items()}
    timing = interleave(replays, baseline)
    return {
        **{f"{name}_us": round(timing.median(name), 3) for name in timing.times},
        "ratio": round(timing.ratio(side), 4),
        "a_vs_a": round(timing.spread, 4),
        "counts": timing.counts(side),
        "rounds": timing.rounds,
        "settled": timing.settled,
    }


def bench(subject: Subject, empty: Original, sweep: Sweep, seed: int) -> dict[str, Any]:
    """One kernel at one shape."""
    host = make_inputs(subject.case, subject.launch.point, dict(subject.instance.values), "normal", seed)
    nbytes = subject.counted_bytes(host)
    held = sum(b.allocation.nbytes for b in host.values())
    rotation = rotation_for(held, held, sweep.l2)
    count, calls = rotation.sets, rotation.calls
    sets = buffer_sets(host, count)
    one, two = sets[0], sets[1]
    subject.run_original(one)
    subject.run_port(two)
    torch.cuda.synchronize()
    equal = same_outputs(host, one, two)

    def sides(which: list[DeviceBuffers]) -> dict[str, TorchGraph]:
        runs = {"original": subject.run_original, "port": subject.run_port}
        return {name: TorchGraph([partial(run, b) for b in which]) for name, run in runs.items()}

    source = torch.full((count, max(nbytes // 2, 16)), 3, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    copies = TorchGraph([partial(target[i % count].copy_, source[i % count]) for i in range(calls)])
    graphs = {**sides([sets[i % count] for i in range(calls)]), "copy": copies}
    cold = compare_graphs(graphs, sweep)
    empty.launch(subject.launch.shape, [], torch.cuda.current_stream().cuda_stream)  # loaded before it is captured

    def nothing() -> None:
        empty.launch(subject.launch.shape, [], torch.cuda.current_stream().cuda_stream)

    again = warm_calls(cold["original_us"])
    warm = compare_graphs({**sides([one] * again), "empty": TorchGraph([nothing] * again)}, None)
    return {
        "sizes": {k: subject.launch.sizes[k] for k in subject.case.base_sizes},
        "instance": str(subject.instance),
        "grid": subject.launch.grid,
        "block": subject.launch.block,
        "bytes": nbytes,
        "sets": count,
        "calls": calls,
        "outputs_equal": equal,
        "graph_cold": cold,
        "graph_warm": warm,
        "host_us": {
            "port": host_us(partial(subject.run_port, one)),
            "original": host_us(partial(subject.run_original, one)),
        },
    }


def line(name: str, row: dict[str, Any]) -> str:
    cold, warm = row["graph_cold"], row["graph_warm"]
    sizes = "x".join(str(v) for v in row["sizes"].values())
    text = f"{name:26.26} {sizes:22.22} cold {cold['original_us']:8.2f} {cold['port_us']:8.2f} {cold['ratio']:6.3f}"
    text += f" +-{100 * cold['a_vs_a']:.1f}% copy {cold['copy_us']:7.2f} | warm {warm['original_us']:7.2f}"
    text += f" {warm['port_us']:7.2f} {warm['ratio']:6.3f} empty {warm['empty_us']:5.2f}"
    text += f" | host {row['host_us']['port']:5.1f}"
    return text + ("" if row["outputs_equal"] in (True, None) else " bits differ")


def verdict(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The gate over one kernel's cold ratios."""
    ratios = [r["graph_cold"]["ratio"] for r in rows]
    outside = [r["graph_cold"]["ratio"] for r in rows if r["graph_cold"]["counts"]]
    mean = geomean(ratios)
    return {
        "geomean": round(mean, 4),
        "worst": max(ratios),
        "passes": mean <= GEOMEAN_GATE and max(outside, default=1.0) <= SHAPE_GATE,
        "to_be_looked_at": min(ratios) < SUSPICIOUS,
        "unsettled": sum(not r["graph_cold"]["settled"] for r in rows),
    }


def driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def circumstances(bundle: Bundle) -> dict[str, Any]:
    """When, of which commit and on what something was measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": bundle.commit,
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "versions": {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "dsl": version("nvidia-cutlass-dsl"),
            "original": f"nvrtc {bundle.versions['nvrtc']}",
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ports_vs_originals", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path(os.environ.get("PORTER_GPU_BUNDLE", "build/gpu")))
    parser.add_argument("--output", type=Path, default=Path("bench/results/ports_vs_originals.json"))
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--seconds", type=float, default=360.0, help="start no further shape after this long")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    start = time.perf_counter()
    bundle = read_bundle(args.bundle.resolve())
    torch.zeros(1, device=DEVICE)
    torch.cuda.synchronize()
    empty = Original((bundle.folder / bundle.empty).read_bytes(), "empty_kernel")
    sweep = Sweep(DEVICE)
    kernels: dict[str, Any] = {}
    skipped: list[str] = []
    record = {
        "schema": 1,
        **circumstances(bundle),
        "l2_bytes": sweep.l2,
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()),
        "kernels": kernels,
        "not_run": skipped,
    }
    for facts in bundle.kernels:
        if args.kernel and facts.name not in args.kernel:
            continue
        rows: list[dict[str, Any]] = []
        originals: dict[int, Original] = {}
        try:
            port = Port(bundle, facts)
        except Exception as error:
            skipped.append(f"{facts.name}: {type(error).__name__}: {error}"[:500])
            continue
        for sizes in SHAPES.get(facts.name, ROWS):
            if time.perf_counter() - start > args.seconds:
                skipped.append(f"{facts.name} {sizes}: out of time")
                continue
            try:
                row = bench(subject_of(bundle, facts, sizes, port, originals), empty, sweep, args.seed)
                rows.append(row)
                print(line(facts.name, row), flush=True)
            except Exception as error:
                skipped.append(f"{facts.name} {sizes}: {type(error).__name__}: {error}"[:500])
                print(skipped[-1], flush=True)
                torch.cuda.empty_cache()
        if rows:
            kernels[facts.name] = {"verdict": verdict(rows), "shapes": rows}
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(record, indent=1) + "\n")  # what is known so far
    ratios = [r["graph_cold"]["ratio"] for k in kernels.values() for r in k["shapes"]]
    if ratios:
        mean = geomean(ratios)
        failed = [n for n, k in kernels.items() if not k["verdict"]["passes"]]
        print(f"{len(ratios)} shapes, geomean {mean:.4f}, {len(skipped)} not run")
        print(f"over the gate: {' '.join(failed) or 'none'}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
