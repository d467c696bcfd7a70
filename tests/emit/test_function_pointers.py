"""Calls through pointers to functions against the same kernel with the choice written out, on the emulator.

The emulator does not model indirect calls, so the original is the kernel that was written without them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from porter.emit.module import emit_module
from porter.emit.plan import PlanOptions, make_plan
from porter.frontend.instances.choice import specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.build import build_original
from tests.frontend.lowered import holes, lower_all

pytest.importorskip("cutlass")
ONE = Instance()

TEXT = """
__device__ float twice(float x) { return x + x; }
__device__ float square(float x) { return x * x; }
__device__ float count(float x, int* seen) { ++*seen; return x - 1.0f; }
__device__ float halved(float x, int* seen) { *seen += 10; return x * 0.5f; }
typedef float (*Unary)(float);
__device__ float apply(Unary g, float v) { return g(v); }
__device__ Unary pick(bool first) { return first ? twice : square; }
__constant__ Unary table[2] = {square, &twice};
static __device__ const Unary more[] = {twice, twice, square};
template <typename F> __device__ float called(F g, float v) { return g(v) + 1.0f; }
__global__ void chooses(int* i, float* f) {
  int t = threadIdx.x, seen = 0;
  Unary g = i[t] & 1 ? twice : square;
  f[t] = g(f[t]);
  Unary h = nullptr;
  for (int k = 0; k < 3; ++k) {
    if (h) f[64 + t] = (*h)(f[64 + t]);
    h = (i[t] >> k) & 1 ? &square : twice;
    if (h == twice) i[64 + t] += k;
  }
  f[128 + t] = table[i[t] & 1](f[128 + t]) + more[(i[t] & 7) % 3](1.5f);
  f[192 + t] = apply(square, f[192 + t]) + called(twice, 2.0f) + called(g, 3.0f) + pick(t & 4)(5.0f);
  float (*touch)(float, int*) = t & 2 ? count : halved;
  f[256 + t] = touch(f[256 + t]++, &seen);
  i[128 + t] = seen;
}
__global__ void written_out(int* i, float* f) {
  int t = threadIdx.x, seen = 0;
  bool odd = i[t] & 1;
  f[t] = odd ? twice(f[t]) : square(f[t]);
  int h = 0;
  for (int k = 0; k < 3; ++k) {
    if (h) f[64 + t] = h == 1 ? twice(f[64 + t]) : square(f[64 + t]);
    h = (i[t] >> k) & 1 ? 2 : 1;
    if (h == 1) i[64 + t] += k;
  }
  float third = (i[t] & 7) % 3 == 2 ? square(1.5f) : twice(1.5f);
  f[128 + t] = (odd ? twice(f[128 + t]) : square(f[128 + t])) + third;
  f[192 + t] = square(f[192 + t]) + (twice(2.0f) + 1.0f) + ((odd ? twice(3.0f) : square(3.0f)) + 1.0f) +
               (t & 4 ? twice(5.0f) : square(5.0f));
  float old = f[256 + t];
  f[256 + t] = t & 2 ? count(old, &seen) : halved(old, &seen);
  i[128 + t] = seen;
}
"""


def test_a_port_calls_what_the_pointer_points_to(tmp_path: Path):
    source = Source(tmp_path / "k.cu", TEXT)
    source.path.write_text(TEXT)
    unit = parse_source(source, ParseOptions())
    info = unit.kernel("chooses")
    whole, cursors = specialise(source, ParseOptions(), [(info, ONE)])
    kernel = lower_kernel(whole, cursors[info.qualified_name, ONE], info, ONE)
    module = emit_module(make_plan([kernel], info, None, PlanOptions(source=source)))
    assert not module.holes, module.holes
    port = tmp_path / "port.py"
    port.write_text(module.text)
    original = build_original(source, ParseOptions(), "written_out")[0]
    made = compile_port(port, [CompileRequest({}, "sm_90a")])[0]
    assert made.ok, made.error
    results = []
    for text, entry in ((original.ptx, original.entry), (made.ptx, made.entry)):
        rng = np.random.default_rng(7)
        i = rng.integers(0, 2**31, 192).astype(np.int32)
        f = rng.integers(-64, 64, 320).astype(np.float32)
        args = [ptx.Buffer(a, name=n, initialised=True) for n, a in (("i", i), ("f", f))]
        result = ptx.launch(ptx.load(text), entry, grid=(1, 1, 1), block=(64, 1, 1), args=args)
        assert not result.violations, result.violations[:3]
        results.append((i, f))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


OPEN = {
    "a parameter of the kernel": "__global__ void k(float* x, float (*g)(float)) { x[0] = g(x[0]); }",
    "memory of the kernel's caller": "__global__ void k(float* x, float (**g)(float)) { x[0] = g[1](x[0]); }",
    "a table that the host fills": (
        "typedef float (*U)(float); __constant__ U t[2];\n"
        "void fill(U* from) { cudaMemcpyToSymbol(t, from, sizeof(t)); }\n"
        "__global__ void k(float* x) { x[0] = t[0](x[0]); }"
    ),
    "a table with values that the host changes": (
        "typedef float (*U)(float); __device__ float a(float v) { return v; } __device__ U t[2] = {a, a};\n"
        "void fill(U* from) { cudaMemcpyToSymbol(t, from, sizeof(t)); }\n"
        "__global__ void k(float* x) { x[0] = t[0](x[0]); }"
    ),
    "a table that the kernel changes": (
        "typedef float (*U)(float); __device__ float a(float v) { return v; } __device__ U t[2] = {a, a};\n"
        "__global__ void k(float* x) { t[1] = nullptr; x[0] = t[0](x[0]); }"
    ),
    "a member of what the host passes": (
        "struct Ops { float (*g)(float); };\n__global__ void k(float* x, Ops ops) { x[0] = ops.g(x[0]); }"
    ),
    "a member of memory that the host passes": (
        "struct Ops { int n; float (*g)(float); };\n"
        "__global__ void k(float* x, const Ops* ops) { x[0] = ops->g(x[0]); }"
    ),
    "bytes of the caller's memory": (
        "typedef float (*U)(float); __global__ void k(float* x, void* t) { x[0] = ((U*)t)[1](x[0]); }"
    ),
    "a table in a member of what the host passes": (
        "typedef float (*U)(float); struct Ops { const U* g; };\n"
        "__global__ void k(float* x, Ops ops) { x[0] = ops.g[1](x[0]); }"
    ),
    "a number": (
        "typedef float (*U)(float); __global__ void k(float* x, long long at) { x[0] = ((U)at)(x[0]); }"
    ),
    "an address as a number": (
        "__device__ float a(float v) { return v; }\n__global__ void k(long long* x) { x[0] = (long long)&a; }"
    ),
}


@pytest.mark.parametrize("what", OPEN)
def test_targets_that_nobody_sees_stay_holes(what: str):
    kernel = lower_all(OPEN[what])["k"]
    assert {code for code, _ in holes(kernel)} & {"PRT220", "PRT510"}, holes(kernel)
