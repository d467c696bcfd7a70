"""Many seeds: `python -m tests.robust.campaign FIRST COUNT` runs them and writes what was found to results.json."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.robust.harness import run, warm
from tests.robust.inputs import KINDS, make

RESULTS = Path(__file__).parent / "results.json"


def campaign(first: int, count: int, output: Path | None = None) -> dict[str, Any]:
    """Run the seeds from `first` on. `faults` has what must not happen, by seed. `output` is written now and then."""
    found: dict[str, Any] = {}
    warm()
    faults: dict[str, list[str]] = {}
    exits: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    most: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    for seed in range(first, first + count):
        given = make(seed)
        outcome = run(given)
        exits[str(outcome.code)] += 1
        codes.update(outcome.codes)
        most[given.kind] = max(most[given.kind], round(outcome.cpu, 1))
        if outcome.faults:
            faults[str(seed)] = [given.kind, " ".join(given.command), *outcome.faults]
            print(seed, *faults[str(seed)], flush=True)
            print("   ", outcome.text[-400:].replace("\n", "\n    "), flush=True)
        found = {
            "first": first, "count": seed + 1 - first, "exit_codes": dict(sorted(exits.items())),
            "codes": dict(sorted(codes.items())), "most_cpu_seconds": most, "faults": faults,
        }  # fmt: skip
        if output is not None and (seed + 1) % 50 == 0:
            output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    output = Path(sys.argv[3]) if len(sys.argv) > 3 else RESULTS
    found = campaign(int(sys.argv[1]), int(sys.argv[2]), output)
    output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(bool(found["faults"]))
