"""A port runs at template arguments that it was not made for, beside the original there.

What differs by instance is written with template parameters where the source has them, and else as a choice among the
instances that were ported. A port without such a choice is the source's program, so it is right at all arguments; one
that took a parameter for a number or a type that happened to agree with it is not.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.frontend.instances.choice import parse_instantiation
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance, PorterError
from porter.pipeline.stages import Run, translate
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.nvrtc import Program, compile_program, require_nvrtc
from tests.emit.program_generator import INSTANCES, program
from tests.emit.program_runs import OPTIONS, run

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

KERNELS = """
#include <cuda_fp16.h>
template <typename T> struct Lanes { static constexpr int value = 4; };
template <> struct Lanes<__half> { static constexpr int value = 8; };

template <typename U, int N> __device__ __forceinline__ void turn(U (&row)[32]) {
  U keep[Lanes<U>::value * 2];
  for (int j = 0; j < Lanes<U>::value * 2; ++j) keep[j] = row[j];
  for (int j = 0; j < Lanes<U>::value; ++j) row[(j + N) & 31] = keep[j + 1];
}
template <typename T, int UNROLL, int SHIFT> __global__ void inlined(float* out, const float* in, int n) {
  T row[32];
  for (int u = 0; u < 32; ++u) row[u] = (T)in[(threadIdx.x + u) & 63];
  for (int u = 0; u < UNROLL; ++u) row[u] = (T)((float)row[u] * 2.0f);
  turn<T, SHIFT>(row);
  float sum = 0.0f;
  for (int u = 0; u < 32; ++u) sum += (float)row[u] * (u + 1);
  out[threadIdx.x] = sum;
}

template <int N, int M, typename To> __device__ float both(const float* row, int at) {
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) sum += (float)(To)(row[(at + j) & 63] * M);
  return sum;
}
template <int FIRST, int SECOND, typename A, typename B> __global__ void called(float* out, const float* in, int n) {
  int t = threadIdx.x;
  out[t] = both<SECOND, FIRST, B>(in, t) + both<FIRST + 1, 3, A>(in, t + 8) * SECOND;
}

template <typename T, int VEC, int PAD, int GROUP> __global__ void sized(float* out, const float* in, int n) {
  __shared__ T tile[64 * 2 + PAD];
  constexpr int kLanes = VEC * sizeof(T) / 4;
  int flags[2] = {GROUP, 3};
  int t = threadIdx.x;
  tile[t * 2] = (T)in[t];
  tile[t * 2 + 1] = (T)in[t ^ 4];
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < kLanes; ++i) sum += (float)tile[(t * 2 + i * 4) & 127];
  for (int i = 0; i < 8 / GROUP; ++i) sum += flags[(t + i) & 1];
  if (sizeof(T) == 2) sum *= 8.0f;
  out[t] = sum + 128 / VEC;
}
"""
#: what ports are made for, and what they run at as well
MADE = {
    "inlined": ("inlined<float, 4, 4>", "inlined<__half, 8, 8>"),
    "called": ("called<4, 4, float, float>", "called<8, 8, __half, __half>"),
    "sized": ("sized<float, 4, 2, 2>", "sized<__half, 16, 4, 4>"),
}
OTHERS = {
    "inlined": ("inlined<float, 8, 2>", "inlined<__half, 4, 16>", "inlined<float, 16, 5>"),
    "called": ("called<2, 5, __half, float>", "called<7, 3, float, __half>"),
    "sized": ("sized<float, 8, 4, 2>", "sized<__half, 4, 2, 8>", "sized<float, 16, 6, 1>"),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """The parsed file, and the originals at the other instances."""
    file = tmp_path_factory.mktemp("others") / "k.cu"
    file.write_text(KERNELS)
    wanted = [text for texts in OTHERS.values() for text in texts]
    made = compile_program(Program(KERNELS, "k.cu", options=OPTIONS, expressions=wanted))
    assert made.ok, made.log
    return Source.read(file), made


@pytest.mark.parametrize("name", MADE)
def test_a_port_is_right_at_other_arguments(originals, tmp_path: Path, name: str) -> None:
    source, original = originals
    unit = parse_source(source, ParseOptions())
    info = next(k for k in unit.kernels if k.name == name)
    made_for = tuple(Instance(parse_instantiation(text)[1].args) for text in MADE[name])
    port = translate(unit, info, None, PortConfig(), Run(name), made_for).module
    assert not port.holes
    path = tmp_path / f"{name}.py"
    path.write_text(port.text)
    others = [Instance(parse_instantiation(text)[1].args) for text in OTHERS[name]]
    made = compile_port(path, [CompileRequest(instance_values(info, i), "sm_90a") for i in others])
    x = np.random.default_rng(7).uniform(-2, 2, 64).astype(np.float32)
    for text, result in zip(OTHERS[name], made, strict=True):
        assert result.ok, result.error
        found = []
        for code, entry in ((original.ptx, original.lowered[text]), (result.ptx, result.entry)):
            out = np.zeros(64, np.float32)
            buffers = [ptx.Buffer(a, name=n, initialised=True) for n, a in (("out", out), ("in", x))]
            launched = ptx.launch(
                ptx.load(code), entry, grid=(1, 1, 1), block=(64, 1, 1), args=[*buffers, np.int32(64)]
            )
            assert not launched.violations, launched.violations[:2]
            found.append(out)
        assert np.allclose(found[0], found[1], rtol=1e-6, atol=1e-6), (text, port.text)


BETWEEN = ((5, False), (4, True), (8, True))  # INSTANCES cover the least and the largest number
BY_INSTANCE = re.compile(rf"\bN == ({'|'.join(str(n) for n, _ in INSTANCES)})\b")


def _check(seeds: list[int], folder: Path) -> int:
    """How many of the programs have ports without a choice by instance; all of these are equal at BETWEEN.

    In an arm that one instance takes the others' numbers are not seen, so `if constexpr` is such a choice too.
    """
    claimed = 0
    for outcome in run(seeds, folder, BETWEEN):
        port = (folder / f"p{outcome.seed}.py").read_text()
        if "if constexpr" not in program(outcome.seed, "k")[0] and not BY_INSTANCE.search(port):
            claimed += 1
            assert outcome.kind == "equal", outcome
    return claimed


def test_programs_without_a_choice_by_instance_are_right_between_their_instances(tmp_path: Path) -> None:
    assert _check([3, 7, 23, 27], tmp_path) >= 3


@pytest.mark.slow
def test_many_programs_are_right_between_their_instances(tmp_path: Path) -> None:
    seeds = [4 * k + 3 for k in range(200)]
    assert sum(_check(seeds[i : i + 20], tmp_path) for i in range(0, len(seeds), 20)) >= 50
