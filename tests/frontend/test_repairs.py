"""Text that nvcc accepts and clang refuses is repaired for the parse, and the file's lines stay where they are."""

from porter.frontend.parse import ParseOptions, parse_source
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
