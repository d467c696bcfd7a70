"""Loops over signed 64-bit numbers with a constant step: counted by the compiler as it counts the original's."""

from __future__ import annotations

import re

import pytest

from porter.model import PorterError
from porter.verify.original.nvrtc import Program, compile_program, require_nvrtc
from tests.emit.stages import emitted

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

KERNEL = """__global__ void k(float* out, const float* __restrict__ x, long n, size_t size) {
  float s = 0.0f;
  %s
  out[threadIdx.x] = s;
}
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for (long i = threadIdx.x; i < n; i += 256) s += x[i];",
        "for (long i = threadIdx.x + 3L * blockIdx.x; i < n; i += 128) s = fmaxf(s, x[i]);",
        "const float* row = x + blockIdx.x * n; for (long long i = threadIdx.x; i < n; i += 96) s += row[i] * row[i];",
    ],
)
def test_as_many_loads_are_in_flight_as_in_the_original(tmp_path, loop):
    text = KERNEL % loop
    options = ["--gpu-architecture=sm_90a", "-default-device"]
    original = compile_program(Program(text, "k.cu", options=options, expressions=["k"])).ptx
    port = emitted(tmp_path, "ptx", text)
    loads = [len(re.findall(r"\bld\.global\.nc", side)) for side in (original, port)]
    assert loads == [5, 5]  # four and the rest's
    # the pointer is advanced, not computed anew from the index
    assert [len(re.findall(r"\bld\.global\.nc\S*\s+\S+ \[%rd\d+\+", side)) for side in (original, port)] == [3, 3]


@pytest.mark.parametrize(
    "loop",
    [
        "for (long i = threadIdx.x; i < n; i += 1) s += x[i];",  # the compiler can count it
        "for (long i = threadIdx.x; i < n; i += 256) { s += x[i]; n -= 1; }",
        "for (long i = threadIdx.x; i < n; i += 256) { s += x[i]; if (s > 9) i += 2; }",
        "for (long i = threadIdx.x; i < (long)x[0]; i += 256) s += x[i];",
        "for (long i = threadIdx.x; i < n; i += blockDim.x) s += x[i];",
        "for (long i = n; i > 0; i -= 256) s += x[i];",
        "for (int i = threadIdx.x; i < (int)n; i += 256) s += x[i];",
        "for (int i = threadIdx.x; i < n; i += 32) s += x[i];",
        "for (size_t i = threadIdx.x; i < size; i += 128) s += x[i];",
    ],
)
def test_other_loops_are_not_counted(tmp_path, loop):
    assert "lib.trips" not in emitted(tmp_path, "py", KERNEL % loop)
