"""Public kernels on a GPU, numerics and time: `python -m bench.gpu_public`, with a bundle of `tools.gpu.public`.

The verifier runs every check but the sanitizer on the GPU, against the originals' cubins. Several kernels at a time are
compared, each in a process of its own; then they are timed one after another, alone. Prints a line a kernel; writes
JSON after each. With --again, what an earlier run wrote of the same bundle is kept and only the rest is done.
Exit 1 when a kernel fails or was not run.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.gpu_verdicts import ROOT, compile_all, record_of, recorded, verify
from porter.model import Status
from porter.verify.backends.timing import geomean
from porter.verify.run import CHECKS
from tools.gpu.manifest import Bundle, read_bundle

OUTPUT = ROOT / "bench/results/gpu_public.json"
COMPARED = tuple(c for c in CHECKS if c != "performance")
BAD = ("FAIL", "ERROR")


def child(bundle: Bundle, name: str, checks: tuple[str, ...], seed: int, seconds: float, backend: str) -> None:
    """The verdicts of one kernel as JSON on stdout."""
    from porter.verify.backends.by_name import choose

    verdicts = verify(bundle, bundle.kernel(name), choose(backend), seed, seconds, 2, checks)
    print(json.dumps(recorded(verdicts, bundle.folder)))


def asked(args: argparse.Namespace, name: str, checks: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """The verdicts of one kernel from a process of its own; one ERROR that says how the process ended."""
    command = [sys.executable, "-m", "bench.gpu_public", "--bundle", str(args.bundle), "--child", name]
    command += ["--checks", ",".join(checks), "--seed", str(seed), "--backend", args.backend]
    command += ["--performance-seconds", str(args.performance_seconds)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=args.timeout)
        detail = f"the process ended with {done.returncode}: {done.stderr[-400:]}"
        if done.returncode == 0:
            found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
            return [v for v in found if v["check"] in checks]
    except subprocess.TimeoutExpired:
        detail = f"not done after {args.timeout:g} s"
    return [{"check": c, "status": "ERROR", "detail": detail, "diagnostics": [], "data": {}} for c in checks]


def line(name: str, row: dict[str, Any]) -> str:
    verdicts = {v["check"]: v for v in row["verdicts"]}
    text = f"{name:44.44} " + " ".join(f"{c} {v['status']}" for c, v in verdicts.items() if v["status"] != "PASS")
    ratio = verdicts.get("performance", {}).get("data", {}).get("geomean")
    text += f" | time {ratio:.3f}x" if ratio else ""
    bad = [v for v in row["verdicts"] if v["status"] in BAD]
    return text + "".join(f"\n    {v['check']}: {v['detail'][:300]}" for v in bad)


def totals(found: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """How many pass, how many are bit-equal, and the geometric mean of the times."""
    verdicts = {n: {v["check"]: v for v in found[n]["verdicts"]} for n in names if n in found}
    numerics = [v["numerics"] for v in verdicts.values() if "numerics" in v]
    ratios = [v["performance"]["data"]["geomean"] for v in verdicts.values() if _timed(v)]
    wrong = [n for n, v in verdicts.items() if any(v[c]["status"] in BAD for c in v if c != "performance")]
    return {
        "compared": len(numerics),
        "numerics_passed": sum(v["status"] == "PASS" for v in numerics),
        "bit_equal": sum(v["detail"].startswith("bit-equal") for v in numerics),
        "timed": len(ratios),
        "time_geomean": round(geomean(ratios), 4) if ratios else None,
        "slower": [n for n, v in verdicts.items() if v.get("performance", {}).get("status") in BAD],
        "failed": wrong,
        "not_run": [n for n in names if n not in found or "performance" not in verdicts[n]],
    }


def _timed(verdicts: dict[str, Any]) -> bool:
    return "geomean" in verdicts.get("performance", {}).get("data", {})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_public", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path(os.environ.get("PORTER_GPU_BUNDLE", "build/gpu_public")))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("--backend", default="gpu", help="gpu, gpu:1 or emulator (default gpu)")
    parser.add_argument("--seconds", type=float, default=540.0, help="start nothing more after this long")
    parser.add_argument("--performance-seconds", type=float, default=3.0, help="for the times of one kernel")
    parser.add_argument("--timeout", type=float, default=90.0, help="for one kernel's process")
    parser.add_argument("--processes", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--again", type=Path, default=None, help="keep what this earlier output has")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--checks", default=",".join(CHECKS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.bundle = args.bundle.resolve()
    bundle = read_bundle(args.bundle)
    seed = args.seed if args.seed is not None else secrets.randbelow(1 << 31)
    if args.child:
        checks = tuple(args.checks.split(","))
        child(bundle, args.child, checks, seed, args.performance_seconds, args.backend)
        return 0
    return run(bundle, args, seed)


def run(bundle: Bundle, args: argparse.Namespace, seed: int) -> int:
    from porter.verify.backends.by_name import choose

    start = time.perf_counter()
    backend = choose(args.backend)
    record = record_of(bundle, backend, seed) if hasattr(backend, "facts") else {"device": backend.name, "seed": seed}
    record["bundle"] = bundle.made
    names = [k.name for k in bundle.kernels if not args.kernel or k.name in args.kernel]
    found: dict[str, Any] = {}
    if args.again and args.again.is_file():
        earlier = json.loads(args.again.read_text())
        if earlier.get("bundle") == bundle.made:
            found = {n: row for n, row in earlier["kernels"].items() if n in names}

    def have(name: str, check: str) -> bool:
        return name in found and any(v["check"] == check for v in found[name]["verdicts"])

    def keep(name: str, verdicts: list[dict[str, Any]]) -> None:
        for diagnostic in (d for v in verdicts for d in v["diagnostics"] if d["span"]):
            diagnostic["span"]["file"] = os.path.relpath(diagnostic["span"]["file"], ROOT)
        found.setdefault(name, {"verdicts": []})["verdicts"] += verdicts
        complete = {**record, **totals(found, names), "kernels": dict(sorted(found.items()))}
        args.output.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkstemp(dir=args.output.parent, suffix=".part")[1])
        part.write_text(json.dumps(complete, indent=1) + "\n")
        part.replace(args.output)

    def compare(name: str) -> None:
        if time.perf_counter() - start < args.seconds:
            keep(name, asked(args, name, COMPARED, seed))
            print(line(name, found[name]), flush=True)

    compile_all(bundle, [k for k in bundle.kernels if k.name in names], 2 * args.processes)
    print(f"{len(names)} ports compiled in {time.perf_counter() - start:.1f} s; seed {seed}", flush=True)
    with ThreadPoolExecutor(args.processes) as threads:
        list(threads.map(compare, [n for n in names if not have(n, "numerics")]))
    print(f"{len(found)} kernels compared, {time.perf_counter() - start:.0f} s", flush=True)
    if hasattr(backend, "facts"):
        for name in names:
            if have(name, "performance") or not have(name, "numerics") or time.perf_counter() - start > args.seconds:
                continue
            verdicts = verify(bundle, bundle.kernel(name), backend, seed, args.performance_seconds, 4, ("performance",))
            keep(name, recorded(verdicts, bundle.folder))
            print(line(name, found[name]), flush=True)
    sums = totals(found, names)
    print(json.dumps(sums, indent=1), f"{time.perf_counter() - start:.0f} s", sep="\n")
    complete = not sums["failed"] and not sums["not_run"]
    return 0 if complete and all(v["status"] == Status.PASS.name for v in _numerics(found)) else 1


def _numerics(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [v for row in found.values() for v in row["verdicts"] if v["check"] == "numerics"]


if __name__ == "__main__":
    sys.exit(main())
