"""Template parameters that are no scalar types: what a pointer's elements are, and constants beyond a type's range."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.model import PorterError, Severity
from porter.pipeline.stages import port
from tests.emit.stages import emitted

KERNEL = """\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename T2, bool HALF> __global__ void k(T2* out, const T2* in, T2 one, float* top, int n) {
  const float limit = HALF ? 65504.f : __int_as_float(0x7f800000);
  constexpr float kMost = HALF ? 6e4f : float(1e300 * 1e300);
  int i = threadIdx.x;
  if (i < n) out[i] = __hadd2(in[i], one);
  top[0] = kMost;
  top[1] = limit;
}
"""
INSTANCES = ("k<__half2, true>", "k<__nv_bfloat162, false>")


MIXED = """\
#include <cuda_fp16.h>
#include <cuda_fp8.h>
template <typename T> struct Wide;
template <> struct Wide<float> { typedef struct __CUDA_ALIGN__(8) { float array[2]; } type; };
template <> struct Wide<__half> { typedef struct __CUDA_ALIGN__(4) { __half array[2]; } type; };
template <> struct Wide<__nv_fp8x2_e4m3> { typedef struct __CUDA_ALIGN__(4) { __half array[2]; } type; };
template <typename T> __global__ void k(typename Wide<T>::type* out) {
  out[threadIdx.x].array[1] = out[threadIdx.x].array[0];
}
"""


def test_scalar_types_are_named_as_the_launch_names_them(tmp_path: Path) -> None:
    instances = ("k<float>", "k<__half>", "k<__nv_fp8x2_e4m3>")
    text = emitted(tmp_path, "py", MIXED, instances)
    assert """runtime.Ptr("out", {'f32': 'f32', 'f16': 'f16', '__nv_fp8x2_e4m3': 'f16'}, by="T"),""" in text
    pytest.importorskip("cutlass")
    assert emitted(tmp_path, "ptx", MIXED, instances).count(".visible .entry") == len(instances)


def test_the_descriptor_names_the_elements_for_each_value(tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", KERNEL, INSTANCES)
    assert """runtime.Ptr("out", {'__half2': 'f16', '__nv_bfloat162': 'bf16'}, by="T2"),""" in text
    assert """runtime.Ptr("top", "f32"),""" in text
    assert 'float("inf")' in text and "(inf" not in text


def test_every_instance_compiles(tmp_path: Path) -> None:
    pytest.importorskip("cutlass")
    assert emitted(tmp_path, "ptx", KERNEL, INSTANCES).count(".visible .entry") == len(INSTANCES)


DIFFERENT = """\
struct Scale { float by; __device__ float operator()(float x) const { return x * by; } };
struct Table { const float* values; int n; __device__ float operator()(float x) const { return x + values[n]; } };
template <class Op> __global__ void k(Op op, float* out) { out[threadIdx.x] = op(out[threadIdx.x]); }
"""


def test_instances_with_different_parameters_are_refused_and_ported_one_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(PorterError) as refused:
        emitted(tmp_path, "py", DIFFERENT, ("k<Scale>", "k<Table>"))
    (d,) = refused.value.diagnostics
    assert d.code == "PRT603" and "--instantiate" in d.help
    assert "op_values" in emitted(tmp_path, "py", DIFFERENT, ("k<Table>",))


NUMBER_OR_POINTER = """\
template <typename T, typename S, bool ROWS> __global__ void k(const T* in, T* out, S scale, int n) {
  int t = threadIdx.x;
  if constexpr (ROWS) { if (t < n) out[t] = in[t] * scale[blockIdx.x]; } else { if (t < n) out[t] = in[t] * scale; }
}
"""
LAUNCHED = {
    "a number or a pointer": (
        NUMBER_OR_POINTER
        + "void a(const float* x, float* y, float s) { k<float, float, false><<<1, 32>>>(x, y, s, 9); }\n"
        "void b(const float* x, float* y, float* s) { k<float, float*, true><<<1, 32>>>(x, y, s, 9); }\n"
        "void c(const double* x, double* y, double* s) { k<double, double*, true><<<1, 32>>>(x, y, s, 9); }\n",
        ["<float, float *, true>", "<double, double *, true>"],
    ),
    "classes with other members, from explicit instantiations by a macro": (
        DIFFERENT + "template <class Op> void go(Op& op, float* out) { k<Op><<<1, 32>>>(op, out); }\n"
        "#define FOR(O) template void go(O& op, float* out)\nFOR(Scale);\nFOR(Table);\n",
        ["<Scale>"],
    ),
}


@pytest.mark.parametrize("what", LAUNCHED)
def test_launched_instances_that_fit_are_ported_and_the_others_named(what: str, tmp_path: Path) -> None:
    text, ported = LAUNCHED[what]
    source = tmp_path / "k.cu"
    source.write_text(text)
    report = port(source, PortConfig(output=tmp_path / "out", verify=False, arch=("sm_90a",)))
    (kernel,) = report.kernels
    assert sorted(str(i) for i in kernel.instances) == sorted(ported)
    (left,) = [d for d in kernel.diagnostics if d.code == "PRT603"]
    assert left.severity is Severity.WARNING and "not in this port" in left.message and kernel.port_path
