"""What a call of a corpus op costs the host, beside the bare TVM-FFI call in it and the custom op: needs a GPU.

`python -m bench.corpus_host` writes bench/results/corpus_host.json. Bare is the compiled function, called with the
tensors and numbers that the op passes on (it launches on torch's current stream). Rounds of the sides take turns, each
from an idle device, in alternating order. Times are medians of rounds; a ratio is the median of each round's own, since
the clock of a shared machine changes between rounds by more than what is measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any

import torch

import porter.corpus.ops
from bench.corpus_vs_peers import commit, driver, versions
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import loaded

OUTPUT = Path(__file__).resolve().parent / "results/corpus_host.json"
LIMIT = 1.2  # times the bare call
TOKENS, CALLS, ROUNDS = 16, 300, 41


def microseconds(call: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Host time of one call in one round of CALLS, the device idle before it."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in repeat(None, CALLS):
        call(*args)
    return (time.perf_counter() - start) * 1e6 / CALLS


def bare(name: str, args: tuple[Any, ...]) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """The compiled function that an op launches for these arguments, and what it is called with."""
    op, device = OPS[name], device_of(next(a for a in args if torch.is_tensor(a)))
    plan = op.plan(device, *args)
    assert plan is not None, f"{name} launches nothing"
    kernel, bind = plan
    kept: list[tuple[Any, ...]] = []
    bind(lambda *a: kept.append(a))(*args)
    return loaded(kernel, device.arch), kept[0]


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Microseconds of the sides of one op, and how many times the bare call the op and the custom op take."""
    args = OPS[name].bind(WORKLOADS[name].make(TOKENS, torch.bfloat16, "cuda", **WORKLOADS[name].dims[-1]), {})
    sides = {
        "bare": bare(name, args),
        "op": (getattr(porter.corpus, name), args),
        "custom_op": (getattr(torch.ops.porter, name), args),
    }
    for call, given in sides.values():
        call(*given)
    gc.disable()
    try:
        times = []
        for n in range(rounds):
            order = list(sides)[:: 1 if n % 2 else -1]
            times.append({side: microseconds(*sides[side]) for side in order})
    finally:
        gc.enable()
    torch.cuda.synchronize()
    us = {side: round(median(t[side] for t in times), 3) for side in sides}
    ratios = {side: round(median(t[side] / t["bare"] for t in times), 3) for side in ("op", "custom_op")}
    return {"us": us, "times_bare": ratios}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus_host", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of 300 calls (default: %(default)s)")
    parser.add_argument("--op", action="append", default=[], help="this op only (repeatable)")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("corpus_host needs a GPU: without one a call launches nothing", file=sys.stderr)
        return 2
    rows = {}
    for name in args.op or WORKLOADS:
        rows[name] = row = measure(name, args.rounds)
        us = " ".join(f"{side} {t:.2f}" for side, t in row["us"].items())
        print(f"{name:36} {us} us, op {row['times_bare']['op']:.3f} x bare", flush=True)
    most = max(row["times_bare"]["op"] for row in rows.values())
    method = " ".join((__doc__ or "").split("\n\n")[1].split())
    record = {
        "schema": 1, "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
        "device": torch.cuda.get_device_name(), "driver": driver(), "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2), "versions": versions(), "method": method,
        "tokens": TOKENS, "calls": CALLS, "rounds": args.rounds, "limit": LIMIT, "most": most, "met": most <= LIMIT,
        "ops": rows,
    }  # fmt: skip
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(record, indent=1) + "\n")
    print(f"at most {most:.3f} times the bare call; the limit is {LIMIT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
