"""Random edits of every reference kernel's port through the verifier: is each refused, or does it change nothing?

    python -m tools.edit_sweep --work DIR [--only KERNEL ...] [--each 84] [--seconds S]
    python -m tools.edit_sweep --work DIR --settle    # again what passed: the same launch, the same machine code?
    python -m tools.edit_sweep --work DIR --write     # bench/results/random_edits.json and docs/verify.md

An edit is *killed* where a check does not pass, and *equivalent* where every instance has the same PTX, or machine code,
or where the same launches follow. The rest is explained in tools/mutation/explained.py, or open. What is done is kept in
DIR, a line an edit, and not done again as long as port and seed are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import struct
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from porter.case.instances import instance_values
from porter.model import Status
from porter.verify.compile.worker import CompileRequest, CompileResult, compile_port
from tools.kept_lines import KeptRows, commit
from tools.mutation.random_edits import RandomEdit, random_edits
from tools.mutation.subjects import FIXTURES, Subject, judge, sources, subjects

EACH = 84  # edits a kernel: 2,100 of the 25 reference kernels
FEW_LAUNCHES = 6  # an instance: most edits show at once
ARCH = "sm_90a"
GOOD = (Status.PASS, Status.SKIP)
SAME_PTX = "every instance has the same PTX"
SAME_CODE = "every instance has the same machine code"


def kernels() -> list[str]:
    return [p.stem for p in sources() if p.parent != FIXTURES]


@cache
def subject_of(kernel: str) -> Subject:
    """The first kernel of a file."""
    return next(iter(subjects({kernel})))


def edits_of(kernel: str, each: int) -> list[RandomEdit]:
    return random_edits(subject_of(kernel).text, kernel, each)


def key_of(kernel: str, edit: RandomEdit) -> str:
    return f"{kernel}/{edit.number}"


def seed_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)


def run_edit(kernel: str, edit: RandomEdit, folder: Path) -> dict[str, Any]:
    """What came of one edit."""
    subject, start = subject_of(kernel), time.perf_counter()
    seed = seed_of(key_of(kernel, edit))
    row = {
        "key": key_of(kernel, edit), "digest": edit.digest, "kernel": kernel, "kind": edit.kind, "line": edit.line,
        "before": edit.before[:300], "after": edit.after[:300], "seed": seed, "by": [], "whole": False, "detail": "",
    }  # fmt: skip
    few = (0,)
    if edit.region == "device" and same_ptx(subject, edit.text, folder, few) and same_ptx(subject, edit.text, folder):
        row |= {"outcome": "equivalent", "detail": SAME_PTX}
    else:
        verdicts = judge(subject, edit.text, folder, seed, only=few, launches=FEW_LAUNCHES, explain=False)
        if all(v.status in GOOD for v in verdicts):
            row["whole"] = True
            if edit.region == "device" and same_code(subject, edit.text, folder):
                seconds = round(time.perf_counter() - start, 2)
                return row | {"outcome": "equivalent", "detail": SAME_CODE, "seconds": seconds}
            verdicts = judge(subject, edit.text, folder, seed, explain=False)
        bad = [v for v in verdicts if v.status not in GOOD]
        row["by"] = [v.check if v.status is Status.FAIL else f"{v.check} ({v.status.value})" for v in bad]
        row["detail"] = bad[0].detail[:300] if bad else ""
        row["outcome"] = "killed" if bad else "passed"
    return row | {"seconds": round(time.perf_counter() - start, 2)}


def compiled(subject: Subject, text: str, folder: Path, only: tuple[int, ...] = ()) -> list[CompileResult]:
    """The instances of a port with this text, all of them or some."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{subject.name}.py"
    path.write_text(text, encoding="utf-8")
    values = [dict(instance_values(subject.request.info, i.instance)) for i in subject.case.instances]
    wanted = [values[n] for n in only or range(len(values))]
    return compile_port(path, [CompileRequest(v, ARCH) for v in wanted], jobs=1)


@cache
def true_code(kernel: str, only: tuple[int, ...], folder: Path) -> list[CompileResult]:
    return compiled(subject_of(kernel), subject_of(kernel).text, folder, only)


def same_ptx(subject: Subject, text: str, folder: Path, only: tuple[int, ...] = ()) -> bool:
    true = true_code(subject.name, only, folder.parent / "true")
    made = compiled(subject, text, folder, only)
    return all(m.ok and t.ok and plain(m.ptx) == plain(t.ptx) for m, t in zip(made, true, strict=True))


def same_code(subject: Subject, text: str, folder: Path) -> bool:
    true, made = true_code(subject.name, (), folder.parent / "true"), compiled(subject, text, folder)
    return all(m.ok and t.ok and instructions(m.cubin) == instructions(t.cubin) for m, t in zip(made, true, strict=True))


def instructions(cubin: bytes) -> list[tuple[str, bytes]]:
    """What of an ELF file a GPU runs: code, constants, shared memory, and what the driver is told of them."""
    start, entry, count, names = struct.unpack_from("<Q", cubin, 0x28)[0], *struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * entry) for i in range(count)]
    strings = cubin[heads[names][4] :]
    found = []
    for name, kind, _, _, offset, size in heads:
        text = strings[name : strings.index(b"\0", name)].decode()
        if text.startswith((".text", ".nv.constant", ".nv.shared", ".nv.info", ".nv.global")):
            found.append((text.split(".porter")[0], b"" if kind == 8 else cubin[offset : offset + size]))
    return [*found, ("size", str([h[5] for h in heads if h[1] == 8]).encode())]


def plain(ptx: str) -> str:
    """PTX without what names lines of the source."""
    kept = [line for line in ptx.splitlines() if not re.match(r"\s*(\.loc|\.file|//)", line)]
    return re.split(r"^\s*\.section\s+\.debug", "\n".join(kept), maxsplit=1, flags=re.MULTILINE)[0].rstrip()


def sweep(args: argparse.Namespace) -> int:
    store = KeptRows(args.work / "edits.jsonl")
    until, at = time.monotonic() + args.seconds, commit()
    made = {kernel: edits_of(kernel, args.each) for kernel in args.only or kernels()}
    # turn by turn, so that a sweep that is stopped has something of every kernel
    for turn in range(args.each):
        for kernel, edits in made.items():
            if turn >= len(edits) or time.monotonic() > until:
                continue
            edit = edits[turn]
            row = store.rows.get(key_of(kernel, edit))
            if row is None or row["digest"] != edit.digest:
                row = run_edit(kernel, edit, args.work / "ports" / kernel) | {"at": at}
                store.add(row)
                if row["outcome"] == "passed":
                    print(f"{row['key']} {row['kind']}: PASSED\n  - {row['before']}\n  + {row['after']}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL")
    parser.add_argument("--each", type=int, default=EACH, help="edits a kernel")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    args = parser.parse_args()
    return sweep(args)


if __name__ == "__main__":
    sys.exit(main())
