"""A case whose dtype cannot be the kernel's is refused before anything is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.pipeline.stages import port

SOURCE = """#include <cuda_bf16.h>
typedef __nv_bfloat16 floatX;
__global__ void k(floatX* out, const unsigned char* codes, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __float2bfloat16((float)codes[i]);
}
"""
CASE = """kernel = "k"
[sizes]
n = 8
[[buffers]]
name = "out"
dtype = "{out}"
shape = ["n"]
role = "out"
[[buffers]]
name = "codes"
dtype = "{codes}"
shape = ["n"]
[scalars]
n = "n"
[launch]
grid = 1
block = 32
"""


@pytest.mark.parametrize(
    ("out", "codes", "wrong"),
    [("bf16", "u8", ""), ("bf16", "e4m3", ""), ("f16", "u8", "out"), ("f32", "u8", "out"), ("bf16", "i32", "codes")],
)
def test_dtype_of_the_case_and_of_the_parameter(tmp_path: Path, out: str, codes: str, wrong: str) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "k.case.toml").write_text(CASE.format(out=out, codes=codes))
    config = PortConfig(output=tmp_path / "out", verify=False, arch=("sm_90a",))
    (kernel,) = port(tmp_path / "k.cu", config).kernels
    found = [d for d in kernel.diagnostics if d.code == "PRT905"]
    assert bool(found) == bool(wrong)
    assert bool(kernel.port_path) != bool(wrong)
    if wrong:
        assert f"`{wrong}` is a buffer of" in found[0].message
        assert found[0].span.file.endswith("k.case.toml") and found[0].span.line > 1
