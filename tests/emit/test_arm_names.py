"""Locals after an arm that only some instances have: no name of the arm is used again for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emit.stages import emitted

KERNEL = """\
template <bool SEND, int BITS> __global__ void k(int* out, int n) {
  if constexpr (SEND) {
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;
  }
  if constexpr (BITS == 4) {
    float data[2];
    data[0] = out[0]; data[1] = out[1];
    out[2] = (int)(data[0] + data[1] * 2.0f);
  }
  for (unsigned g = blockIdx.x; g < n; g += gridDim.x) {
    for (unsigned i = threadIdx.x; i < g; i += blockDim.x) {
      if (i & 1) {
        unsigned long long data = (unsigned long long)out[i] << BITS;
        out[i] = (int)(data >> 3);
      }
    }
  }
}
"""
INSTANCES = ("k<true, 4>", "k<false, 8>", "k<true, 8>")


def test_names_of_arms_are_not_used_again(tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", KERNEL, INSTANCES)
    first, rest = text.split("while g < ", 1) if "while g < " in text else text.split("for g in ", 1)
    assert "i = Uint32(tidx)" in first
    assert "i_2 = Uint32(tidx)" in rest


def test_every_instance_compiles(tmp_path: Path) -> None:
    pytest.importorskip("cutlass")
    assert emitted(tmp_path, "ptx", KERNEL, INSTANCES).count(".visible .entry") == len(INSTANCES)


SWITCHED = """\
template <int N> __global__ void k(int* out, const int* in) {
  int t = threadIdx.x;
  switch (N & 3) {
    case 1: {
      int x = in[t] / 3;
      out[t] = x;
      break;
    }
    case 3: {
      int y = in[t] / 5;
      out[t] = y;
      break;
    }
  }
  for (signed char i = 9; i >= 0; i -= 3) {
    if (i < in[t + 64]) {
      int x = i | in[t];
      int y = x / 7;
      out[t + 64] += x + y;
    }
    if constexpr (N == 3) {
      int z = in[t] - i;
      out[t] += z;
    }
  }
  while (in[t] > out[t]) {
    if (in[t + 1] > 0) {
      int z = in[t + 2] * 3;
      out[t] += z;
    }
    out[t]++;
  }
}
"""


@pytest.mark.parametrize("instances", [("k<8>",), ("k<3>", "k<8>")])
def test_branches_that_a_constant_decides_are_arms_too(tmp_path: Path, instances: tuple[str, ...]) -> None:
    pytest.importorskip("cutlass")
    assert emitted(tmp_path, "ptx", SWITCHED, instances).count(".visible .entry") == len(instances)
