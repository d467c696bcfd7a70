"""The bundle's originals and ports run on a GPU, on bytes made here: what bench/gpu_vs_emulator.py compares with.

`python -m tools.gpu.programs prepare BUNDLE INPUTS` makes the inputs, without a GPU; on the GPU machine,
`python -m tools.gpu.programs run BUNDLE INPUTS OUTPUTS.npz` runs every program and writes what it left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from porter.verify.launches.buffers import Buffers
from porter.verify.launches.inputs import make_inputs
from tools.gpu.manifest import Bundle, KernelFacts, Launch, read_bundle

LAUNCHES = 4  # an instance
MOST_ELEMENTS = 20_000  # of all buffers of a launch: all bytes travel
SEED = 20261129
PROCESSES = 8
SIDES = ("original", "port")
ROOT = Path(__file__).resolve().parents[2]


def programs(kernel: KernelFacts) -> Iterator[tuple[int, int, Launch]]:
    """(instance, launch, facts) of the launches to run: of each instance a few, from small to large, aligned or not."""
    for n, instance in enumerate(kernel.instances):
        fit = [
            at
            for at, launch in enumerate(instance.launches)
            if launch.route != "empty" and not launch.far and 0 < launch.point.elements <= MOST_ELEMENTS
        ]
        fit.sort(key=lambda at: instance.launches[at].point.elements)
        picks = sorted({round(i * (len(fit) - 1) / (LAUNCHES - 1)) for i in range(LAUNCHES)}) if fit else []
        for pick in picks:
            yield n, fit[pick], instance.launches[fit[pick]]


def inputs(bundle: Bundle, kernel: KernelFacts, n: int, at: int) -> Buffers:
    """The buffers of a launch before it. Their bytes may depend on numpy's build: only `prepare` relies on them."""
    instance = kernel.instances[n]
    trial = instance.launches[at].trial(SEED + 1000 * n + at)
    return make_inputs(
        bundle.case(kernel), trial.point, dict(instance.values), trial.scenario, trial.seed, trial.misaligned
    )


def key(*parts: object) -> str:
    return "|".join(map(str, parts))


def prepare(bundle: Bundle, folder: Path) -> int:
    """Write the allocations of every launch, guards included, one file a kernel; the number of launches."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for kernel in bundle.kernels:
        arrays = {}
        for n, at, _ in programs(kernel):
            arrays |= {key(n, at, name): b.allocation for name, b in inputs(bundle, kernel, n, at).items()}
            count += 1
        np.savez_compressed(folder / f"{kernel.name}.npz", **arrays)
    return count


def with_bytes(buffers: Buffers, arrays: Any, n: int, at: int) -> Buffers:
    """The buffers, holding the bytes that `prepare` wrote."""
    for name, buffer in buffers.items():
        buffer.allocation[:] = arrays[key(n, at, name)]
    return buffers


# ---------------------------------------------------------------- on the GPU machine


def run_kernel(bundle: Bundle, kernel: KernelFacts, folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What every launch of a kernel left in what it may write to; and the launches that the port chose, or errors."""
    import torch

    from tools.gpu.original import Original
    from tools.gpu.port import Port
    from tools.gpu.tensors import upload

    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)
    port = Port(bundle, kernel)
    cubin = (bundle.folder / kernel.cubin).read_bytes()
    originals = [Original(cubin, i.entry, i.parameters) for i in kernel.instances]
    given = np.load(folder / f"{kernel.name}.npz")
    found: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {}
    for n, at, launch in programs(kernel):
        before = with_bytes(inputs(bundle, kernel, n, at), given, n, at)
        left: dict[str, dict[str, np.ndarray]] = {}
        for side in SIDES:
            buffers = upload(before, device, launch.point.null)
            if side == "original":
                values: list[Any] = []
                for p in kernel.instances[n].parameters:
                    address = buffers[p.name].address if p.name in buffers else 0
                    values.append(address if p.dtype == "ptr" else launch.scalars[p.name])
                originals[n].launch(launch.shape, values, torch.cuda.current_stream().cuda_stream)
            elif launch.route == "direct":
                port.run_instance(kernel.instances[n], launch, {k: b.tensor for k, b in buffers.items()})
            else:
                port.call(launch, {k: b.tensor for k, b in buffers.items()})
            torch.cuda.synchronize()
            left[side] = {k: b.allocation.cpu().numpy() for k, b in buffers.items()}
        assert port.launched is not None
        constexprs, shape = port.launched
        facts[key(n, at)] = {"constexprs": constexprs, "grid": shape.grid, "block": shape.block, "smem": shape.smem}
        for name, buffer in before.items():
            if name in launch.point.null or buffer.spec.role == "in":
                continue
            for side in SIDES:  # the port's bytes travel only where they are others
                if side == "original" or not np.array_equal(left[side][name], left["original"][name]):
                    found[key(kernel.name, n, at, name, side)] = left[side][name]
    return found, facts


def _child(bundle: Bundle, name: str, folder: Path, work: Path) -> None:
    found, facts = run_kernel(bundle, bundle.kernel(name), folder)
    np.savez(work / f"{name}.npz", **found)
    (work / f"{name}.json").write_text(json.dumps(facts))


def run(bundle_folder: Path, folder: Path, output: Path) -> int:
    """Every kernel in a process of its own; the arrays of all in one file. Returns how many kernels failed."""
    bundle = read_bundle(bundle_folder)
    arrays: dict[str, np.ndarray] = {}
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:

        def one(name: str) -> str:
            command = [sys.executable, "-m", "tools.gpu.programs", "child", str(bundle_folder), str(folder), work]
            try:
                done = subprocess.run([*command, name], cwd=ROOT, capture_output=True, text=True, timeout=120)
            except subprocess.TimeoutExpired:
                return "not done after 120 s"
            return "" if done.returncode == 0 else done.stderr[-2000:]

        names = [k.name for k in bundle.kernels]
        with ThreadPoolExecutor(PROCESSES) as threads:
            for name, error in zip(names, threads.map(one, names), strict=True):
                told[name] = {"error": error} if error else json.loads((Path(work) / f"{name}.json").read_text())
                print(f"{name}: {error or 'done'}", flush=True)
                if not error:
                    arrays |= dict(np.load(Path(work) / f"{name}.npz"))
    arrays["facts"] = np.frombuffer(json.dumps({"kernels": told, **_machine()}).encode(), np.uint8)
    np.savez_compressed(output, **arrays)
    return sum("error" in t for t in told.values())


def _machine() -> dict[str, str]:
    from importlib.metadata import version

    import torch

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True).stdout.split()
    return {
        "device": torch.cuda.get_device_name(), "driver": driver[0] if driver else "",
        "torch": torch.__version__, "dsl": version("nvidia-cutlass-dsl"), "python": sys.version.split()[0],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu.programs", description=__doc__)
    parser.add_argument("what", choices=("prepare", "run", "child"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("name", nargs="?")
    args = parser.parse_args()
    if args.what == "prepare":
        print(f"{prepare(read_bundle(args.bundle), args.inputs)} launches in {args.inputs}")
        return 0
    if args.what == "run":
        return int(run(args.bundle.resolve(), args.inputs.resolve(), args.output) > 0)
    _child(read_bundle(args.bundle), args.name, args.inputs, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
