"""A bundle of kernels whose sources stay behind: made of a folder of sources, verified from what the bundle holds."""

from __future__ import annotations

import json

import pytest

from bench.gpu_public import totals
from bench.gpu_verdicts import verify
from porter.model import PorterError, Status
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.original.nvrtc import require_nvrtc
from tools.gpu import public
from tools.gpu.manifest import read_bundle

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

SOURCE = """#include <cuda_fp16.h>
// a comment that does not travel
__global__ void twice(__half* out, const __half* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + x[i];
}
__global__ void asks(int* out) { asm volatile("no_such_instruction;"); }
"""
CASE = """schema = 1
source = "own/twice.cu"
kernel = "twice"
[sizes]
n = [1, 70]
[[buffers]]
name = "x"
dtype = "f16"
shape = ["n"]
role = "in"
[[buffers]]
name = "out"
dtype = "f16"
shape = ["n"]
role = "out"
[scalars]
n = "n"
[launch]
grid = ["ceil_div(n, 64)"]
block = [64]
"""
OTHER = """schema = 1
source = "own/twice.cu"
kernel = "asks"
[sizes]
n = 1
[[buffers]]
name = "out"
dtype = "i32"
shape = ["n"]
role = "out"
[launch]
grid = 1
block = 1
"""


def test_a_bundle_is_verified_without_the_sources(tmp_path, monkeypatch):
    cases, sources = tmp_path / "cases", tmp_path / "sources"
    cases.mkdir()
    (sources / "own").mkdir(parents=True)
    (sources / "own/twice.cu").write_text(SOURCE)
    (cases / "own.twice.case.toml").write_text(CASE)
    (cases / "own.asks.case.toml").write_text(OTHER)
    monkeypatch.setattr(public, "CASES", cases)
    made, left_out = public.public_bundle(tmp_path / "bundle", sources)
    assert [k.name for k in made.kernels] == ["own.twice"]
    assert len(left_out) == 1 and left_out[0].startswith("own.asks: ")
    (sources / "own/twice.cu").unlink()
    assert not any(b"does not travel" in p.read_bytes() for p in made.folder.rglob("*") if p.suffix in (".py", ".json"))
    bundle = read_bundle(made.folder)
    checks = ("honesty", "names", "compile", "resources", "numerics")
    found = verify(bundle, bundle.kernel("own.twice"), EmulatorBackend(), 13, 1.0, 1, checks)
    assert [v.check for v in found] == list(checks)
    assert {v.status for v in found} == {Status.PASS}, found
    assert found[-1].detail.startswith("bit-equal")


def row(numerics: str, performance: float | None = None, status: str = "PASS") -> dict:
    verdicts = [{"check": "numerics", "status": numerics, "detail": "bit-equal in 3 launches", "data": {}}]
    if performance:
        verdicts.append({"check": "performance", "status": status, "detail": "", "data": {"geomean": performance}})
    return json.loads(json.dumps({"verdicts": verdicts}))


def test_totals_count_what_was_run():
    rows = {"a": row("PASS", 0.5), "b": row("PASS", 2.0, "FAIL"), "c": row("FAIL"), "d": row("PASS")}
    found = totals(rows, ["a", "b", "c", "d", "e"])
    assert (found["compared"], found["numerics_passed"], found["timed"], found["time_geomean"]) == (4, 3, 2, 1.0)
    assert found["failed"] == ["c"] and found["slower"] == ["b"] and found["not_run"] == ["c", "d", "e"]
