"""How long `porter port` takes: one kernel with an empty cache and with a full one, and the whole reference set.

python -m bench.latency [--repeat N] [--only rms_norm]   writes bench/results/latency.json

Wall time, CPU time (of porter and every process that it started) and the stage times that porter itself prints. Each
command runs once unmeasured before, so that files are in memory and Python's own .pyc files exist; "cold" means that
porter's cache is empty, "warm" that it has every artefact, with fresh seeds in both. The best of N runs counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from porter.provenance.record import tool_versions

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results/latency.json"
KERNELS = ROOT / "reference_kernels"
RMS_NORM = (KERNELS / "norm/rms_norm.cu",)
WHOLE_SET = tuple(sorted(KERNELS.rglob("*.cu")))


@dataclass
class Run:
    """One `porter port`. Seconds; `load` is the number of runnable processes before it, a minute's average."""

    wall: float
    cpu: float
    load: float
    kernels: int
    stages: dict[str, float] = field(default_factory=dict)  # summed over kernels: stages overlap, so not the wall time


def measure(files: Sequence[Path], cache: Path) -> Run:
    """Port and verify files into a new folder with this porter cache. Raises RuntimeError unless all is verified."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="porter-bench-") as folder, tempfile.TemporaryFile() as log:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PORTER_CACHE": str(cache), "PYTHONPYCACHEPREFIX": str(cache.parent / "pyc")}
        names = [os.path.relpath(f, ROOT) for f in files]
        command = [sys.executable, "-m", "porter.cli", "port", *names, "-o", folder, "--output-format", "json"]
        output = Path(folder) / "report.json"
        with output.open("wb") as out:
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=log)
            _, status, used = os.wait4(process.pid, 0)  # with the processes that it waited for
            wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise RuntimeError(
                f"porter ended with {process.returncode}:\n{log.read().decode(errors='replace')[-4000:]}"
            )
        kernels = json.loads(output.read_text())["kernels"]
    stages: dict[str, float] = {}
    for kernel in kernels:
        for stage, seconds in kernel["seconds"].items():
            stages[stage] = round(stages.get(stage, 0.0) + seconds, 3)
    return Run(round(wall, 3), round(used.ru_utime + used.ru_stime, 3), round(load, 2), len(kernels), stages)


def cold_and_warm(files: Sequence[Path], repeat: int) -> dict[str, Run]:
    """The best of `repeat` runs with an empty cache, and of as many with the cache that the last of them left."""
    cold: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="porter-bench-") as folder:
        measure(files[:1], Path(folder) / "first")
        for n in range(repeat):
            cold.append(measure(files, Path(folder) / f"cache{n}"))
        warm = [measure(files, Path(folder) / f"cache{repeat - 1}") for _ in range(repeat)]
    return {"cold": min(cold, key=lambda r: r.wall), "warm": min(warm, key=lambda r: r.wall)}


def machine() -> dict[str, Any]:
    """What the times hang on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "cpu": model or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of rms_norm; the whole set runs once")
    parser.add_argument("--only", choices=("rms_norm", "whole_set"), help="keep the other's last numbers")
    args = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for name, files, repeat in (("rms_norm", RMS_NORM, args.repeat), ("whole_set", WHOLE_SET, 1)):
        if args.only not in (None, name):
            continue
        runs = cold_and_warm(files, repeat)
        found[name] = {
            "files": len(files),
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": commit(),
            "machine": machine(),
            "versions": tool_versions(),
            **{k: asdict(r) for k, r in runs.items()},
        }
        for k, r in runs.items():
            print(f"{name} {k}: {r.wall:.1f} s wall, {r.cpu:.1f} s CPU at load {r.load:.1f}; {r.stages}")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
