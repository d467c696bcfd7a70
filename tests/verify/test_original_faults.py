"""Originals that are at fault, or leave something open: said of them, and not held against the port beside them."""

from __future__ import annotations

import pytest

from porter.model import PorterError
from porter.verify.original.nvrtc import require_nvrtc
from tests.verify.two_kernels import failing, judge

try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

slow = pytest.mark.slow


def case(kernel: str, buffers: str, sizes: str, launch: str, more: str = "", scalars: str = 'n = "n"') -> str:
    return f'kernel = "{kernel}"\n[sizes]\n{sizes}\n{buffers}\n[scalars]\n{scalars}\n[launch]\n{launch}\n{more}'


def buffer(name: str, dtype: str, shape: str, role: str = "in", more: str = "") -> str:
    return f'[[buffers]]\nname = "{name}"\ndtype = "{dtype}"\nshape = [{shape}]\nrole = "{role}"\n{more}\n'


IN_OUT = buffer("out", "f32", '"n"', "out") + buffer("x", "f32", '"n"')


def said(verdict) -> str:
    return " ".join(d.message for d in verdict.diagnostics if d.code in ("PRT840", "PRT841", "PRT850", "PRT801"))


# ---------------------------------------------------------------- what depends on order

#: the last of the warps to come leaves its name
LAST_COMER = """
__global__ void last_comer(int* out, const int* x, int n) {
  __shared__ int who;
  if (threadIdx.x == 0) who = -1;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicExch(&who, WHO);
  __syncthreads();
  if (threadIdx.x < n) out[blockIdx.x * n + threadIdx.x] = who + x[threadIdx.x];
}
"""
BY_WARP = LAST_COMER.replace("WHO", "(int)threadIdx.x")
FIRST = BY_WARP.replace("atomicExch(&who", "atomicCAS(&who, -1")
ALWAYS = BY_WARP.replace("atomicExch(&who", "atomicMax(&who")
COMER_CASE = case(
    "last_comer", buffer("out", "i32", '"2", "n"', "out") + buffer("x", "i32", '"n"', "in", "low = 0\nhigh = 9"),
    "n = [32, 64]", "grid = [2]\nblock = [128]",
)  # fmt: skip


@pytest.mark.parametrize(
    ("original", "port"),
    [(BY_WARP, BY_WARP), pytest.param(BY_WARP, FIRST, marks=slow), pytest.param(FIRST, ALWAYS, marks=slow)],
)
def test_an_order_that_the_original_leaves_open_is_not_the_ports(original, port):
    verdicts = judge(original, port, COMER_CASE)
    assert set(failing(verdicts).values()) == {"ERROR"}
    assert "the original itself" in said(verdicts["determinism"]) + said(verdicts["numerics"])


@slow
def test_an_order_that_only_the_port_leaves_open_is_the_ports():
    assert failing(judge(ALWAYS, ALWAYS, COMER_CASE)) == {}
    assert "FAIL" in failing(judge(ALWAYS, BY_WARP, COMER_CASE)).values()


# ---------------------------------------------------------------- sums in any order

SUM = """#include <cuda_fp16.h>
__global__ void total(TYPE* out, const float* x, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) atomicAdd(out + i % 3, (TYPE)(TERM));
}
"""


def sums(dtype: str, compare: str = 'compare = "sum"\ncompare_reason = "atomics"') -> str:
    buffers = buffer("out", dtype, "3", "inout", compare) + buffer("x", "f32", '"n"')
    return case("total", buffers, "n = [100, 900]", 'grid = ["ceil_div(n, 64)"]\nblock = [64]')


TYPES = [("float", "f32"), pytest.param("double", "f64", marks=slow), pytest.param("__half", "f16", marks=slow)]


@pytest.mark.parametrize(("ctype", "dtype"), TYPES)
def test_a_sum_of_floats_passes_within_the_bound_of_its_terms(ctype, dtype):
    right = SUM.replace("TYPE", ctype).replace("TERM", "x[i]")
    verdicts = judge(right, right, sums(dtype))
    assert failing(verdicts) == {}, verdicts
    (note,) = [d for d in verdicts["numerics"].diagnostics if d.code == "PRT809"]
    assert "sum" in note.message
    # from the other end: another order of the same terms
    assert (
        failing(judge(right, right.replace("x[i]", "x[n - 1 - i]").replace("i % 3", "(n - 1 - i) % 3"), sums(dtype)))
        == {}
    )


@pytest.mark.parametrize("term", ["x[i] * 1.01f", pytest.param("i == 7 ? 0.f : x[i]", marks=slow)])
def test_a_wrong_sum_does_not(term):
    right = SUM.replace("TYPE", "float").replace("TERM", "x[i]")
    assert failing(judge(right, right.replace("(x[i])", f"({term})"), sums("f32")))["numerics"] == "FAIL"


@slow
def test_a_sum_that_the_case_says_nothing_of_is_the_originals():
    right = SUM.replace("TYPE", "float").replace("TERM", "x[i]")
    verdicts = judge(right, right, sums("f32", ""))
    assert failing(verdicts) == {"determinism": "ERROR"}
    assert 'compare = "sum"' in verdicts["determinism"].diagnostics[0].help


# ---------------------------------------------------------------- barriers over the grid, by hand

GRID = """
__device__ void meet(unsigned* at) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    MEET
    __threadfence();
  }
  __syncthreads();
}
__global__ void rounds(float* out, float* part, unsigned* at, const float* x, int n) {
  for (int k = 0; k < 3; ++k) {
    if (threadIdx.x == 0) part[blockIdx.x] = x[(blockIdx.x + k) % n];
    meet(at);
    float all = 0.f;
    for (int b = 0; b < gridDim.x; ++b) all += __ldcg(part + b);
    if (threadIdx.x == 0) out[blockIdx.x] = all;
    meet(at);
  }
}
"""
#: set back by the last to come, who may be at the next meeting before the others have seen it
SET_BACK = """unsigned old = atomicAdd(at, 1u);
    if (old == gridDim.x - 1) atomicExch(at, 0u); else while (atomicAdd(at, 0u) != 0u) { }"""
#: the same with a plain volatile read
SET_BACK_VOLATILE = SET_BACK.replace("atomicAdd(at, 0u)", "*(volatile unsigned*)at")
#: in two halves: a flag is raised by the last, and lowered by the last to have seen it
LOWERED = """unsigned old = atomicAdd(at, 1u);
    if (old == gridDim.x - 1) { atomicExch(at, 0u); atomicExch(at + 1, 1u); }
    else while (atomicAdd(at + 1, 0u) == 0u) { }
    if (atomicAdd(at + 2, 1u) == gridDim.x - 1) { atomicExch(at + 2, 0u); atomicExch(at + 1, 0u); }"""
#: a counter that only grows
GROWS = """unsigned old = atomicAdd(at, 1u), round = old / gridDim.x;
    while (atomicAdd(at, 0u) / gridDim.x == round) { }"""
GRID_CASE = case(
    "rounds", buffer("out", "f32", '"blocks"', "out") + buffer("part", "f32", '"blocks"', "scratch")
    + buffer("at", "u32", "3", "scratch", "init = 0") + buffer("x", "f32", '"n"'),
    "n = [16]\nblocks = [4, 6]", 'grid = ["blocks"]\nblock = [32]\ncooperative = true',
)  # fmt: skip


@pytest.mark.parametrize(
    "meet", [SET_BACK, pytest.param(SET_BACK_VOLATILE, marks=slow), pytest.param(LOWERED, marks=slow)]
)
def test_a_barrier_that_is_used_again_too_soon(meet):
    right, wrong = GRID.replace("MEET", GROWS), GRID.replace("MEET", meet)
    verdicts = judge(right, wrong, GRID_CASE)
    assert verdicts["sanitizer"].status.value == "FAIL" and "deadlock" in said(verdicts["sanitizer"])
    verdicts = judge(wrong, wrong, GRID_CASE)
    assert failing(verdicts) == {"sanitizer": "ERROR"} and "PRT840" not in {
        d.code for d in verdicts["sanitizer"].diagnostics
    }


@slow
def test_a_barrier_that_only_grows_is_right():
    right = GRID.replace("MEET", GROWS)
    assert failing(judge(right, right, GRID_CASE)) == {}


# ---------------------------------------------------------------- lanes, constant loads

BETWEEN = "__syncwarp();\n  s[t] = v;\n  __syncwarp();"
LANES = {
    "absent-lane": """
__global__ void k(float* out, const float* x, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  out[t] = __shfl_down_sync(0xffffffffu, x[t], 8);
}
""",
    "skipped-lane": """
__global__ void k(float* out, const float* x, int n) {
  int t = threadIdx.x;
  float v = t < n ? x[t] : 0.f;
  if (t % 32 < 16) v += __shfl_xor_sync(0xffffffffu, v, 8);
  if (t < n) out[t] = v;
}
""",
    "lockstep": """
__global__ void k(float* out, const float* x, int n) {
  __shared__ volatile float s[96];
  int t = threadIdx.x, warp = t & ~31;
  s[t] = t < n ? x[t] : 0.f;
  float v = s[warp | (t + 8) % 32];
  s[t] = v;
  if (t < n) out[t] = s[warp | (t + 4) % 32];
}
""",
    "stale-read": """
__global__ void k(float* out, const float* x, int n) {
  int t = threadIdx.x;
  if (t < n) out[t] = x[t];
  __syncthreads();
  if (t < n) out[t] = __ldg(out + t) * 2.f;
}
""",
}
_ALL = "t < n ? x[t] : 0.f"
RIGHT = {
    "absent-lane": LANES["absent-lane"]
    .replace("if (t >= n) return;", "")
    .replace("out[t] = __shfl_down_sync(0xffffffffu, x[t], 8);", f"float v = __shfl_down_sync(~0u, {_ALL}, 8);"),
    "skipped-lane": LANES["skipped-lane"].replace("0xffffffffu", "0x0000ffffu"),
    "lockstep": LANES["lockstep"].replace("float v", "__syncwarp();\n  float v").replace("s[t] = v;", BETWEEN),
    "stale-read": LANES["stale-read"].replace("__ldg(out + t)", "out[t]"),
}
RIGHT["absent-lane"] = RIGHT["absent-lane"].replace("8);\n", "8);\n  if (t < n) out[t] = v;\n")
LANE_CASE = case("k", IN_OUT, "n = [40, 70, 96]", "grid = [1]\nblock = [96]")


@pytest.mark.parametrize("kind", ["lockstep", *(pytest.param(k, marks=slow) for k in LANES if k != "lockstep")])
def test_reports_of_their_own(kind):
    wrong, right = LANES[kind], RIGHT[kind]
    assert failing(judge(right, right, LANE_CASE)) == {}
    verdicts = judge(right, wrong, LANE_CASE)
    assert verdicts["sanitizer"].status.value == "FAIL" and f"the port: {kind}" in said(verdicts["sanitizer"])
    verdicts = judge(wrong, right, LANE_CASE)
    assert verdicts["sanitizer"].status.value == "ERROR" and "FAIL" not in failing(verdicts).values()
    assert {d.code for d in verdicts["sanitizer"].diagnostics} == {"PRT841"}
    known = f'[original]\nviolations = ["{kind}"]\nreason = "as it is"\n'
    assert failing(judge(wrong, wrong, LANE_CASE + known)) == {}


#: lanes that returned are named by the mask, and nobody takes anything of theirs
EARLY = """
__global__ void k(float* out, const float* x, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  float v = x[t];
  for (int o = 8; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  out[t] = v;
}
"""
#: a tree whose unused upper half reads beyond the block
HALF = """
__global__ void k(float* out, const float* x, int n) {
  float v = threadIdx.x < n ? x[threadIdx.x] : 0.f;
  for (int o = 8; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x == 0) for (int k = 0; k < n; ++k) out[k] = v;
}
"""


@slow
def test_lanes_that_nobody_reads_may_be_away():
    text = case("k", IN_OUT, "n = [10, 16]", "grid = [1]\nblock = [16]")
    assert failing(judge(HALF, HALF, text)) == {}
    text = case("k", IN_OUT, "n = [16, 32, 48]", "grid = [1]\nblock = [96]")
    assert failing(judge(EARLY, EARLY, text)) == {}


# ---------------------------------------------------------------- asserts

ASSERTS = """
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
__global__ void k(float* out, const float* x, int n) {
  if (n == 96) __assertfail("n != 96", "k.cu", 4, "k", 1);
  if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x];
}
"""


def test_an_assertion_of_the_original_stops_both_sides():
    without = ASSERTS.replace("if (n == 96)", "if (n == 97)")
    for port in (ASSERTS, without):
        verdicts = judge(ASSERTS, port, LANE_CASE)
        assert failing(verdicts) == {"sanitizer": "ERROR"}
        assert "the original: assert" in said(verdicts["sanitizer"])
    known = '[original]\nviolations = ["assert"]\nreason = "96 is not supported"\n'
    assert failing(judge(ASSERTS, without, LANE_CASE + known)) == {}
    assert failing(judge(without, ASSERTS, LANE_CASE))["sanitizer"] == "FAIL"
