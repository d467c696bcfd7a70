"""Text that nvcc accepts and clang refuses is repaired for the parse, and the file's lines stay where they are."""

from pathlib import Path

from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source

TEXT = """template <class A, class B> struct cast_to {
  template <int N> static __device__ void cast(A* a, const B* b) { for (int i = 0; i < N; ++i) a[i] = b[i]; }
};
template <class A, class B, int N> __device__ void convert(A* a, const B* b) { cast_to<A, B>::cast<N>(a, b); }
__global__ void k(float* a, int* b) {
  extern __shared__ float rows[8][32];
  convert<float, int, 4>(a, b);
  a[5] = rows[1][threadIdx.x];
}
"""


def test_repairs(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(TEXT)
    unit = parse_source(Source.read(path), ParseOptions())
    seen = unit.bytes_of(str(path)).decode()
    assert "cast_to<A, B>::template cast<N>(a, b)" in seen
    assert "rows[][32]" in seen
    assert seen.count("\n") == TEXT.count("\n")
    assert not [d for d in unit.tu.diagnostics if d.severity > 2]
    assert not unit.kernels[0].errors
    assert path.read_text() == TEXT
    again = parse_source(unit.source, ParseOptions(), append="int extra;", stand_ins=unit.stand_ins)
    assert again.bytes_of(str(path)).decode() == seen + "\nint extra;"


MACROS = """#define UNROLL #pragma unroll
#define UNROLL_BY_4 #  pragma unroll 4 // four
__device__ float sum(const float* a) {
  float s = 0;
  UNROLL
  for (int i = 0; i < 8; ++i) s += a[i];
  return s;
}
"""


def test_a_macro_that_stands_for_a_pragma(tmp_path, monkeypatch):
    """nvcc takes it; the header is named as its relative folder makes it."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include/macros.h").write_text(MACROS)
    text = """#include "macros.h"
__global__ void k(float* a, int n) {
  UNROLL_BY_4
  for (int i = 0; i < n; ++i) a[i] = sum(a + i);
}
"""
    (tmp_path / "k.cu").write_text(text)
    monkeypatch.chdir(tmp_path)
    unit = parse_source(Source.read(Path("k.cu")), ParseOptions(include_dirs=("include",)))
    assert not unit.kernels[0].errors and not [d for d in unit.tu.diagnostics if d.severity > 2]
    assert (tmp_path / "include/macros.h").read_text() == MACROS


def test_a_fault_of_host_code_is_no_fault_of_a_kernel_that_calls_the_same_name(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text("""struct Host { int* p; int* data() { return undeclared(p); } };
struct Tile { int a[4]; __device__ int* data() { return a; } };
__device__ int* broken(int* p) { return unknown(p); }
__global__ void good(int* p) { Tile t; p[0] = *t.data(); }
__global__ void bad(int* p) { p[0] = *broken(p); }
""")
    good, bad = parse_source(Source.read(path), ParseOptions()).kernels
    assert not good.errors and [e.message for e in bad.errors] == ["use of undeclared identifier 'unknown'"]
