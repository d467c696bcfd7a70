"""Lifts: patterns of `--style tensor`, for the catalogue."""

from __future__ import annotations

from porter.patterns.idioms.pattern import Assumption, Pattern

_SCALE = """\
struct alignas(16) Vec {
  float data[4];
};

__global__ void scale(float* __restrict__ out, const float* __restrict__ in, long stride, float factor, int n) {
  const Vec* x = reinterpret_cast<const Vec*>(in + blockIdx.x * stride);
  Vec* y = reinterpret_cast<Vec*>(out + blockIdx.x * (long)n);
  for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {
    const Vec v = x[i];
    Vec r;
#pragma unroll
    for (int j = 0; j < 4; ++j) r.data[j] = v.data[j] * factor;
    y[i] = r;
  }
}
"""
_CASE = """\
kernel = "scale"
[sizes]
rows = [1, 3]
n = [4, 64]
[[buffers]]
name = "out"
dtype = "f32"
shape = ["rows", "n"]
role = "out"
[[buffers]]
name = "in"
dtype = "f32"
shape = ["rows", "n"]
strides = ["stride", 1]
[scalars]
stride = "n"
factor = 2.0
n = "n"
[launch]
grid = ["rows", 1, 1]
block = [32, 1, 1]
"""
_SHAPE = Assumption(
    "that a buffer has the shape and the strides that the case gives it",
    "case",
    "the torch-facing function refuses other operands; accesses have the original's addresses for any values",
)

PATTERNS = (
    Pattern(
        "tensor",
        "a buffer whose shape the case gives is a tensor; a pointer to a row is that row (`--style tensor`)",
        "lift/kernel.py",
        _SCALE,
        ("= lib.tensor(", "cute.local_tile("),
        assumes=(_SHAPE,),
        case=_CASE,
    ),
    Pattern(
        "tensor_access",
        "a vector that is loaded or stored whole is a tile of its row (`--style tensor`)",
        "lift/kernel.py",
        _SCALE,
        ("lib.load(x[None, i], readonly=True)", "y[None, i].store(r)"),
        assumes=(
            Assumption(
                "that the buffer and its rows are aligned as the vectors that the source moves",
                "source",
                "the source dereferences a pointer to them, which is undefined otherwise",
            ),
        ),
        case=_CASE,
    ),
    Pattern(
        "vector_arithmetic",
        "a loop over the lanes of a vector is arithmetic of vectors, where every lane does the same (`--style tensor`)",
        "lift/vectors.py",
        _SCALE,
        ("r = v * factor",),
        assumes=(
            Assumption("that the order of every sum stays", "proved", "`lib.total` adds in the order of the loop"),
        ),
        case=_CASE,
    ),
    Pattern(
        "named_reduction",
        "a loop of shuffles that reduces over a warp is `lib.warp_sum` or `lib.warp_max` (`--style tensor`)",
        "lift/shuffles.py",
        """\
__global__ void scale(float* out, const float* in, long stride, float factor, int n) {
  float sum = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  out[threadIdx.x] = sum;
}
""",
        ("sum = lib.warp_sum(sum)",),
        assumes=(Assumption("that the order of the sum stays", "proved", "the function shuffles by the same offsets"),),
        case=_CASE,
    ),
)
