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
