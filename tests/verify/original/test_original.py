"""Originals by NVRTC: slices of files with host code, line numbers, instances, errors at their lines, the cache."""

import re
from pathlib import Path

import pytest

from porter.frontend.parse.source import ParseOptions, parse_source
from porter.frontend.slice.device_code import SliceUnit
from porter.model import Instance, PorterError
from porter.source import Source
from porter.verify.checks.ptx_stats import ptx_stats
from porter.verify.compile.toolkit import find_nvrtc
from porter.verify.original import build as original
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import Program, compile_program

pytestmark = pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed (nvidia-cuda-nvrtc)")

REFERENCE = Path(__file__).parents[3] / "reference_kernels"

HEADER = """
#ifndef SIDE_H
#define SIDE_H
#include <iostream>
#include <vector>
#define CHECK(x) do { if ((x) != 0) { std::cerr << "failed"; abort(); } } while (0)
inline void report(std::vector<int> v) { std::cout << v.size(); }
struct HostOnly { std::vector<int> v; };
struct Options {
  int n;
  Options(std::vector<int> v) { n = v.size(); }
  Options() = default;
  __device__ int twice() const { return 2 * n; }
};
#ifdef USE_OTHER
__device__ float scale_of(float x) { return x * other; }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float scale_of(float x) {
#if defined(USE_ROCM)
  return 0.0f;
#elif defined(__CUDA_ARCH__) && \\
    __CUDA_ARCH__ >= 700
  return x * 3.0f;
#else
  return 1.0f;
#endif
}
#endif
#endif
"""
MAIN = """
#include <cuda_bf16.h>
#include <torch/extension.h>
#include <algorithm>
#include "side.h"

using namespace at;
static std::vector<int> cache_of_sizes;
enum Kind { kFirst, kSecond };
constexpr int kSize = 4;

namespace ours {
namespace {
template <typename T, int N>
struct alignas(sizeof(T) * N) Vec { T data[N]; };

constexpr int rounded(int x) { return (x + kSize - 1) / kSize * kSize; }
}  // namespace

template <typename T, int N>
__global__ void scale(T* out, const T* in, Options options, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * N >= std::min(n, options.twice())) return;
  Vec<T, N> v = reinterpret_cast<const Vec<T, N>*>(in)[i];
#pragma unroll
  for (int j = 0; j < N; ++j) v.data[j] = static_cast<T>(scale_of(static_cast<float>(v.data[j])) + rounded(1));
  reinterpret_cast<Vec<T, N>*>(out)[i] = v;
}

void launch(torch::Tensor out, torch::Tensor in) {
  TORCH_CHECK(out.is_cuda(), "out");
  HostOnly host;
  report(host.v);
  scale<float, 4><<<1, 128>>>(out.data_ptr<float>(), in.data_ptr<float>(), Options(), 4);
  CHECK(cudaGetLastError());
}
}  // namespace ours

extern "C" __global__ void plain(int* p, Kind kind) {
  p[threadIdx.x] = kind == kSecond ? 1 : 0;
}

template __global__ void ours::scale<float, 2>(float*, const float*, Options, int);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", &ours::launch);
}
"""


@pytest.fixture(scope="module", autouse=True)
def cache_dir(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("PORTER_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "side.h").write_text(HEADER)
    (folder / "scale.cu").write_text(MAIN)
    return Source.read(folder / "scale.cu")


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def test_a_file_with_host_code_and_torch(source):
    instances = [Instance(("float", "4")), Instance(("__nv_bfloat16", "8"))]
    builds = build_original(source, ParseOptions(), "ours::scale", instances, want=("ptx", "cubin"))
    assert [b.instance for b in builds] == instances and len({b.entry for b in builds}) == 2
    for b in builds:
        stats = ptx_stats(b.ptx, b.entry)
        assert (stats.loads_128, stats.stores_128, stats.local_bytes) == (1, 1, 0)
        assert b.registers > 0 and b.local_bytes == b.static_smem == 0
    assert len(re.findall(r"\.entry", builds[0].ptx)) == 2  # nothing but what was asked for


def test_a_kernel_without_template_or_namespace(source):
    (build,) = build_original(source, ParseOptions(), "plain")
    assert build.entry == "plain" and build.cubin == b"" and "st.global.u32" in build.ptx.replace(".b32", ".u32")


def test_line_numbers_are_those_of_the_file(source):
    (build,) = build_original(source, ParseOptions(), "plain")
    (file,) = re.findall(rf'\.file\s+(\d+)\s+"{re.escape(str(source.path))}"', build.ptx)
    assert f".loc\t{file} {line_of(MAIN, 'kind == kSecond')} " in build.ptx


def test_the_slice_keeps_lines_and_leaves_out_the_host(source):
    unit = SliceUnit(parse_source(source, ParseOptions()))
    cut = unit.cut({"ours", "scale"}, lambda include, code: f"#include <{include}>")
    assert [Path(f.path).name for f in cut.files] == ["scale.cu", "side.h"]
    assert len(cut.files[0].text.splitlines()) <= len(MAIN.splitlines())
    main, side = cut.files[0].text, cut.files[1].text
    assert line_of(main, "__global__ void scale") == line_of(MAIN, "__global__ void scale")
    assert line_of(side, "x * 3.0f") == line_of(HEADER, "x * 3.0f")
    for gone in (
        "launch(",
        "PYBIND11",
        "cache_of_sizes",
        "plain",
        "template __global__",
        "HostOnly",
        "vector<int>",
        "#if",
    ):
        assert gone not in main.replace('#include "porter', "") + side.replace("vector>", ""), gone
    assert "twice()" in side and "Options() = default" in side


def test_defines_choose_the_branch(source):
    options = ParseOptions(defines=("USE_OTHER", "other=5.0f"))
    (build,) = build_original(source, options, "ours::scale", [Instance(("float", "4"))])
    assert "0f40A00000" in build.ptx and "0f40400000" not in build.ptx


def test_errors_are_at_the_lines_of_the_file(tmp_path):
    path = tmp_path / "wrong.cu"
    path.write_text("__global__ void k(int* p) {\n  p[0] = 1;\n  p[1] = missing_name;\n}\n")
    with pytest.raises(PorterError) as raised:
        build_original(Source.read(path), ParseOptions(), "k")
    (error,) = raised.value.diagnostics
    assert (error.code, error.span.file, error.span.line) == ("PRT821", str(path), 3)
    assert "missing_name" in error.message and "-I" in error.help


def test_an_instance_that_does_not_fit_is_an_error(source):
    with pytest.raises(PorterError, match="NVRTC"):
        build_original(source, ParseOptions(), "ours::scale", [Instance(("float",))])

    with pytest.raises(PorterError) as raised:
        build_original(source, ParseOptions(), "ours::scale", [Instance(("NoSuchType", "4"))])
    error = raised.value.diagnostics[0]
    assert error.span.line in (line_of(MAIN, "__global__ void scale"), line_of(MAIN, "__global__ void scale") - 1)
    assert "ours::scale<NoSuchType, 4>" in error.help


def test_kernels_of_one_name(tmp_path):
    path = tmp_path / "overloads.cu"
    path.write_text(
        "namespace n {\n"
        "__global__ void k(float* p) { p[0] = 1.0f; }\n"
        "__global__ void k(int* p, int v) { p[0] = v; }\n"
        "}\n"
    )
    source = Source.read(path)
    entries = [build_original(source, ParseOptions(), k)[0].entry for k in parse_source(source, ParseOptions()).kernels]
    assert entries == ["_ZN1n1kEPf", "_ZN1n1kEPii"]


def test_what_does_not_compile_and_is_not_needed_is_left_out(tmp_path):
    path = tmp_path / "two.cu"
    path.write_text(
        "struct Shape { int n; };\n"
        "__device__ int size(Shape s) { return s.n; }\n"
        "__device__ int size(float s) { return __no_such_builtin(s); }\n"
        "__global__ void k(int* p, Shape s) { p[0] = size(s); }\n"
    )
    (build,) = build_original(Source.read(path), ParseOptions(), "k")
    assert ".entry" in build.ptx


def test_a_member_template_of_a_specialised_class_keeps_both_template_heads(tmp_path):
    path = tmp_path / "get.cu"
    path.write_text(
        "template <int I> struct Get { template <typename T> static __device__ float of(const T& v); };\n"
        "template <>\ntemplate <typename T>\n__device__ float Get<0>::of(const T& v) { return v.x; }\n"
        "__global__ void k(float* p, float2 v) { p[0] = Get<0>::of(v); }\n"
    )
    (build,) = build_original(Source.read(path), ParseOptions(), "k")
    assert "st.global" in build.ptx


def test_operators_go_with_their_types_in_whatever_order_names_are_met(tmp_path):
    path = tmp_path / "operators.cu"
    path.write_text(
        "struct S { int v; };\n"
        "__device__ int operator/(int a, S s) { return a / s.v; }\n"
        "__device__ int g(int n, S s, int* p);\n"
        "__device__ int f(int n, S s, int* p) { return n ? g(n - 1, s, p) : n / s; }\n"
        "__device__ int g(int n, S s, int* p) { return n ? f(n - 1, s, p) : n / s; }\n"
        "__global__ void k(int* p, S s, int n) { p[0] = f(n, s, p) + g(n, s, p); }\n"
    )
    cut = SliceUnit(parse_source(Source.read(path), ParseOptions())).cut({"k"}, lambda include, code: "")
    assert "operator/" in cut.code


def test_a_second_build_comes_from_the_cache(source, monkeypatch):
    first = build_original(source, ParseOptions(arch="sm_100a"), "plain")
    monkeypatch.setattr(original, "compile_program", lambda *a: pytest.fail("compiled again"))
    again = build_original(source, ParseOptions(arch="sm_100a"), "plain")
    assert again[0].ptx == first[0].ptx and again[0].seconds == 0 and ".target sm_100a" in first[0].ptx


def test_torch_scalar_types_round_as_pytorch_does(tmp_path):
    path = tmp_path / "types.cu"
    path.write_text(
        "#include <torch/all.h>\n"
        "template <typename T> __global__ void k(T* p, float* f) {\n"
        "  p[0] = p[1] * p[2] + static_cast<T>(f[0]);\n"
        "  f[1] = p[3] * 0.5f;\n"
        "}\n"
    )
    types = ["c10::Half", "c10::BFloat16", "at::Float8_e4m3fn", "torch::headeronly::BFloat16"]
    builds = build_original(Source.read(path), ParseOptions(), "k", [Instance((t,)) for t in types])
    assert len({b.entry for b in builds}) == 3


@pytest.mark.parametrize(
    "header", sorted((Path(original.__file__).parent / "headers").glob("*.h")), ids=lambda p: p.name
)
def test_every_oracle_header_compiles(header):
    headers = {p.name: p.read_text() for p in header.parent.glob("*.h")}
    headers["porter_oracle_cub.h"] = "#include <cub/block/block_reduce.cuh>\n#include <cub/warp/warp_scan.cuh>\n"
    kernel = "__global__ void k(uint32_t* p) { p[0] = UINT_MAX; }"
    cub = "" if header.name == "porter_oracle_std.h" else '#include "porter_oracle_cub.h"'
    text = f'#define PORTER_ORACLE_LIBCUDACXX\n#include "{header.name}"\n{cub}\n{kernel}'
    made = compile_program(Program(text, "k.cu", headers, ["-arch=sm_90a", "-std=c++17", "-default-device", "-w"]))
    assert made.ok, made.log


STD_USES = """
static_assert(std::is_same_v<std::decay_t<const int&>, int> && !std::is_integral_v<float>);
static_assert(std::numeric_limits<int>::max() == INT_MAX && std::numeric_limits<float>::lowest() == -FLT_MAX);
static_assert(std::is_same_v<std::conditional_t<true, int, float>, int> && std::is_unsigned_v<uint8_t>);
template <size_t... Is> __device__ int total(std::index_sequence<Is...>) { return (int(Is) + ... + 0); }
__global__ void k(float* f, int* i) {
  f[0] = std::max(f[1], std::min(f[2], std::numeric_limits<float>::infinity())) + std::exp(f[3]) + std::pow(f[4], 2.0f);
  std::array<int, 4> a{};
  for (auto& x : a) x = i[5];
  std::swap(i[0], i[1]);
  i[2] = std::clamp(i[3], 0, 7) + total(std::make_index_sequence<4>{}) + a[i[4] & 3] + std::abs(i[6]);
}
"""


@pytest.mark.parametrize("header", ["porter_oracle_std.h", "porter_oracle_cudastd.h"])
def test_both_stand_ins_of_std_serve_the_same_code(header):
    headers = {p.name: p.read_text() for p in (Path(original.__file__).parent / "headers").glob("*.h")}
    define = "#define PORTER_ORACLE_LIBCUDACXX" if "cuda" in header else ""
    text = f'{define}\n#include "{header}"\n{STD_USES}'
    made = compile_program(Program(text, "k.cu", headers, ["-arch=sm_90a", "-std=c++17", "-default-device", "-w"]))
    assert made.ok, made.log


def test_reference_kernels_build_for_hopper_and_blackwell():
    source = Source.read(REFERENCE / "norm" / "rms_norm.cu")
    for arch in ("sm_90a", "sm_100a"):
        (build,) = build_original(source, ParseOptions(arch=arch), "rms_norm_kernel", [Instance(("__half", "8"))])
        assert f".target {arch}" in build.ptx and ptx_stats(build.ptx, build.entry).loads_128 >= 2


@pytest.mark.parametrize(
    "text",
    [
        "struct S { float sums[8]; int n; };\nextern __shared__ S s;\n"
        "__global__ void k(float* x) { s.sums[threadIdx.x % 8] = x[0]; __syncthreads(); x[0] = s.sums[1]; }",
        "__global__ void k(float* x) {\n"
        "  extern __shared__ float4 q;\n  if (threadIdx.x == 0) q.y = x[0];\n  __syncthreads();\n  x[1] = q.y;\n}",
        "extern __shared__ float one;\n__global__ void k(float* x) { if (x) one = x[0]; __syncthreads(); x[1] = one; }",
    ],
)
def test_extern_shared_memory_of_one_object_is_static(text: str) -> None:
    (build,) = build_original(Source(Path("k.cu"), text), ParseOptions(), "k")
    assert re.search(r"^\s*\.shared ", build.ptx, re.M) and ".extern" not in build.ptx
