"""One scale for all numbers: one launch with a grid barrier against two launches, each as quick as any choice makes it.

`python -m bench.one_or_two_launches` needs a GPU and writes bench/results/one_or_two_launches.json: microseconds of
`dynamic_scaled_fp8_quant` in a CUDA graph over inputs of twice the L2 cache, the choices taking turns, medians (as the
tuner times them). "one block" needs no barrier.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from bench.corpus_vs_peers import commit, driver, versions
from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import OPS
from porter.corpus.tune import Case, kernels_of, time_choices

OUTPUT = Path(__file__).resolve().parent / "results/one_or_two_launches.json"
NAME = "dynamic_scaled_fp8_quant"
SHAPES = tuple((t, h) for h in (4096, 7168) for t in (1, 16, 128, 512, 1024, 2048, 8192))
ROUNDS = 9


def kind(choice: Any) -> str:
    """What a choice is counted as."""
    if choice["launches"] == 2:
        return "two launches"
    return "one block" if choice["most"] == 1 else "one launch"


def main() -> int:
    device, rows = device_of(torch.empty(0, device="cuda")), []
    for tokens, hidden in SHAPES:
        case = Case(NAME, (("hidden", hidden),), tokens, "bf16")
        choices = list(kernels_of(case, device).values())
        times = time_choices(OPS[NAME], case, device, choices, ROUNDS)
        best: dict[str, Any] = {}
        for choice, us in sorted(zip(choices, times, strict=True), key=lambda found: found[1]):
            best.setdefault(kind(choice), {"us": round(us, 3), "choice": dict(choice)})
        row = {"tokens": tokens, "hidden": hidden, "rule": kind(choices[0]), "best": best}
        rows.append(row)
        print(row, flush=True)
    record = {
        "schema": 1, "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
        "device": torch.cuda.get_device_name(), "driver": driver(), "versions": versions(),
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()), "rows": rows,
    }  # fmt: skip
    OUTPUT.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
