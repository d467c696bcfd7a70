"""Parsing without a toolkit: kernels found, includes resolved or stood in for, faults told to the right kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter import codes
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import CursorKind
from porter.frontend.parse.includes import is_known
from porter.frontend.parse.source import ParsedUnit, ParseOptions, is_prelude, parse_source
from porter.model import Severity
from porter.source import Source

SCALE = """\
#include <cuda_bf16.h>
#include <cooperative_groups.h>
namespace ops {
template <typename T, int VEC = 4, bool FLAG = false>
__global__ void __launch_bounds__(256, VEC) scale_kernel(T* __restrict__ out, const T* in, float by, int n) {
  extern __shared__ float buffer[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(static_cast<float>(in[i]) * by);
  __syncthreads();
}
}  // namespace ops
"""


def parse(text: str, path: str | Path = "/nowhere/test.cu", **options: object) -> ParsedUnit:
    return parse_source(Source(Path(path), text), ParseOptions(**options))  # type: ignore[arg-type]


def errors(unit: ParsedUnit) -> list[str]:
    return [f"{d.code} {d.span.line} {d.message}" for k in unit.kernels for d in k.errors]


def test_kernel_is_described() -> None:
    unit = parse(SCALE)
    (kernel,) = unit.kernels
    assert (kernel.name, kernel.qualified_name) == ("scale_kernel", "ops::scale_kernel")
    assert [p.name for p in kernel.params] == ["out", "in", "by", "n"]
    assert kernel.params[1].type == "const T *"
    names = [(p.name, p.kind, p.type, p.default) for p in kernel.template_params]
    assert names == [("T", "type", "", ""), ("VEC", "value", "int", "4"), ("FLAG", "value", "bool", "false")]
    assert kernel.launch_bounds == "256, VEC"
    assert (kernel.span.line, kernel.span.end_line) == (4, 10)
    assert unit.source.excerpt(kernel.span).endswith("}")
    assert kernel.errors == () and unit.diagnostics == ()
    assert unit.kernel("scale_kernel") is kernel and unit.kernel("ops::scale_kernel") is kernel
    assert unit.kernel("other") is None


def test_declarations_and_host_functions_are_no_kernels() -> None:
    assert parse("__global__ void k(int* p);\nvoid host() {}\n").kernels == ()


def test_forward_declared_kernel_is_found_once() -> None:
    unit = parse("__global__ void k(int* p);\n__global__ void k(int* p) { *p = 1; }\n")
    assert [(k.name, k.span.line) for k in unit.kernels] == [("k", 2)]


def test_macros_in_launch_bounds_are_expanded() -> None:
    unit = parse("#define THREADS 128\n__global__ void __launch_bounds__(THREADS) k(int* p) { *p = 1; }\n")
    assert unit.kernels[0].launch_bounds == "128"


BODIES = [
    "float4 v = reinterpret_cast<const float4*>(in)[0]; out[0] = v.x + __expf(v.y) * rsqrtf(v.z) + fmaxf(v.w, 0);",
    "__half2 h = __floats2half2_rn(in[0], in[1]); h = __hfma2(h, h, h); out[0] = __low2float(h) + float(h.y);",
    "__nv_bfloat16 b = in[0]; b = b * b + __float2bfloat16(1.f); b += b; out[0] = b > b ? float(b) : -float(b);",
    "__nv_fp8_e4m3 q(in[0]); out[0] = float(q); out[1] = q.__x; __nv_fp8x4_e4m3 r(make_float4(1, 2, 3, 4));",
    "float v = in[0]; for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o); atomicAdd(out, v);",
    "using R = cub::BlockReduce<float, 128>; __shared__ typename R::TempStorage t; out[0] = R(t).Sum(in[0]);",
    "auto w = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());"
    "out[0] = cooperative_groups::reduce(w, in[0], cooperative_groups::plus<float>());",
    "out[0] = std::numeric_limits<float>::infinity(); out[1] = cuda::std::max(in[0], 1.f); out[2] = std::min(1, 2);",
    'unsigned r; asm volatile("mov.u32 %0, %%laneid;" : "=r"(r)); out[r] = __ldg(in + r); __stcs(out, 1.f);',
    "out[0] = __popc(__ballot_sync(~0u, in[0] > 0)) + __reduce_add_sync(~0u, 1); cudaGridDependencySynchronize();",
    "c10::Half h = in[0]; c10::BFloat16 b = 2.f; out[0] = h * 2 + float(b); out[1] = h < c10::Half(1.f);",
    "using namespace nvcuda::wmma; fragment<accumulator, 16, 16, 16, float> c; fill_fragment(c, 0.f); out[0] = c.x[0];",
    "curandStatePhilox4_32_10_t s; curand_init(1, 2, 3, &s); out[0] = curand_uniform4(&s).x;",
    "std::array<float, 4> a{}; a[1] = in[0]; auto [x, y] = std::make_pair(1.f, 2.f); out[0] = a[1] + x + y;",
]


@pytest.fixture(scope="module")
def bodies() -> ParsedUnit:
    kernels = [f"__global__ void k{i}(float* out, const float* in) {{ {b} }}" for i, b in enumerate(BODIES)]
    return parse("\n".join(kernels))


@pytest.mark.parametrize("index", range(len(BODIES)))
def test_device_names_are_declared(bodies: ParsedUnit, index: int) -> None:
    assert [e.message for e in bodies.kernels[index].errors] == []


def test_fault_inside_a_kernel_is_its_error() -> None:
    unit = parse(
        "__global__ void good(int* p) { *p = 1; }\n"
        "__global__ void bad(int* p) {\n"
        "  *p = nonsense;\n"
        "}\n"
        "void host() { also_unknown(); }\n"
    )
    good, bad = unit.kernels
    assert good.errors == ()
    (error,) = bad.errors
    assert (error.code, error.span.line, error.span.col) == (codes.PARSE_ERROR, 3, 8)
    assert "nonsense" in error.message
    (other,) = unit.diagnostics
    assert (other.severity, other.span.line) == (Severity.WARNING, 5)


def test_fault_in_a_function_counts_for_the_kernels_that_reach_it() -> None:
    unit = parse(
        "__device__ float broken(float x) { return x * unknown_factor; }\n"
        "__device__ float middle(float x) { return broken(x) + 1; }\n"
        "__global__ void uses(float* p) { *p = middle(*p); }\n"
        "__global__ void free_of_it(float* p) { *p = 2; }\n"
    )
    uses, free_of_it = unit.kernels
    assert [e.span.line for e in uses.errors] == [1]
    assert free_of_it.errors == ()


def test_what_nvcc_accepts_is_no_error() -> None:
    unit = parse(
        "struct S { int a; };\n"
        "const int table[3] = {1, 2, 3};\n"
        "constexpr int twice(int x) { return 2 * x; }\n"
        "__global__ void k(int* p) { const S s; p[0] = twice(s.a); p[1] = table[p[2]]; }\n"
    )
    assert errors(unit) == []


def test_missing_include_is_a_warning_when_no_kernel_needs_it() -> None:
    unit = parse('#include "not/there.h"\n__global__ void k(int* p) { *p = 1; }\n')
    (d,) = unit.diagnostics
    assert (d.code, d.severity, d.span.line) == (codes.INCLUDE_NOT_FOUND, Severity.WARNING, 1)
    assert "not/there.h" in d.message


def test_missing_include_is_an_error_when_a_kernel_does_not_parse() -> None:
    unit = parse('#include "not/there.h"\n__global__ void k(int* p) { *p = from_there(1); }\n')
    assert [d.severity for d in unit.diagnostics] == [Severity.ERROR]
    assert len(errors(unit)) == 1


def test_includes_are_found_by_their_ending_in_the_tree(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "csrc" / "core").mkdir(parents=True)
    (tmp_path / "csrc" / "kernels").mkdir()
    (tmp_path / "csrc" / "core" / "deep.h").write_text("constexpr int DEPTH = 7;\n")
    (tmp_path / "csrc" / "core" / "maths.cuh").write_text(
        '#include "core/deep.h"\ntemplate <class T> __device__ T plus_one(T x) { return x + 1; }\n'
    )
    source = tmp_path / "csrc" / "kernels" / "k.cu"
    source.write_text("#include <core/maths.cuh>\n__global__ void k(int* p) { *p = plus_one(DEPTH); }\n")
    unit = parse_source(Source.read(source))
    assert errors(unit) == [] and unit.diagnostics == ()


def test_given_include_folder_comes_first(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "sizes.h").write_text("#define N 3\n")
    text = '#include "sizes.h"\n__global__ void k(int* p) { *p = N; }\n'
    assert errors(parse(text, tmp_path / "project" / "k.cu")) != []
    assert errors(parse(text, tmp_path / "project" / "k.cu", include_dirs=(str(tmp_path / "inc"),))) == []


def test_kernels_of_project_headers_are_listed_apart(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "k.cuh").write_text("#pragma once\n__global__ void inner(int* p) { *p = 1; }\n")
    source = tmp_path / "main.cu"
    source.write_text('#include "k.cuh"\n__global__ void outer(int* p) { *p = 2; }\n')
    unit = parse_source(Source.read(source))
    assert [k.name for k in unit.kernels] == ["outer"]
    assert [k.name for k in unit.header_kernels] == ["inner"]


def test_defines_and_the_flag_behind_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "conv.h").write_text(
        "#pragma once\n#ifdef WITH_FP8\n__device__ float conv(float x) { return x; }\n#endif\n"
    )
    text = '#include "conv.h"\n__global__ void k(float* p) { *p = conv(*p); }\n'
    (tmp_path / "k.cu").write_text(text)
    without = parse(text, tmp_path / "k.cu")
    assert "-D WITH_FP8" in without.kernels[0].errors[0].help
    assert "conv.h:3" in without.kernels[0].errors[0].help
    other = parse(text.replace("conv(*p)", "missing(*p)"), tmp_path / "k.cu")
    assert "-D WITH_FP8" not in other.kernels[0].errors[0].help
    assert errors(parse(text, tmp_path / "k.cu", defines=("WITH_FP8",))) == []


def test_arch_selects_the_code() -> None:
    text = "__global__ void k(int* p) {\n#if __CUDA_ARCH__ >= 900\n  *p = 90;\n#else\n  *p = missing;\n#endif\n}\n"
    assert errors(parse(text)) == []
    assert errors(parse(text, arch="sm_80")) != []


def test_user_definitions_are_told_from_the_prelude() -> None:
    unit = parse(
        "__device__ float twice(float x) { return 2 * x; }\n"
        "__global__ void k(float* p) { *p = twice(expf(*p)) + std::max(1.f, 2.f); __syncthreads(); }\n"
    )
    body = unit.definition(unit.kernels[0])
    calls = {c.spelling: is_prelude(c.referenced) for c in cc.walk(body) if c.kind == CursorKind.CALL_EXPR}
    assert calls == {"twice": False, "expf": True, "max": True, "__syncthreads": True}


def test_operators_and_constants_can_be_read() -> None:
    unit = parse(
        "__global__ void k(int* p) {\n"
        "  constexpr int n = 3 * 4 + 5;\n  p[0] <<= n; p[1] = -p[2]; p[3]++; --p[4];\n"
        "  if (p[0] >= 2.5 && true) p[1] = 0;\n}\n"
    )
    cursors = list(cc.walk(unit.definition(unit.kernels[0])))
    assert {cc.binary_op(c) for c in cursors} - {""} >= {"*", "+", "<<=", "=", ">=", "&&"}
    unary = [cc.unary_op(c) for c in cursors if c.kind == CursorKind.UNARY_OPERATOR]
    assert unary == ["-", "x++", "--x"]
    n = next(c for c in cursors if c.kind == CursorKind.VAR_DECL)
    assert cc.evaluate(n) == 17
    values = [
        cc.evaluate(c) for c in cursors if c.kind in (CursorKind.FLOATING_LITERAL, CursorKind.CXX_BOOL_LITERAL_EXPR)
    ]
    assert values == [2.5, True] and values[1] is True


def test_inline_assembly_can_be_read() -> None:
    unit = parse(
        "__global__ void k(int* p) {\n"
        '  asm volatile("add.s32 %0, %1, %2; // %%laneid\\n" : "=r"(p[0]) : "r"(p[1]), "n"(4) : "memory");\n}\n'
    )
    cursor = next(c for c in cc.walk(unit.definition(unit.kernels[0])) if c.kind == CursorKind.ASM_STMT)
    for asm in (cc.asm_statement(cursor), cc._asm_from_tokens(cursor)):  # libclang 18 has only the tokens
        assert asm.template == "add.s32 $0, $1, $2; // %laneid\n"
        assert [o.constraint for o in asm.outputs] == ["=r"]
        assert [i.constraint for i in asm.inputs] == ["r", "n"]
        assert unit.text(asm.inputs[0].expr) == "p[1]"
        assert asm.volatile and asm.clobbers == ("memory",)


def test_spans_in_macro_arguments_are_where_they_are_written() -> None:
    unit = parse(
        "#define WRAP(...) __VA_ARGS__\n#define TWICE(x) ((x) + (x))\n"
        "__global__ void k(int* p) {\n  WRAP(\n    p[0] = p[1];\n  )\n  p[2] = TWICE(p[3]);\n}\n"
    )
    assignments = [c for c in cc.walk(unit.definition(unit.kernels[0])) if cc.binary_op(c) == "="]
    assert [(cc.span(c).line, cc.span(c).col) for c in assignments] == [(5, 5), (7, 3)]
    assert unit.text(assignments[0]) == "p[0] = p[1]" and cc.is_verbatim(assignments[0])
    sum_ = next(c for c in cc.walk(assignments[1]) if cc.binary_op(c) == "+")
    if not cc.tells_macro_bodies():
        pytest.skip("libclang 18 gives no spelling locations")
    assert not cc.is_verbatim(sum_)


def test_known_headers() -> None:
    assert is_known("cuda_fp16.h") and is_known("cub/cub.cuh") and is_known("c10/cuda/CUDAGuard.h")
    assert is_known("cuda/std/limits") and not is_known("cuda/my_helpers.cuh")
    assert not is_known("cutlass/array.h")
