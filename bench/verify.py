"""How long `porter verify` takes over the ports of all reference kernels, with every artefact in porter's cache.

python -m bench.verify [--ports DIR]   writes bench/results/verify.json

The kernels are ported first, into a folder and a cache that are thrown away, unless DIR has their ports already. One
run of `porter verify` then counts: wall time, CPU time of porter and every process that it started, the slowest ports.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.latency import ROOT, WHOLE_SET, commit, machine
from porter.provenance.record import tool_versions

RESULTS = ROOT / "bench/results/verify.json"
SLOWEST = 5  # ports that are named


def run(arguments: list[str], environment: dict[str, str], output: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a porter command. Raises RuntimeError unless it ends with 0."""
    log = output.with_suffix(".log")
    with output.open("wb") as out, log.open("wb") as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "porter.cli", *arguments], cwd=ROOT, env=environment, stdout=out, stderr=err
        )
        _, status, used = os.wait4(process.pid, 0)  # with the processes that it waited for
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"porter {arguments[0]} ended with {process.returncode}:\n{log.read_text()[-4000:]}")
    return wall, used.ru_utime + used.ru_stime


def measure(ports: Path, environment: dict[str, str], folder: Path) -> dict[str, Any]:
    """One warm `porter verify` over the ports."""
    run(["verify", str(ports), "--output-format", "json", "--fresh"], environment, folder / "first.json")
    load = os.getloadavg()[0]
    arguments = ["verify", str(ports), "--output-format", "json", "--fresh"]
    wall, cpu = run(arguments, environment, folder / "report.json")
    kernels = json.loads((folder / "report.json").read_text())["kernels"]
    totals = sorted(((k["seconds"]["total"], k["kernel"]) for k in kernels), reverse=True)
    return {
        "ports": len(kernels),
        "verified": sum(k["verified"] for k in kernels),
        "wall": round(wall, 2),
        "cpu": round(cpu, 2),
        "load": round(load, 2),
        "slowest": {name: round(seconds, 2) for seconds, name in totals[:SLOWEST]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ports", type=Path, help="ports of the reference kernels, made before with the cache in use")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="porter-bench-") as name:
        folder, environment = Path(name), dict(os.environ)
        ports = args.ports
        if ports is None:
            environment["PORTER_CACHE"] = str(folder / "cache")
            ports = folder / "ported"
            files = [os.path.relpath(f, ROOT) for f in WHOLE_SET]
            run(["port", *files, "-o", str(ports)], environment, folder / "port.txt")
        found = measure(ports, environment, folder)
    found |= {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        "versions": tool_versions(),
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{found['ports']} ports: {found['wall']} s wall, {found['cpu']} s CPU at load {found['load']}")


if __name__ == "__main__":
    main()
