"""Kernels of one name in one file: a run works on the one whose port it is to write."""

from __future__ import annotations

from pathlib import Path

from porter.agents.runs.session import translation
from porter.config import PortConfig

CUDA = """\
__device__ unsigned add_bytes(unsigned a, unsigned b, int lane, unsigned done) {
  const unsigned here = ((a >> (8 * lane)) + (b >> (8 * lane)) & 0xFFu) << (8 * lane);
  return lane == 3 ? done | here : add_bytes(a, b, lane + 1, done | here);
}
#define __vadd4(a, b) add_bytes(a, b, n > 0 ? 0 : 3, 0u)
__global__ void k(unsigned* out, const unsigned* a, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __vadd4(a[i], 1u);
}
__global__ void k(float* out, const float* a, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = a[i];
}
extern "C" void launch(unsigned* out, const unsigned* a, float* fout, const float* fa, int n) {
  k<<<1, 128>>>(out, a, n);
  k<<<1, 128>>>(fout, fa, n);
}
"""
CASE = """\
schema = 1
kernel = "k"

[sizes]
n = [0, 1, 33]

[[buffers]]
name = "out"
dtype = "DTYPE"
shape = ["n"]
role = "out"

[[buffers]]
name = "a"
dtype = "DTYPE"
shape = ["n"]
role = "in"

[scalars]
n = "n"

[launch]
grid = [1, 1, 1]
block = [128, 1, 1]
"""


def test_overloads_are_told_apart_by_their_ports(tmp_path):
    (tmp_path / "two.cu").write_text(CUDA)
    out = tmp_path / "ported"
    found = []
    for name, dtype in (("k.py", "u32"), ("k_2.py", "f32")):
        case = tmp_path / f"{dtype}.case.toml"
        case.write_text(CASE.replace("DTYPE", dtype))
        config = PortConfig(output=out, arch=("sm_90a",), kernel=("k",), case=case)
        made = translation(tmp_path / "two.cu", config, Path(out / name))
        found.append(bool(made.module.holes))
    assert found == [True, False]
