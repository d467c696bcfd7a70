"""Block sums as trees in shared memory (trees/*.cu): the machine code of a step is no longer in the port."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from porter.case.reader import load_case
from porter.config import PortConfig
from porter.frontend.parse.source import ParseOptions
from porter.model import PorterError
from porter.pipeline.stages import show_stage
from porter.source import Source
from porter.verify.compile.nvdisasm import MISSING, find_nvdisasm
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import require_nvrtc

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)
if find_nvdisasm() is None:
    pytest.skip(MISSING, allow_module_level=True)

TREES = sorted((Path(__file__).parent / "trees").glob("*.cu"))


def step(cubin: bytes, folder: Path) -> list[str]:
    """The instructions of the innermost loop that has a barrier in it."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    text = subprocess.run([str(find_nvdisasm()), "-c", str(path)], capture_output=True, text=True, check=True).stdout
    rows: list[str] = []
    labels: dict[str, int] = {}
    loops = []
    for line in text.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(rows)
        elif code := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            rows.append(code[1])
            back = re.search(r"\bBRA\b.*?(\.L_x_\d+)", code[1])
            if back and labels.get(back[1], len(rows)) < len(rows) - 1:
                loops.append(rows[labels[back[1]] :])
    with_barrier = [loop for loop in loops if any("BAR.SYNC" in i for i in loop)]
    assert with_barrier, "no loop with a barrier"
    return min(with_barrier, key=len)


@pytest.fixture(scope="module")
def ported(tmp_path_factory):
    """{kernel: (text of the port, instructions of the original's step, of the port's)}."""
    out = {}
    for path in TREES:
        folder = tmp_path_factory.mktemp(path.stem)
        text, messages, code = show_stage(path, PortConfig(arch=("sm_90a",)), "py")
        assert code == 0, messages
        port = folder / f"{path.stem}.py"
        port.write_text(text)
        made = compile_port(port, [CompileRequest({}, "sm_90a")])[0]
        assert made.ok, made.error
        kernel = load_case(path.with_suffix(".case.toml")).kernel
        original = build_original(Source.read(path), ParseOptions(), kernel, want=("ptx", "cubin"))[0]
        out[path.stem] = text, step(original.cubin, folder), step(made.cubin, folder)
    return out


@pytest.mark.parametrize("name", [p.stem for p in TREES])
def test_a_step_is_no_longer_than_the_originals(ported, name):
    _, original, port = ported[name]
    assert len(port) <= len(original), "\n".join(port)


@pytest.mark.parametrize("name", [p.stem for p in TREES])
def test_a_step_branches_no_more_and_reads_no_special_register(ported, name):
    _, original, port = ported[name]
    for sign in ("BSSY", "BRA", "S2UR"):
        assert sum(sign in i for i in port) <= sum(sign in i for i in original), "\n".join(port)


def test_an_address_is_kept_only_where_a_condition_stands_in_a_loop(tmp_path):
    from tests.emit.stages import emitted

    kernel = """
__device__ __noinline__ float plain(const float* s, int n) {
  float v = 0;
  for (int k = 0; k < n; ++k) v += s[k * n];
  return v;
}
template <bool LARGEST> __global__ void k(float* out, const float* in, int n) {
  __shared__ float once[64], always[64], passed[64], sometimes[64];
  int t = threadIdx.x;
  once[t] = in[t];
  passed[t] = in[t];
  sometimes[t] = in[t];
  if (n > 3) once[t ^ n] = 1.0f;
  float v = plain(passed, n);
  for (int i = t; i < n; i += blockDim.x) {
    always[(i * 7) & 63] = in[i];
    if (in[i] > v) v += sometimes[(i * 3) & 63];
    v += LARGEST ? always[(i * 5) & 63] : 1.0f;
    const int lane = t & 31;
    if (in[i] > 1.0f) once[lane * 2] = v;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (t > j) v += once[j];
  }
  out[t] = v + once[t] + always[t];
}"""
    text = emitted(tmp_path, "py", kernel, ("k<true>", "k<false>"))
    assert re.findall(r"(\w+) = lib\.in_register", text) == ["sometimes"]
