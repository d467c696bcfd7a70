"""CPU time from parsing to the written port, kernel by kernel, over the files of docs/coverage.md.

`python -m tools.translation_cost` (PORTER_REAL_SOURCES set) writes bench/results/translation_cost.json. A file is
parsed once for all its kernels: its time is shared out among them. Each file is measured in a process of its own; with
`--ports` the ports are written to a folder, to compare those of two versions.
"""

from __future__ import annotations

import argparse
import cProfile
import datetime
import json
import os
import pstats
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from porter.files.atomic import write_atomic
from tools.coverage_table import DEFINES, FILES
from tools.kept_lines import commit

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench" / "results" / "translation_cost.json"
SECONDS = 600  # of wall-clock time for a file
SYNTHETIC = (10, 100, 400)  # kernels of one file
LIMITS = {"median": 1.0, "most": 10.0}  # CPU-seconds a kernel


def cost_of_file(path: Path, defines: tuple[str, ...], ports: Path | None) -> list[dict[str, Any]]:
    """CPU-seconds of each kernel of a file in this process: {kernel, line, parse, lower, emit, holes or error}."""
    from porter.config import PortConfig
    from porter.model import PorterError
    from porter.pipeline.inputs import choose_instances, parse
    from porter.pipeline.stages import Run, translate
    from porter.report.console import StageEvent

    config = PortConfig(define=defines, verify=False, cpu_limit=0)
    start = time.process_time()
    unit = parse(path, config)
    shared = (time.process_time() - start) / max(1, len(unit.kernels))
    rows = []
    for info in unit.kernels:
        row: dict[str, Any] = {"kernel": info.name, "line": info.span.line, "parse": round(shared, 4)}
        start = time.process_time()
        lowered_at: list[float] = []

        def told(event: StageEvent, lowered_at: list[float] = lowered_at) -> None:
            if (event.stage, event.state) == ("parse", "done"):
                lowered_at.append(time.process_time())

        try:
            instances = choose_instances(unit, info, None, config)[:2]
            module = translate(unit, info, None, config, Run(info.name, told), instances).module
            row["lower"] = round(lowered_at[0] - start, 4)
            row["emit"] = round(time.process_time() - lowered_at[0], 4)
            row["holes"] = len(module.holes)
            if ports is not None:
                ports.mkdir(parents=True, exist_ok=True)
                (ports / f"{path.stem}.{info.name}.{info.span.line}.py").write_text(module.text, encoding="utf-8")
        except (PorterError, RecursionError) as error:
            row["error"] = str(error)[:200]
            row.setdefault("lower", round(time.process_time() - start, 4))
        row["seconds"] = round(sum(row.get(stage, 0.0) for stage in ("parse", "lower", "emit")), 4)
        rows.append(row)
    return rows


def synthetic(count: int) -> str:
    """A file of `count` kernels that differ in a constant."""
    body = """__global__ void kernel_{0}(float* out, const float* in, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += blockDim.x * gridDim.x) out[i] = in[i] * {0}.5f + (i % 3 == 0 ? 1.0f : in[n - 1 - i]);
}}
"""
    return "".join(body.format(i) for i in range(count))


def measure(command: list[str], seconds: float) -> list[dict[str, Any]]:
    """The rows that a child prints; one row with an error when it does not."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return [{"kernel": "", "line": 0, "error": f"not done after {seconds:g} s", "seconds": seconds}]
    if done.returncode:
        return [{"kernel": "", "line": 0, "error": done.stderr[-300:], "seconds": 0.0}]
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def sweep(sources: Path, only: str, ports: Path | None, folder: Path) -> dict[str, Any]:
    me = [sys.executable, "-m", "tools.translation_cost"]
    kernels: list[dict[str, Any]] = []
    for repository, files in FILES.items():
        for name in (f"{repository}/{n}" for n in files if only in f"{repository}/{n}"):
            if not (sources / name).is_file():
                continue
            more = ["--ports", str(ports / name)] if ports else []
            rows = measure([*me, "--file", str(sources / name), "--name", repository, *more], SECONDS)
            worst = max((r["seconds"] for r in rows), default=0.0)
            print(f"{name}: {len(rows)} kernels, at most {worst:.2f} s", file=sys.stderr, flush=True)
            kernels += [{"file": name, **row} for row in rows]
    scaling = {}
    for count in () if only else SYNTHETIC:
        path = folder / f"kernels_{count}.cu"
        path.write_text(synthetic(count), encoding="utf-8")
        rows = measure([*me, "--file", str(path), "--name", ""], SECONDS)
        scaling[str(count)] = round(sum(r["seconds"] for r in rows) / count, 4)
    seconds = sorted(k["seconds"] for k in kernels)
    return {
        "command": "PORTER_REAL_SOURCES=<folder> python -m tools.translation_cost",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "kernels": len(kernels),
        "limits": LIMITS,
        "median": round(statistics.median(seconds), 4) if seconds else 0.0,
        "p95": seconds[int(0.95 * (len(seconds) - 1))] if seconds else 0.0,
        "most": seconds[-1] if seconds else 0.0,
        "seconds_a_kernel_by_kernels_of_a_file": scaling,
        "slowest": sorted(kernels, key=lambda k: -k["seconds"])[:20],
        "errors": [k for k in kernels if "error" in k],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.translation_cost", description=__doc__)
    parser.add_argument("sources", nargs="?", type=Path, default=os.environ.get("PORTER_REAL_SOURCES"))
    parser.add_argument("--only", default="", help="files whose name contains this; nothing is recorded then")
    parser.add_argument("--ports", type=Path, help="write the ports below this folder")
    parser.add_argument("--profile", type=Path, help="with --only: print what the CPU time of this file goes to")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--name", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.profile:
        profile = cProfile.Profile()
        name = next((r for r in FILES if f"/{r}/" in str(args.profile.resolve())), "")
        profile.runcall(cost_of_file, args.profile, DEFINES.get(name, ()), args.ports)
        pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
        return 0
    if args.file:
        print(json.dumps(cost_of_file(args.file, DEFINES.get(args.name, ()), args.ports)))
        return 0
    if args.sources is None:
        parser.error("name the folder of the sources (tools/real_sources.py says how to lay it out)")
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = sweep(Path(args.sources), args.only, args.ports and args.ports.resolve(), Path(folder))
    if not args.only:
        write_atomic(RESULT, json.dumps(found, indent=1) + "\n")
    print(json.dumps({k: v for k, v in found.items() if k not in ("slowest", "errors")}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
