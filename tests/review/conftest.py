"""Ports for the review, emitted once and not verified: their records are filled by the tests that need verdicts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from porter.model import Diagnostic, Severity, Status, Verdict
from porter.model.facts import (
    CountedLaunch,
    FirstDivergence,
    NumericsFacts,
    OutputErrors,
    PerformanceFacts,
    ResourcesFacts,
    SanitizerFacts,
    UsedResources,
)
from porter.provenance.record import sha256_text
from porter.provenance.store import update_record
from porter.source import Span
from tests.cli.test_bad_input import CASE

KERNEL = """\
// The sum of a row, kept apart so that the review has two functions.
__device__ float twice(float v) {
  const float w = v * 2.0f;
  return w;
}

__global__ void scale_kernel(float* __restrict__ out, const float* __restrict__ in, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = twice(in[i]) * factor;
  }
}
"""


@pytest.fixture(scope="session")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emitted")
    for name in ("scale", "other"):
        (folder / f"{name}.cu").write_text(KERNEL.replace("scale_kernel", f"{name}_kernel"))
        (folder / f"{name}.case.toml").write_text(CASE.replace("scale_kernel", f"{name}_kernel"))
    command = [sys.executable, "-m", "porter.cli", "port", "scale.cu", "other.cu", "-o", "out", "--no-verify"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def folder(emitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with scale.cu, other.cu and their ports in out/; the reviewer is called Ada."""
    shutil.copytree(emitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("porter.review.port.decisions.now", lambda: "2026-01-05T09:00:00Z")
    monkeypatch.setattr("porter.review.port.decisions.reviewer", lambda folder: "Ada")
    monkeypatch.setattr("porter.review.port.actions.reviewer", lambda folder: "Ada")
    return tmp_path


@pytest.fixture
def port(folder: Path) -> Path:
    """scale.py as a person names it, from the working folder."""
    return Path("out/scale.py")


def with_verdicts(port: Path) -> None:
    """Verdicts in the record as a verification leaves them, one of each status."""
    line = next(n for n, t in enumerate(port.read_text().splitlines(), 1) if "factor" in t and "=" in t and "out[" in t)
    note = (f"port: {port}:{line}",)
    span = Span("scale.cu", 10, 5, 10, 34)
    row = OutputErrors("not equal", 101, 7, 4, (0, 3, 4), 0, 1.0, 1.0, "exact")
    what = "a store writes 2.0, the original's 4.0"
    divergence = FirstDivergence("store.global", 10, line, block=0, thread=3, message=what, launch="n=100")
    usage = {"registers": 12, "spills": 0, "local_bytes": 0, "shared_bytes": 0, "barriers": 0}
    used = UsedResources(usage | {"registers": 10}, usage)
    sides = ({"instructions": count, "sectors": 26} for count in (1000, 1100))
    counts = CountedLaunch(None, *sides, instance="", sizes={"n": 100})
    compiled = Diagnostic("PRT811", "a warning of the compiler", span, Severity.WARNING, notes=note, port_line=line)
    wrong = Diagnostic("PRT840", "out[3] is 2.0, the original's 4.0", span, notes=note, port_line=line)
    verdicts = (
        Verdict("compile", Status.PASS, "1 instance for sm_90a", (compiled,)),
        Verdict("resources", Status.PASS, "registers 12 (10)", facts=ResourcesFacts({"": used})),
        Verdict(
            "numerics", Status.FAIL, "1 difference; seed 7", (wrong,),
            NumericsFacts(7, 4, buffers={"": {"out": row}}, divergence=divergence),
        ),
        Verdict("sanitizer", Status.PASS, "4 launches", facts=SanitizerFacts(4, checked=("shared-race",))),
        Verdict("performance", Status.SKIP, "needs a GPU", facts=PerformanceFacts(counts=(counts,))),
    )  # fmt: skip
    digest = sha256_text(port.read_text())
    update_record(port, lambda r: replace(r, verdicts=verdicts, verified_sha256=digest))
