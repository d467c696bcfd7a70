"""Correct kernels under many schedules: `python -m tools.false_reports` runs every reference kernel and its port.

Each is verified as usual; small launches of several blocks or warps run under more schedules on copies of their
buffers. Writes bench/results/no_false_reports.json after each kernel and goes on there when started again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from porter.case.reader import LaunchShape, load_case
from porter.files.atomic import write_atomic
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import ORDINARY, Argument, Build, RunOptions, RunResult
from porter.verify.launches.buffers import HostBuffer
from porter.verify.run import VerifyRequest, verify_port
from tests.emit.test_ports import ALL as NAMES
from tests.emit.test_ports import ROOT as KERNELS
from tests.emit.test_ports import port
from tools.kept_lines import commit

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/no_false_reports.json"
SCHEDULES = 20
LAUNCHES = 3  # of each instance, of one block and of several, original and port, that run under all schedules
SMALL = 2_000_000  # thread-instructions of such a launch, at most


class ManySchedules(EmulatorBackend):
    """Runs small checked launches under more schedules, on copies; what any of them reports is reported."""

    def __init__(self, schedules: int, seed: int, launches: int = LAUNCHES, small: int = SMALL):
        super().__init__()
        self.many, self.seed, self.most, self.small = schedules, seed, launches, small
        # Launches that ran under all schedules, by (original or port, entry, has several blocks).
        self.repeated: Counter[tuple[str, str, bool]] = Counter()
        self.launches = self.instructions = 0

    def run(
        self, build: Build, shape: LaunchShape, arguments: Sequence[Argument], options: RunOptions = ORDINARY
    ) -> RunResult:
        several = max(shape.grid) > 1
        key = build.label, build.entry, several
        shows = several or math.prod(shape.block) > 32
        wanted = options.checks and shows and self.many > 0 and self.repeated[key] < self.most
        before = [a.copy() if isinstance(a, HostBuffer) else a for a in arguments] if wanted else []
        held = {n: b.copy() for n, b in options.variables.items()} if wanted else {}
        result = super().run(build, shape, arguments, options)
        self.instructions += result.instructions
        if not wanted or result.instructions > self.small or result.error:
            return result
        self.repeated[key] += 1
        found = {(v.kind, v.ptx_line): v for v in result.violations}
        for seed in range(1, self.many + 1):
            copies = [a.copy() if isinstance(a, HostBuffer) else a for a in before]
            others = {n: b.copy() for n, b in held.items()}
            shuffled = replace(options, schedule=self.seed * 1000 + seed, variables=others)
            again = super().run(build, shape, copies, shuffled)
            found |= {(v.kind, v.ptx_line): v for v in again.violations}
            self.launches += 1
            self.instructions += again.instructions
            if again.error:
                return again
        return replace(result, violations=tuple(found.values()))


def measure(name: str, schedules: int, seed: int, launches: int = LAUNCHES, usual: int = 8) -> dict[str, Any]:
    """Verify a reference kernel; the sanitizer's verdict, what it reported, and how much ran under `schedules`.

    `usual` is the number of launches an instance that verification chooses from.
    """
    start = time.perf_counter()
    module, info, instances, source = port(name)
    case = load_case((KERNELS / f"{name}.cu").with_suffix(".case.toml"))
    backend = ManySchedules(schedules, seed, launches)
    with tempfile.TemporaryDirectory(prefix="porter-reports-") as folder:
        file = Path(folder) / f"{name.split('/')[-1]}.py"
        file.write_text(module.text)
        request = VerifyRequest(
            file, source, info, case, seed=seed, launches=usual, budget=3600.0, backend=backend,
            checks=("compile", "numerics", "sanitizer"),
        )  # fmt: skip
        verdicts = {v.check: v for v in verify_port(request)}
    sides = Counter(side for side, _ in {(side, entry) for side, entry, _ in backend.repeated})
    return {
        "kernel": name,
        "instances": len(instances),
        "instances_repeated": {side: sides[side] for side in ("original", "port")},
        "schedules": schedules,
        "launches": backend.launches,
        "of_several_blocks": schedules * sum(n for (_, _, several), n in backend.repeated.items() if several),
        "thread_instructions": backend.instructions,
        "verdicts": {c: v.status.name for c, v in verdicts.items()},
        "reports": [str(d) for d in verdicts["sanitizer"].diagnostics],
        "detail": verdicts["sanitizer"].detail,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 1),
    }


def sweep(names: Sequence[str], again: bool, seed: int) -> list[dict[str, Any]]:
    """Measure the kernels that the record does not hold, each in a process of its own; the record after each."""
    kept: dict[str, dict[str, Any]] = {}
    if RESULT.is_file() and not again:
        kept = {k["kernel"]: k for k in json.loads(RESULT.read_text())["kernels"]}
    for name in names:
        if name in kept and kept[name]["verdicts"].get("sanitizer") == "PASS":
            continue
        command = [sys.executable, "-m", "tools.false_reports", "--one", name, "--seed", str(seed)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {done.stderr[-2000:]}", file=sys.stderr, flush=True)
            continue
        kept[name] = json.loads(done.stdout) | {"date": datetime.date.today().isoformat(), "commit": commit()}
        print(f"{name}: {kept[name]['verdicts']} {kept[name]['seconds']} s", file=sys.stderr, flush=True)
        write_atomic(RESULT, json.dumps({"schema": 1, "kernels": [kept[n] for n in sorted(kept)]}, indent=1) + "\n")
    return [kept[n] for n in sorted(kept)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.false_reports", description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--again", action="store_true", help="measure anew what the record holds")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, SCHEDULES, args.seed)))
        return 0
    found = sweep([n for n in NAMES if args.only in n], args.again, args.seed)
    bad = [k["kernel"] for k in found if k["reports"] or k["verdicts"]["sanitizer"] != "PASS"]
    print(
        f"{len(found)} of {len(NAMES)} kernels, {sum(k['launches'] for k in found)} launches; reports: {bad or 'none'}"
    )
    return 1 if bad or len(found) < len(NAMES) else 0


if __name__ == "__main__":
    sys.exit(main())
