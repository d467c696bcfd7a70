"""Folders of -I that hold what porter declares itself: CUDA's own headers, parts of PyTorch's, cub's."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source

KERNEL = """
template <typename T> __global__ void k(T* x, int n) { int i = threadIdx.x; if (i < n) x[i] = x[i] * scaled(x[i]); }
void go(%(type)s* x, int n) { k<%(type)s><<<1, 32>>>(x, n); }
"""
TREES = {
    "CUDA's header of halves": (
        "cuda_fp16.h",
        "struct __half { unsigned short bits; __half operator*(__half); };",
        "__half",
    ),
    "a part of PyTorch's": (
        "c10/util/Half.h",
        "#include <c10/macros/Generated.h>\nnamespace c10 { struct Half { unsigned short x; MACRO Half(float); }; }",
        "c10::Half",
    ),
    "cub": (
        "cub/block/block_reduce.cuh",
        "#include <cub/config.cuh>\nCUB_NAMESPACE_BEGIN\ntemplate <class T, int N> class BlockReduce {};\n",
        "float",
    ),
}


@pytest.mark.parametrize("what", TREES)
def test_porters_own_declarations_stand_for_headers_outside_of_the_project(what: str, tmp_path: Path):
    name, text, scalar = TREES[what]
    header = tmp_path / "toolkit" / "include" / name
    header.parent.mkdir(parents=True)
    header.write_text(text)
    project = tmp_path / "work" / "project"
    project.mkdir(parents=True)
    (project / "setup.py").write_text("")
    (project / "scaled.h").write_text("template <typename T> __device__ T scaled(T v) { return v * v; }\n")
    source = project / "k.cu"
    source.write_text(f'#include <{name}>\n#include "scaled.h"\n' + KERNEL % {"type": scalar})
    unit = parse_source(Source.read(source), ParseOptions((str(tmp_path / "toolkit" / "include"), str(project))))
    assert [k.name for k in unit.kernels] == ["k"] and not unit.kernels[0].errors and not unit.diagnostics


def test_a_header_of_the_project_with_a_known_name_is_the_projects(tmp_path: Path):
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "queue").write_text("__device__ inline int slots() { return 4; }\n")
    source = tmp_path / "k.cu"
    source.write_text("#include <queue>\n__global__ void k(int* x) { *x = slots(); }\n")
    unit = parse_source(Source.read(source), ParseOptions((str(tmp_path / "include"),)))
    assert not unit.kernels[0].errors


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20"])
def test_every_standard_parses_without_a_message(std: str):
    text = "#include <bit>\n#include <version>\n#include <type_traits>\n"
    text += "__global__ void k(unsigned* x) { *x ^= UINT32_C(1); }\n"
    unit = parse_source(Source(Path("k.cu"), text), ParseOptions(std=std))
    assert unit.kernels and not unit.kernels[0].errors and not unit.diagnostics


def test_concepts_and_bits_of_cxx20():
    text = """
#include <bit>
#include <concepts>
#include <source_location>
template <std::unsigned_integral U> constexpr bool fits(U v) { return std::has_single_bit(v); }
template <typename T, unsigned N> requires(fits(N) && std::integral<T>)
__global__ void k(T* x) { x[threadIdx.x % N] = T(std::bit_width(N)) + T(std::countl_zero(unsigned(x[0]))); }
template __global__ void k<int, 64u>(int*);
constexpr auto where = std::source_location::current();
static_assert(std::bit_ceil(9u) == 16u && std::bit_floor(9u) == 8u && std::rotl(0x80000001u, 1) == 3u);
static_assert(std::countr_zero(8u) == 3 && std::countl_zero(1u) == 31 && std::rotr(1u, 1) == 0x80000000u);
static_assert(std::same_as<int, int> && !std::floating_point<int> && std::convertible_to<int, float>);
"""
    unit = parse_source(Source(Path("k.cu"), text), ParseOptions(std="c++20"))
    assert unit.kernels and not unit.kernels[0].errors and not unit.diagnostics
