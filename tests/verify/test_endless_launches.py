"""A launch that does not end ends its verification: a finding of its own, quickly, and nothing said beside it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.model import PorterError, Status, Verdict
from porter.pipeline.inputs import choose_kernels, find_case, parse
from porter.pipeline.stages import Run, translate
from porter.verify.original.nvrtc import require_nvrtc
from porter.verify.run import VerifyRequest, verify_port
from tests.robust.inputs import SCALE_CASE

CUDA = """\
__global__ void scale_kernel(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) BODY
}
"""
CASE = SCALE_CASE.replace('"ceil_div(n, 64)"', "GRID")
LOOP = "for (long long j = 0; j < COUNT; ++j) x[i] += factor;"


def verified(folder: Path, body: str, grid: str = '"ceil_div(n, 64)"', **edit: str) -> dict[str, Verdict]:
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    path = folder / "k.cu"
    path.write_text(CUDA.replace("BODY", body))
    (folder / "k.case.toml").write_text(CASE.replace("GRID", grid))
    config = PortConfig(verify=False)
    unit = parse(path, config)
    (info,) = choose_kernels(unit, config)
    case = find_case(unit, info, config)
    text = translate(unit, info, case, config, Run("k")).module.text
    for old, new in edit.items():
        assert old in text, (old, text)
        text = text.replace(old, new)
    port = folder / "k.py"
    port.write_text(text)
    request = VerifyRequest(port, unit.source, info, case, ("sm_90a",), unit.options, unit, seed=3, budget=24.0)
    return {v.check: v for v in verify_port(request)}


def test_an_original_without_an_end(tmp_path: Path) -> None:
    start = time.process_time()
    found = verified(tmp_path, LOOP.replace("COUNT", "(1LL << 62)"))
    assert time.process_time() - start < 20
    assert found["sanitizer"].status is Status.ERROR
    (said,) = found["sanitizer"].diagnostics
    assert said.code == "PRT841" and "budget" in said.message and "loop" in said.help and "block (" not in said.message
    for check in ("numerics", "determinism"):
        assert found[check].status is Status.SKIP and not found[check].diagnostics
        assert "sanitizer" in found[check].detail


def test_a_port_without_an_end(tmp_path: Path) -> None:
    start = time.process_time()
    longer = {"cutlass.range_constexpr(7)": "range(cutlass.Int64(1 << 40))"}
    found = verified(tmp_path, LOOP.replace("COUNT", "7"), **longer)
    assert time.process_time() - start < 20
    assert found["sanitizer"].status is Status.FAIL
    (said,) = [d for d in found["sanitizer"].diagnostics if d.code == "PRT840"]
    assert "budget" in said.message and "loop of the port" in said.help
    assert found["numerics"].status is Status.SKIP and found["determinism"].status is Status.SKIP


def test_a_grid_of_a_million_blocks(tmp_path: Path) -> None:
    start = time.process_time()
    found = verified(tmp_path, "x[i] = x[i] * factor;", grid="1000000")
    assert time.process_time() - start < 20
    assert found["numerics"].status is Status.PASS and found["determinism"].facts.launches == 1
