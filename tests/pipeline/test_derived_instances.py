"""Derived cases of templates whose instances hold vectors: the instances of numbers are kept, and what is left out is
said."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import PorterError
from porter.pipeline.derived_cases import derive_case
from porter.source import Source
from porter.verify.original.nvrtc import require_nvrtc

KERNEL = """
#include <cuda_fp16.h>
template <typename T> __global__ void negate(T* out, const T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = -x[i];
}
"""
LAUNCH = "  negate<{0}><<<(n + 127) / 128, 128>>>(({0}*)out, (const {0}*)x, n);\n"


def derived(tmp_path: Path, *types: str):
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    cases = "".join(f"  if (kind == {i}) {{\n{LAUNCH.format(t)}  }}\n" for i, t in enumerate(types))
    text = f"{KERNEL}void run(void* out, const void* x, int n, int kind) {{\n{cases}}}\n"
    unit = parse_source(Source(tmp_path / "k.cu", text), ParseOptions())
    return derive_case(unit, unit.kernels[0], tmp_path / "k.negate.case.toml")


def test_an_instance_of_vectors_is_left_out_beside_one_of_numbers(tmp_path: Path) -> None:
    made = derived(tmp_path, "__half2", "float")
    assert not made.open
    assert "half2" not in made.text and '"float"' in made.text
    assert any("<__half2>" in a for a in made.assumptions)


def test_instances_of_numbers_are_all_kept(tmp_path: Path) -> None:
    made = derived(tmp_path, "__half", "float")
    assert not made.open and '"__half"' in made.text and '"float"' in made.text
    assert not any("left out" in a for a in made.assumptions)


def test_where_all_hold_vectors_a_person_is_asked(tmp_path: Path) -> None:
    made = derived(tmp_path, "__half2")
    assert "__half2" in made.open and "vectors" in made.open
