"""How long kernels of the corpus take to compile and to load: first calls of a process, and many configurations.

`python -m bench.corpus_compile` writes bench/results/corpus_compile.json. First calls are made in processes that have
imported torch, cutlass and the op, and on a GPU hold its context and the tensors; without a GPU they end before the
launch. The configurations are compiled by `porter.corpus.build` in as many processes as it may use cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from porter.corpus import build
from porter.corpus.runtime.device import Device

OUTPUT = Path(__file__).resolve().parent / "results/corpus_compile.json"
ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"uncached_s": 1.0, "from_cache_s": 0.03, "all_s": 90.0}
FIRST = ("rms_norm", "silu_and_mul", "softmax", "rotary_embedding", "rms_norm_static_fp8_quant", "qk_norm")
TOKENS = (1, 8, 64, 256, 1024, 4096, 16384)
H200 = Device("sm_90a", 132, "NVIDIA H200")
# One op a process, so that each pays for what a process does once; the second call is of another configuration.
_CHILD = """\
import json, sys, time
import torch, cutlass, cutlass.cute, cutlass.cute.runtime
from porter import corpus
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
name, where = sys.argv[1], "cuda" if torch.cuda.is_available() else "meta"
op, work, found = getattr(corpus, name), WORKLOADS[name], []
for dims in (work.dims[0], work.dims[-1]):
    args = work.make(3, torch.bfloat16, where, **dims)
    if where == "cuda":
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter(), time.process_time()
    if where == "cuda":
        op(*args)
        torch.cuda.synchronize()
    else:
        OPS[name].launcher(Device("sm_90a", 132, "NVIDIA H200"), OPS[name].bind(args, {}))
    found.append({"wall_s": round(time.perf_counter() - wall, 4), "cpu_s": round(time.process_time() - cpu, 4)})
print(json.dumps(found))
"""


def calls(names: Sequence[str] = FIRST) -> dict[str, dict[str, list[dict[str, float]]]]:
    """By op: seconds of the first call in a process, and of the first one of another configuration, with an empty cache
    ("uncached"), then in a new process with a full one ("from_cache")."""
    with tempfile.TemporaryDirectory() as cache:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PORTER_CACHE": cache}

        def first(name: str) -> list[dict[str, float]]:
            made = subprocess.check_output([sys.executable, "-c", _CHILD, name], env=env, cwd=ROOT, text=True)
            times: list[dict[str, float]] = json.loads(made.splitlines()[-1])
            return times

        with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) // 4)) as pool:  # most of a process is its imports
            kinds = {kind: dict(zip(names, pool.map(first, names), strict=True)) for kind in ("uncached", "from_cache")}
    found = {name: {kind: kinds[kind][name] for kind in kinds} for name in names}
    for name, each in found.items():
        print(name, *(f"{k} {v[0]['wall_s']:.3f} s, then {v[1]['wall_s']:.3f} s;" for k, v in each.items()), flush=True)
    return found


def configurations(count: int, cores: int) -> dict[str, Any]:
    """Seconds for `count` configurations of all ops in `cores` processes that share as many cores."""
    import porter.corpus.ops  # noqa: F401 (declares them)

    before = os.environ.get("PORTER_CACHE"), os.sched_getaffinity(0)
    kernels = list(dict.fromkeys(build.workload_plans((), TOKENS, H200)))
    kernels = kernels[:: max(1, len(kernels) // count)][:count]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PORTER_CACHE"] = cache
        os.sched_setaffinity(0, sorted(before[1])[:cores])
        try:
            used, start = _children_cpu(), time.perf_counter()
            made, failures = build.build(kernels, H200.arch, cores)
            seconds, cpu = time.perf_counter() - start, _children_cpu() - used
        finally:
            os.sched_setaffinity(0, before[1])
            os.environ.pop("PORTER_CACHE")
            os.environ.update({} if before[0] is None else {"PORTER_CACHE": before[0]})
    assert not failures, failures[0]
    by_kind = {
        kind: sum(type(k).__name__ == kind for k in kernels) for kind in sorted({type(k).__name__ for k in kernels})
    }
    return {"count": made, "cores": cores, "wall_s": round(seconds, 1), "cpu_s": round(cpu, 1), "kernels": by_kind}


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine() -> dict[str, Any]:
    """When, where and with what this ran."""
    import torch

    from bench.corpus_vs_peers import commit, driver, versions

    gpu = torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
        "device": torch.cuda.get_device_name() if gpu else None, "driver": driver() if gpu else None,
        "machine": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
        "versions": versions(),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus_compile", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="configurations to compile (default: %(default)s)")
    parser.add_argument("--cores", type=int, default=2, help="to compile them on (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    method = " ".join((__doc__ or "").split("\n\n")[1].split())
    record = {"schema": 1, **machine(), "method": method, "limits": LIMITS}
    args.output.parent.mkdir(parents=True, exist_ok=True)

    def write() -> None:  # after each part: whoever cuts the run short keeps what there is
        args.output.write_text(json.dumps(record, indent=1) + "\n")

    record["first_calls"] = first = calls()
    kinds = ("uncached", "from_cache")
    most = {f"{kind}_s": max(c["wall_s"] for op in first.values() for c in op[kind]) for kind in kinds}
    record["most"] = most
    write()
    print(
        f"first calls: {most['uncached_s']:.3f} s uncached, {most['from_cache_s']:.4f} s from the cache at most",
        flush=True,
    )
    record["configurations"] = made = configurations(args.count, args.cores)
    write()
    print(
        f"{made['count']} configurations on {made['cores']} cores: {made['wall_s']} s ({made['cpu_s']} s of CPU time)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
