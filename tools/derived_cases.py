"""How many kernels of public files are proved with nothing but their sources: bench/results/derived_cases.json.

`python -m tools.derived_cases SOURCES` runs `porter port` over the files of docs/coverage.md below SOURCES (laid out as
tools/real_sources.py says) with the flags of the projects' own builds and no case. A line a file is kept, so that a run
which was stopped goes on. `--derive-only` stops before the port: it says what is open in each case.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from porter.files.atomic import write_atomic
from tools.coverage_table import DEFINES, FILES
from tools.kept_lines import KeptRows, commit

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench" / "results" / "derived_cases.json"
FILE_SECONDS = 3600
PROVED = ("agrees", "verified")


def derived_only(path: Path, defines: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows {kernel, open, assumptions, seconds} of a file, in this process."""
    from porter.config import PortConfig
    from porter.model import PorterError
    from porter.pipeline.derived_cases import derive_case
    from porter.pipeline.inputs import parse

    config = PortConfig(define=defines)
    unit = parse(path, config)
    rows = []
    for info in unit.kernels:
        start = time.process_time()
        row: dict[str, Any] = {"kernel": info.name, "line": info.span.line}
        try:
            made = derive_case(unit, info, Path(tempfile.gettempdir()) / f"{path.stem}.{info.name}.case.toml")
            row |= {"open": made.open, "assumptions": list(made.assumptions)}
        except PorterError as error:
            row["error"] = str(error)[:300]
        except Exception as error:
            row["error"] = f"internal error: {type(error).__name__}: {error}"[:300]
        rows.append({**row, "seconds": round(time.process_time() - start, 2)})
    return rows


def ported(path: Path, defines: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows {kernel, state, code, message, seconds} of a file, by `porter port` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "porter", "port", str(path), "-o", folder, "--output-format", "json"]
        command += ["--arch", "sm_90a", "--jobs", "1", "--seed", "1", *(f"-D{d}" for d in defines)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FILE_SECONDS, cwd=ROOT)
    try:
        kernels = json.loads(done.stdout)["kernels"]
    except (ValueError, KeyError):
        return [{"kernel": "", "state": "not-ported", "message": done.stderr[-300:]}]
    return [_row(k) for k in kernels]


def _row(kernel: dict[str, Any]) -> dict[str, Any]:
    seconds = round(kernel["seconds"].get("total", 0.0), 1)
    row = {"kernel": kernel["kernel"], "state": kernel["state"], "seconds": seconds}
    if kernel["state"] in PROVED:
        return row
    bad = next((v for v in kernel["verdicts"] if v["status"] in ("FAIL", "ERROR")), None)
    if bad:
        found = bad["diagnostics"][0] if bad["diagnostics"] else {"code": "", "message": bad["detail"]}
        return {**row, "check": bad["check"], "code": found["code"], "message": found["message"][:300]}
    said = [d for d in kernel["diagnostics"] if d["code"] not in ("PRT914",)]
    if said:
        open_ = next((n for n in said[0].get("notes", []) if n.startswith("open: ")), said[0]["message"])
        row |= {"code": said[0]["code"], "message": open_[:300]}
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    proved = sum(r.get("state") in PROVED for r in rows)
    stopped = Counter(f"{r.get('check', '')} {r.get('code', '')}".strip() for r in rows if r.get("state") not in PROVED)
    return {"kernels": len(rows), "proved": proved, "share": round(proved / max(1, len(rows)), 3),
            "stopped_by": dict(stopped.most_common())}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--files", default="", help="only files whose path matches this expression")
    parser.add_argument("--part", default="1/1", help="K/N: only every N-th file, from the K-th on")
    parser.add_argument("--derive-only", action="store_true")
    args = parser.parse_args()
    kept = KeptRows(args.output.with_suffix(".lines"))
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    first, step = map(int, args.part.split("/"))
    every = [(project, f"{project}/{name}") for project, names in FILES.items() for name in names]
    for project, key in every[first - 1 :: step]:
        if key in kept.rows or (args.files and not re.search(args.files, key)):
            continue
        work = derived_only if args.derive_only else ported
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                rows = work(args.sources / key, DEFINES.get(project, ()))
        except Exception as error:
            rows = [{"kernel": "", "state": "not-ported", "message": f"{type(error).__name__}: {error}"[:300]}]
        kept.add({"key": key, "rows": rows})
        states = Counter(r.get("state") or r.get("open") or r.get("error") or "derived" for r in rows)
        print(key, dict(states), flush=True)
    rows = [{"file": f, **r} for f, found in kept.rows.items() for r in found["rows"]]
    made = {"date": datetime.date.today().isoformat(), "commit": commit(), **summary(rows), "rows": rows}
    write_atomic(args.output, json.dumps(made, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
