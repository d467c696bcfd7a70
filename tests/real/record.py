"""results.json: what the last run over public sources found, kernel by kernel."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from filelock import FileLock

from porter.files.atomic import write_atomic
from porter.model import KernelReport

RESULTS = Path(__file__).parent / "results.json"
PACKAGES = ("nvidia-cutlass-dsl", "libclang-ng", "nvidia-cuda-nvrtc", "numpy")


def recording() -> bool:
    return bool(os.environ.get("PORTER_REAL_RECORD"))


def commit(folder: Path) -> str:
    """The commit that a checkout is at; "" where the folder is no checkout of its own."""
    done = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"], capture_output=True, text=True, check=False
    )
    lines = done.stdout.split()
    return lines[1] if len(lines) == 2 and Path(lines[0]).resolve() == folder.resolve() else ""


def version_of(repository: str, folder: Path) -> str:
    """A commit, or the version that a source distribution or wheel says it has."""
    found = commit(folder)
    if found:
        return found
    for info in (*folder.glob("PKG-INFO"), *folder.glob("*.dist-info/METADATA"), *folder.glob("VERSION")):
        text = info.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            if line.startswith("Version: "):
                return line.removeprefix("Version: ").strip()
    return os.environ.get(f"PORTER_REAL_{repository.upper()}_VERSION", "unknown")


def record(
    name: str, case: dict[str, Any], report: KernelReport | None, seconds: float, line: str, sources: Path
) -> None:
    """Keep one kernel's result; `report` is None when its file could not be ported at all."""
    repository = case["source"].split("/")[0]
    row: dict[str, Any] = {
        "kernel": case["kernel"],
        "source": case["source"],
        "version": version_of(repository, sources / repository),
        "instances": [str(i) for i in report.instances] if report else [],
        "holes": [f"{h.code} {h.reason}" for h in report.holes] if report else [],
        "verdicts": {v.check: v.status.name for v in report.verdicts} if report else {},
        "summary": line if len(line) <= 300 else line[:297] + "...",
        "seconds": round(seconds, 1),
        "date": datetime.date.today().isoformat(),
        "porter": commit(Path(__file__).resolve().parents[2])[:12],
    }
    with FileLock(Path(tempfile.gettempdir()) / "porter-real-results.lock"):
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
        known["packages"] = {p: _version(p) for p in PACKAGES}
        known.setdefault("kernels", {})[name] = row
        known["kernels"] = dict(sorted(known["kernels"].items()))
        verified = sum(r["summary"] == "PASS" for r in known["kernels"].values())
        known["verified"] = verified
        known["of"] = len(known["kernels"])
        order = ("verified", "of", "packages", "kernels")
        write_atomic(RESULTS, json.dumps({k: known[k] for k in order}, indent=1) + "\n")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
