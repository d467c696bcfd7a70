"""What the corpus costs the host: a call, the bare TVM-FFI call, the custom op; compiling; loading from the cache.

`python -m bench.corpus_host` writes bench/results/corpus_host.json; the calls need a GPU, the rest does not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from porter.corpus import build
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device, device_of
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import loaded

OUTPUT = Path(__file__).resolve().parent / "results/corpus_host.json"
CALLED = ("rms_norm", "fused_add_rms_norm", "qk_norm", "rms_norm_static_fp8_quant", "rms_norm_dynamic_per_token_quant")
CALLS, ROUNDS = 300, 15
_CHILD = """
import sys, time
import torch, cutlass, cutlass.cute, cutlass.cute.runtime
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
import porter.corpus.ops
for name, dims in (("rms_norm", 0), ("rms_norm", 1)):
    work = WORKLOADS[name]
    args = work.make(3, torch.bfloat16, "meta", **work.dims[dims])
    start = time.perf_counter()
    OPS[name].launcher(Device("sm_90a", 132), args)
    print(time.perf_counter() - start)
"""


def microseconds(call: Any) -> float:
    """Host time of one call: the fastest round of CALLS, the device idle before each."""
    best = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best.append((time.perf_counter() - start) * 1e6 / CALLS)
    torch.cuda.synchronize()
    return min(best)


def calls() -> dict[str, dict[str, float]]:
    """Microseconds of the corpus function, of the compiled function that it calls, and of torch.ops.porter.NAME."""
    found = {}
    for name in CALLED:
        args = WORKLOADS[name].make(16, torch.bfloat16, "cuda", **WORKLOADS[name].dims[2])
        import porter.corpus

        op, function = OPS[name], getattr(porter.corpus, name)
        device = device_of(args[0])
        plan = op.plan(device, *args)
        assert plan is not None
        kernel, bind = plan
        kept: list[tuple[Any, ...]] = []
        bind(lambda *a, kept=kept: kept.append(a))(*args)
        bare, bare_args, custom = loaded(kernel, device.arch), kept[0], getattr(torch.ops.porter, name)
        sides = {
            "bare": lambda f=bare, a=bare_args: f(*a),
            "corpus": lambda f=function, a=args: f(*a),
            "custom_op": lambda f=custom, a=args: f(*a),
        }
        rounds = [{side: microseconds(call) for side, call in sides.items()} for _ in range(3)]
        found[name] = {side: round(statistics.median(r[side] for r in rounds), 2) for side in sides}
        found[name]["ratio"] = round(found[name]["corpus"] / found[name]["bare"], 3)
    return found


def compiles(count: int, jobs: int) -> dict[str, float]:
    """Seconds of the first call of a configuration in a process with CuTeDSL, of a second one, of both from the cache,
    and of `count` configurations in `jobs` processes."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PORTER_CACHE": cache}
        cold, warm = (
            [float(t) for t in subprocess.check_output([sys.executable, "-c", _CHILD], env=env).split()] for _ in "12"
        )
        before, os.environ["PORTER_CACHE"] = os.environ.get("PORTER_CACHE"), cache
        try:
            device = Device("sm_90a", 132)
            kernels = list(dict.fromkeys(build.workload_plans((), (1, 8, 64, 256, 1024, 4096, 16384), device)))[:count]
            start = time.perf_counter()
            made, failures = build.build(kernels, device.arch, jobs)
            seconds = time.perf_counter() - start
        finally:
            os.environ.pop("PORTER_CACHE")
            os.environ.update({} if before is None else {"PORTER_CACHE": before})
    assert not failures, failures[0]
    return {
        "first_s": round(cold[0], 3), "second_s": round(cold[1], 3), "first_from_cache_s": round(warm[0], 3),
        "from_cache_s": round(warm[1], 4), "configurations": made, "jobs": jobs, "all_s": round(seconds, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus_host", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="configurations to compile (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile them (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    result: dict[str, Any] = {"schema": 1, "compile": compiles(args.count, args.jobs)}
    if torch.cuda.is_available():
        result |= {"device": torch.cuda.get_device_name(), "microseconds": calls()}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
