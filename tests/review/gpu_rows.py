"""The recorded verdicts of a kernel on an H200 (bench/results/gpu_verdicts.json), as the review gets them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from porter.model import Verdict
from porter.provenance.json import verdict_from_json
from porter.provenance.record import sha256_text
from porter.provenance.store import update_record

RECORDED = Path(__file__).resolve().parents[2] / "bench/results/gpu_verdicts.json"


@cache
def recorded() -> dict[str, Any]:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def verdicts_of(kernel: str) -> tuple[Verdict, ...]:
    """What the verifier found about a reference port on that GPU."""
    return tuple(verdict_from_json(v) for v in recorded()["kernels"][kernel]["verdicts"])


def with_recorded(port: Path, kernel: str) -> None:
    """Those verdicts in the record of a port."""
    digest = sha256_text(port.read_text())
    update_record(port, lambda r: replace(r, verdicts=verdicts_of(kernel), verified_sha256=digest))
