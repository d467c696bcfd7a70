"""Mutants of every reference kernel's port through the verifier, and the true ports over many seeds.

    python -m tools.mutant_sweep --work DIR [--only KERNEL ...] [--class NAME ...] [--limit N]
    python -m tools.mutant_sweep --work DIR --true-seeds 50
    python -m tools.mutant_sweep --work DIR --write     # bench/results/mutants.json and docs/verifier.md

What is done is kept in DIR, a line a verdict, and not done again as long as port and seed are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from porter.model import Status
from tools.kept_lines import KeptRows
from tools.mutation.subjects import FIXTURES, Mutant, Subject, failing, fewer_instances, judge, mutants, subjects

FEW_LAUNCHES = 6  # an instance, of which there are two then: most mutants show at once
EXPECTED = (Status.PASS, Status.SKIP)


def seed_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)


def run_mutant(mutant: Mutant, folder: Path) -> dict[str, Any]:
    start = time.perf_counter()
    seed = seed_of(mutant.key)
    subject = mutant.subject
    verdicts = judge(subject, mutant.text, folder, seed, only=fewer_instances(subject.case), launches=FEW_LAUNCHES)
    whole = not set(failing(verdicts)) & set(mutant.kind.checks)
    if whole:  # what few launches do not show, a whole verification has to
        verdicts = judge(subject, mutant.text, folder, seed)
    killed = failing(verdicts)
    first = next((v.detail for v in verdicts if v.status is Status.FAIL), "")
    errors = [f"{v.check}: {v.detail}" for v in verdicts if v.status is Status.ERROR]
    return {
        "key": mutant.key, "digest": mutant.digest, "kernel": mutant.subject.name, "class": mutant.kind.name,
        "line": mutant.line, "before": mutant.before, "after": mutant.after, "seed": seed,
        "whole": whole, "killed_by": killed,
        "meant": bool(set(killed) & set(mutant.kind.checks)), "detail": first[:300], "errors": errors,
        "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def sweep(args: argparse.Namespace) -> int:
    store = KeptRows(args.work / "mutants.jsonl")
    survivors = 0
    done = 0
    for subject in subjects(set(args.only) or None):
        for mutant in mutants(subject, set(args.kind) or None):
            row = store.rows.get(mutant.key)
            if row is None or row["digest"] != mutant.digest or (args.again and not row["meant"]):
                row = run_mutant(mutant, args.work / "ports" / mutant.key)
                store.add(row)
                done += 1
                state = ",".join(row["killed_by"]) or "SURVIVED"
                note = "" if row["meant"] else "  <-- not by " + " or ".join(mutant.kind.checks)
                print(f"{mutant.key}: {state} {row['seconds']} s{note}", flush=True)
                if note:
                    print(
                        f"    - {row['before']}\n    + {row['after']}\n    {row['detail']} {row['errors']}", flush=True
                    )
            survivors += not row["meant"]
            if args.limit and done >= args.limit:
                return 0
    return int(survivors > 0)


def true_ports(args: argparse.Namespace) -> int:
    store = KeptRows(args.work / "true.jsonl")
    rejected = 0
    for number in range(args.true_seeds):
        for subject in _all(args):
            key = f"{subject.name}/{number}"
            digest = hashlib.sha256(subject.text.encode()).hexdigest()[:16]
            row = store.rows.get(key)
            if row is None or row["digest"] != digest or (args.again and row["rejected_by"]):
                seed = seed_of(f"true {key}")
                start = time.perf_counter()
                verdicts = judge(subject, subject.text, args.work / "true" / subject.name, seed)
                wrong = [f"{v.check} {v.status.value}: {v.detail}" for v in verdicts if v.status not in EXPECTED]
                row = {"key": key, "digest": digest, "kernel": subject.name, "seed": seed, "rejected_by": wrong,
                       "seconds": round(time.perf_counter() - start, 2)}  # fmt: skip
                store.add(row)
                if wrong:
                    print(f"{key} seed {seed} REJECTED: {wrong}", flush=True)
            rejected += bool(row["rejected_by"])
        print(f"seed {number}: {rejected} rejected so far", flush=True)
    return int(rejected > 0)


_made: list[Subject] = []


def _all(args: argparse.Namespace) -> list[Subject]:
    if not _made:
        _made.extend(subjects(set(args.only) or None))
    return _made


def result(work: Path) -> dict[str, Any]:
    """Everything that is known, for the committed file; rows of ports that have changed since are left out."""
    kept, true = KeptRows(work / "mutants.jsonl").rows, KeptRows(work / "true.jsonl").rows
    rows = []
    texts: dict[str, str] = {}
    for subject in subjects():
        texts[subject.name] = hashlib.sha256(subject.text.encode()).hexdigest()[:16]
        for mutant in mutants(subject):
            row = kept.get(mutant.key)
            if row is not None and row["digest"] == mutant.digest:
                row["meant"] = bool(set(row["killed_by"]) & set(mutant.kind.checks))
                rows.append({k: v for k, v in row.items() if k not in ("key", "digest", "seconds", "errors")})
    runs = [r for r in true.values() if r["digest"] == texts.get(r["kernel"])]
    fixtures = sorted(p.stem for p in FIXTURES.glob("*.cu"))
    by_kernel: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        by_kernel.setdefault(run["kernel"], []).append(run)
    return {
        "schema": 1,
        "backend": "emulator",
        "fixtures": fixtures,
        "mutants": rows,
        "true_ports": {
            k: {"seeds": len(v), "rejected": [[r["seed"], r["rejected_by"]] for r in v if r["rejected_by"]]}
            for k, v in sorted(by_kernel.items())
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL")
    parser.add_argument("--class", dest="kind", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="run again what went wrong before")
    parser.add_argument("--true-seeds", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.write:
        from tools.mutation.table import RESULT, write_table

        found = result(args.work)
        RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_table(found)
        return 0
    return true_ports(args) if args.true_seeds else sweep(args)


if __name__ == "__main__":
    sys.exit(main())
