"""Adds up what the GPU tests found and writes bench/results/corpus_gpu_numerics.json, where the rows of operations
that did not run stay as they are; each row has its commit.

`python -m tests.corpus.record FOLDER [RESULT]` after the tests ran with PORTER_GPU_NUMERICS=FOLDER (see conftest.py).
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[2] / "bench" / "results" / "corpus_gpu_numerics.json"


def added_up(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row an op and dtype, with shares. `rms_over_reference` becomes the largest of any row length."""
    kernels: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        held = kernels.setdefault((row["op"], row["dtype"]), {**row, "cases": 0, "outputs": 0, "unequal": 0})
        for name in ("cases", "outputs", "unequal"):
            held[name] += row[name]
        for name in ("most_units", "most_units_from_float64", "rms_over_reference"):
            held[name] = max((v for v in (held[name], row[name]) if v is not None), default=None)
    found = []
    for _, row in sorted(kernels.items()):
        unequal, outputs = row.pop("unequal"), row["outputs"]
        share = 1 - unequal / outputs if outputs else 1.0
        found.append(row | {"bit_equal": math.floor(share * 1e6) / 1e6})
    return found


def merged(target: Path, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a result, with those found now in place of earlier ones."""
    held = json.loads(target.read_text())["kernels"] if target.is_file() else []
    rows = {(row["op"], row["dtype"]): row for row in (*held, *found)}
    return [row for _, row in sorted(rows.items())]


def environment() -> dict[str, Any]:
    import torch

    here = Path(__file__).parent
    commit = os.environ.get("PORTER_COMMIT") or subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True
    ).stdout.strip()  # fmt: skip
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "emulated"
    versions = {"python": platform.python_version(), "torch": torch.__version__,
                "nvidia-cutlass-dsl": version("nvidia-cutlass-dsl"), "cuda": torch.version.cuda}  # fmt: skip
    return {"device": device, "versions": versions, "date": datetime.now(UTC).date().isoformat(),
            "commit": commit or "unknown"}  # fmt: skip


def main(folder: str, result: str = "") -> None:
    rows = [row for path in sorted(Path(folder).glob("*.json")) for row in json.loads(path.read_text())]
    assert rows, f"there are no results in {folder}"
    where, target = environment(), Path(result) if result else RESULT
    head = json.dumps({"schema": 1, **where}, indent=1)[:-2]
    found = [row | {"commit": where["commit"]} for row in added_up(rows)]
    lines = ",\n  ".join(json.dumps(row) for row in merged(target, found))
    target.write_text(f'{head},\n "kernels": [\n  {lines}\n ]\n}}\n')
    print(f"{target}: {sum(row['cases'] for row in rows)} cases")


if __name__ == "__main__":
    main(*sys.argv[1:])
