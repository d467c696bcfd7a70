"""How long `porter review` takes for a key in files of 2,000 lines: `python -m bench.review_keys`.

Writes bench/results/review_keys.json. Two clocks for each key: CPU time of the whole process, driven without a
terminal; and wall time in a real one (a pty), from the key to the last byte that is drawn, with Textual's wait for the
next of its 60 frames a second in it. Wall time means something where this has the processor to itself: `load` is what
else runs, `policy` whether it goes before that (`chrt -f 10 python -m bench.review_keys`, where that is allowed).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.terminal import Terminal
from porter.config import PortConfig
from porter.model import LineMapEntry
from porter.provenance.record import PortRecord, sha256_text
from porter.provenance.store import write_port
from porter.review.app import ReviewApp
from porter.source import Span

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench/results/review_keys.json"
LINES = 2000
QUIET = 0.1  # seconds without output after which a key is drawn
POLICIES = {os.SCHED_FIFO: "fifo", os.SCHED_RR: "round robin", os.SCHED_OTHER: "normal"}
Times = dict[str, list[float]]  # key -> milliseconds


def large_port(folder: Path, lines: int = LINES) -> Path:
    """A source and a port of so many lines, each line mapped to its own; out/large.py in `folder`."""
    statements = range(lines - 3)
    cuda = "__global__ void large(float* x, float a) {\n"
    cuda += "".join(f"  x[{n}] = fmaf(a, x[{n}], {n}.0f);  // element {n}\n" for n in statements) + "}\n\n"
    text = "@cute.kernel\ndef large(x: cute.Pointer, a: Float32):\n"
    text += "".join(f"    x[{n}] = lib.fma(a, x[{n}], {n}.0)  # element {n}\n" for n in statements) + "\n"
    rows = tuple(LineMapEntry(n + 3, Span("../large.cu", n + 2, 3, n + 2, 20)) for n in statements)
    port = folder / "out/large.py"
    port.parent.mkdir()
    (folder / "large.cu").write_text(cuda)
    record = PortRecord("large", "../large.cu", sha256_text(cuda), source_text=cuda, line_map=rows)
    write_port(port, text, record)
    return port


def keys(repeat: int) -> list[str]:
    """Scrolling by lines and pages, both ends, the next open region; then the same in the other pane, and so on."""
    round_ = [*["down"] * 4, *["pagedown"] * 2, "up", "pagedown", "pageup", "n", "end", "up", "pageup", "home", "n"]
    return [*round_, "tab"] * 2 * repeat


async def in_process(port: Path, size: tuple[int, int], repeat: int) -> Times:
    """CPU time of each key, without a terminal."""
    app = ReviewApp([port], PortConfig())
    times: Times = {}
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        gc.collect()
        gc.freeze()  # as `porter review` does
        try:
            for key in keys(repeat):
                start = time.process_time()
                await pilot.press(key)
                times.setdefault(key, []).append(1000 * (time.process_time() - start))
        finally:
            gc.unfreeze()
    return times


def in_terminal(port: Path, size: tuple[int, int], repeat: int) -> Times:
    """Wall time from each key to the last byte that it draws."""
    command = [sys.executable, "-m", "porter.cli", "review", str(port)]
    times: Times = {}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Terminal(command, port.parent.parent, size, environment) as terminal:
        terminal.wait_for("Accept")
        while terminal.read(1.0):
            pass
        for key in keys(repeat):
            start = last = time.perf_counter()
            terminal.press(key)
            while terminal.read(QUIET if last > start else 1.0):
                last = time.perf_counter()
            if last > start:  # a key at the end of the file draws nothing
                times.setdefault(key, []).append(1000 * (last - start))
        terminal.press("q")
        if terminal.wait() != 0:
            raise RuntimeError(f"the review ended with {terminal.code}")
    return times


def summary(times: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Median, 90th and 95th percentile and maximum of each key, in ms."""
    return {
        key: {
            "median": round(statistics.median(v), 1),
            "p90": round(percentile(v, 0.9), 1),
            "p95": round(percentile(v, 0.95), 1),
            "max": round(max(v), 1),
        }
        for key, v in times.items()
    }


def percentile(values: Iterable[float], part: float) -> float:
    """The smallest value that is not exceeded by `part` of all."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def measure(sizes: Sequence[tuple[int, int]], repeat: int) -> dict[str, Any]:
    """All of it, as the result file has it."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    cpus = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory(prefix="porter-bench-") as folder:
        port = large_port(Path(folder))
        for size in sizes:
            load, policy = os.getloadavg()[0], POLICIES.get(os.sched_getscheduler(0), "other")
            cpu = summary(asyncio.run(in_process(port, size, repeat)))
            wall = summary(in_terminal(port, size, repeat))
            rows.append({"size": list(size), "load": round(load, 2), "policy": policy, "cpu_ms": cpu, "wall_ms": wall})
    return {
        "schema": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit.stdout.strip(),
        "machine": {"cpu": cpus[0] if cpus else platform.processor(), "cores": os.cpu_count()},
        "versions": {"python": platform.python_version(), "textual": version("textual"), "rich": version("rich")},
        "lines": LINES,
        "repeat": repeat,
        "method": __doc__,
        "rows": rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the keys of porter review.")
    parser.add_argument("--repeat", type=int, default=8)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    result = measure([(120, 40), (80, 24)], args.repeat)
    args.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in result["rows"]:
        print(f"{row['size'][0]}x{row['size'][1]}, load {row['load']}")
        for key, cpu in row["cpu_ms"].items():
            wall = row["wall_ms"].get(key, {})
            print(f"  {key:>9}  CPU {cpu['median']:5.1f} (p95 {cpu['p95']:5.1f})  wall {wall.get('median', 0):5.1f}"
                  f" (p95 {wall.get('p95', 0):5.1f}) ms")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
