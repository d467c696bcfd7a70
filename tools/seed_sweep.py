"""True ports under many seeds: `python -m tools.seed_sweep --work DIR [--seeds 50] [--part K/N]`; is one ever refused?

Each reference kernel's port goes through every check that needs no GPU, with inputs, launches and schedules of another
seed each time. What is done is kept in DIR, a line a run, and not done again while the port's text is the same.
`--write` makes bench/results/seeds.json of it. Exit 1 when a run did not pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from porter.files.atomic import write_atomic
from porter.model import Status
from tools.kept_lines import ROOT, KeptRows, commit
from tools.mutation.subjects import FIXTURES, Subject, judge, sources, subjects

RESULT = ROOT / "bench" / "results" / "seeds.json"
GOOD = (Status.PASS, Status.SKIP)


def digest_of(subject: Subject) -> str:
    return hashlib.sha256(subject.text.encode()).hexdigest()[:16]


def run_seed(subject: Subject, seed: int, folder: Path) -> dict[str, Any]:
    """The checks that did not pass of one port under one seed, and the first one's words."""
    start = time.perf_counter()
    verdicts = judge(subject, subject.text, folder, seed)
    bad = [v for v in verdicts if v.status not in GOOD]
    return {
        "key": f"{subject.name}::{subject.request.info.name}/{seed}",
        "digest": digest_of(subject),
        "kernel": subject.name,
        "seed": seed,
        "checks": {v.check: v.status.name for v in verdicts},
        "refused": [f"{v.check}: {v.detail}" for v in bad],
        "seconds": round(time.perf_counter() - start, 2),
        "at": commit(),
    }


def sweep(work: Path, seeds: int, part: int, parts: int, seconds: float) -> int:
    store, until, refused = KeptRows(work / "seeds.jsonl"), time.monotonic() + seconds, 0
    kernels = list(subjects({p.stem for p in sources() if p.parent != FIXTURES}))
    runs = [(s, seed) for seed in range(1, seeds + 1) for s in kernels]
    for subject, seed in runs[part - 1 :: parts]:
        if time.monotonic() > until:
            break
        kept = store.rows.get(f"{subject.name}::{subject.request.info.name}/{seed}")
        if kept is None or kept["digest"] != digest_of(subject):
            kept = run_seed(subject, seed, work / "ports" / str(part))
            store.add(kept)
        if kept["refused"]:
            refused += 1
            print(f"{kept['key']}: {kept['refused']}", flush=True)
    return 1 if refused else 0


def write(work: Path) -> int:
    rows = KeptRows(work / "seeds.jsonl").rows.values()
    kernels = sorted({r["key"].rpartition("/")[0] for r in rows})
    by_kernel = {k: [r for r in rows if r["key"].rpartition("/")[0] == k] for k in kernels}
    found = {
        "schema": 1,
        "backend": "emulator",
        "commits": sorted({r["at"] for r in rows}),
        "runs": len(rows),
        "refused": sum(bool(r["refused"]) for r in rows),
        "kernels": {
            k: {
                "seeds": len(of),
                "refused": {str(r["seed"]): r["refused"] for r in of if r["refused"]},
                "checks": sorted({c for r in of for c, status in r["checks"].items() if status == "PASS"}),
                "seconds": round(sum(r["seconds"] for r in of), 1),
            }
            for k, of in by_kernel.items()
        },
    }
    write_atomic(RESULT, json.dumps(found, indent=1) + "\n")
    print(f"{found['runs']} runs of {len(kernels)} kernels, {found['refused']} refused")
    return 1 if found["refused"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.seed_sweep", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="keeps what is done")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--part", default="1/1", help="K/N: every Nth run, from the Kth")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.write:
        return write(args.work)
    part, _, parts = args.part.partition("/")
    return sweep(args.work, args.seeds, int(part), int(parts), args.seconds)


if __name__ == "__main__":
    sys.exit(main())
