"""Verdicts of the verifier on a GPU for every reference port: `python -m bench.gpu_verdicts`, on the GPU machine.

Every check but the sanitizer runs there, performance too, against
the originals that the bundle holds as cubins. Prints a line a kernel; writes JSON after each. Exit 1 when one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.shapes import SHAPES
from porter.model import Status, Verdict, facts_of
from porter.model.facts import PerformanceFacts
from porter.provenance.json import verdict_to_json
from porter.source import Source
from porter.verify.backends.interface import Backend
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.launches.trials import LAUNCHES
from porter.verify.run import CHECKS, VerifyRequest, verify_port
from tools.gpu.manifest import Bundle, KernelFacts, read_bundle

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench/results/gpu_verdicts.json"
WORDS = {Status.PASS: "pass", Status.FAIL: "FAIL", Status.SKIP: "skip", Status.ERROR: "ERROR"}


def compile_all(bundle: Bundle, kernels: list[KernelFacts], jobs: int) -> None:
    """Fill the compile cache, several ports at a time: what the verifier then asks for is there."""

    def make(kernel: KernelFacts) -> None:
        requests = [CompileRequest(i.values, bundle.arch) for i in kernel.instances]
        compile_port(bundle.folder / kernel.port, requests, jobs=1)

    with ThreadPoolExecutor(jobs) as threads:
        list(threads.map(make, kernels))


def verify(
    bundle: Bundle,
    kernel: KernelFacts,
    backend: Backend,
    seed: int,
    seconds: float,
    jobs: int,
    checks: tuple[str, ...] = CHECKS,
) -> list[Verdict]:
    """The verdicts of one port. With `performance` alone, two launches an instance are compared before it is timed."""
    case = bundle.case(kernel)
    source = next((ROOT / "reference_kernels").rglob(f"{kernel.name}.cu"), bundle.folder / case.source)
    request = VerifyRequest(
        port_path=bundle.folder / kernel.port,
        source=Source.read(source) if source.is_file() else Source(source, ""),
        info=kernel.info(0),
        case=case,
        arches=(bundle.arch,),
        seed=seed,
        jobs=jobs,
        backend=backend,
        originals=bundle.originals(kernel),
        timing_sizes=SHAPES.get(kernel.name, []),
        timing_budget=seconds,
        checks=checks,
        launches=2 if checks == ("performance",) else LAUNCHES,
    )
    return verify_port(request)


def recorded(verdicts: Sequence[Verdict], bundle: Path) -> list[dict[str, Any]]:
    """Verdicts as records keep them: the files they name are below the bundle or the repository, wherever those lay."""
    rows: list[dict[str, Any]] = without_folders([verdict_to_json(v) for v in verdicts], bundle, ROOT)
    return rows


def without_folders(value: Any, *folders: Path) -> Any:
    """JSON data with paths in its strings relative to these folders."""
    if isinstance(value, dict):
        return {k: without_folders(v, *folders) for k, v in value.items()}
    if isinstance(value, list):
        return [without_folders(v, *folders) for v in value]
    if isinstance(value, str):
        for folder in sorted((str(f).rstrip("/") for f in folders), key=len, reverse=True):
            value = re.sub(rf"(?<![\w./~-]){re.escape(folder)}/", "", value) if folder else value
    return value


def summary(name: str, verdicts: list[Verdict], seconds: float) -> str:
    found = {v.check: v for v in verdicts}
    line = f"{name:28.28}" + " ".join(f"{c} {WORDS[v.status]}" for c, v in found.items() if v.status is not Status.PASS)
    times = facts_of(verdicts, PerformanceFacts)
    if times is not None and times.geomean is not None and times.worst is not None:
        line += f" | time {times.geomean:.3f}x, worst {times.worst:.3f}x"
    bad = [v for v in verdicts if v.status in (Status.FAIL, Status.ERROR)]
    return f"{line} | {seconds:.1f} s" + "".join(f"\n    {v.check}: {v.detail}" for v in bad)


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def commit() -> str:
    """The commit that is run; PORTER_COMMIT names it where the files are a copy without their history."""
    if named := os.environ.get("PORTER_COMMIT"):
        return named
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def record_of(bundle: Bundle, backend: Any, seed: int) -> dict[str, Any]:
    facts = backend.facts
    return {
        "schema": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": bundle.commit,
        "seed": seed,
        "device": facts.name,
        "driver": facts.driver,
        "sm_count": facts.sm_count,
        "l2_bytes": facts.l2_bytes,
        "versions": {
            "python": sys.version.split()[0],
            "dsl": installed("nvidia-cutlass-dsl"),
            "cuda-bindings": installed("cuda-bindings"),
            "original": f"nvrtc {bundle.versions['nvrtc']}",
        },
        "method": "graph_cold decides; see porter/verify/backends/timing.py and porter/codes/PRT870.md",
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_verdicts", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path(os.environ.get("PORTER_GPU_BUNDLE", "build/gpu")))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--backend", default="gpu", help="gpu, gpu:1 or emulator (default gpu)")
    parser.add_argument("--seconds", type=float, default=420.0, help="start no further kernel after this long")
    parser.add_argument("--performance-seconds", type=float, default=30.0, help="for the times of one kernel")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    args = parser.parse_args()
    from porter.verify.backends.by_name import choose

    start = time.perf_counter()
    bundle = read_bundle(args.bundle.resolve())
    backend = choose(args.backend)
    seed = args.seed if args.seed is not None else secrets.randbelow(1 << 31)
    kernels = [k for k in bundle.kernels if not args.kernel or k.name in args.kernel]
    compile_all(bundle, kernels, args.jobs)
    print(f"{len(kernels)} ports compiled in {time.perf_counter() - start:.1f} s; seed {seed}", flush=True)
    found: dict[str, Any] = {}
    skipped: list[str] = []
    failed = 0
    record = record_of(bundle, backend, seed) if hasattr(backend, "facts") else {"device": backend.name}
    for kernel in kernels:
        if time.perf_counter() - start > args.seconds:
            skipped.append(f"{kernel.name}: out of time")
            continue
        began = time.perf_counter()
        try:
            verdicts = verify(bundle, kernel, backend, seed, args.performance_seconds, args.jobs)
        except Exception as error:  # one kernel's accident is not the end of the others
            skipped.append(f"{kernel.name}: {type(error).__name__}: {error}"[:500])
            print(skipped[-1], flush=True)
            continue
        seconds = time.perf_counter() - began
        failed += any(v.status in (Status.FAIL, Status.ERROR) for v in verdicts)
        found[kernel.name] = {"seconds": round(seconds, 1), "verdicts": recorded(verdicts, bundle.folder)}
        print(summary(kernel.name, verdicts, seconds), flush=True)
        args.output.parent.mkdir(parents=True, exist_ok=True)
        complete = {**record, "passed": len(found) - failed, "not_run": skipped, "kernels": found}
        args.output.write_text(json.dumps(complete, indent=1) + "\n")
    print(f"{len(found) - failed} of {len(kernels)} pass, {len(skipped)} not run, {time.perf_counter() - start:.0f} s")
    return int(bool(failed or skipped))


if __name__ == "__main__":
    sys.exit(main())
