"""Patterns of accesses, aggregates, arithmetic, for the catalogue."""

from __future__ import annotations

from porter.patterns.idioms.pattern import Assumption, Pattern

PATTERNS = (
    Pattern(
        "vector_access",
        "a load or store of a vector type through reinterpret_cast is one wide access",
        "patterns/aggregates.py",
        """\
__global__ void scale4(float* x, float a) {
  float4 v = reinterpret_cast<float4*>(x)[threadIdx.x];
  v.x *= a;
  v.y *= a;
  v.z *= a;
  v.w *= a;
  reinterpret_cast<float4*>(x)[threadIdx.x] = v;
}
""",
        ("lib.local(Float32, 4)", "lib.copy("),
        assumes=(
            Assumption(
                "that every address is aligned as the vector type says",
                "source",
                "by the cast",
                "sanitizer",
            ),
        ),
    ),
    Pattern(
        "readonly_load",
        "loads through a const __restrict__ parameter are read-only loads, as with nvcc",
        "patterns/readonly.py",
        """\
__global__ void scale(float* __restrict__ y, const float* __restrict__ x) { y[threadIdx.x] = 2.0f * x[threadIdx.x]; }
""",
        ("lib.ldg(",),
        assumes=(
            Assumption(
                "that nobody writes the memory of a const __restrict__ parameter while the kernel runs",
                "source",
                "by __restrict__",
                "numerics",
            ),
        ),
    ),
    Pattern(
        "access_function",
        "a load or store by function becomes an access; of the cache hints, read-only is kept",
        "patterns/aggregates.py",
        """\
__global__ void copy(float4* out, const float4* in) {
  const float4 v = __ldg(in + threadIdx.x);
  __stcs(out + threadIdx.x, v);
}
""",
        ("readonly=True)",),
    ),
    Pattern(
        "member_wise",
        "a struct, vector or array value is computed member by member",
        "patterns/aggregates.py",
        """\
#include <cuda_fp16.h>

__global__ void twice(__half2* x) {
  const __half2 v = x[threadIdx.x];
  x[threadIdx.x] = __hadd2(v, v);
}
""",
        ("packed[1] = ",),
    ),
    Pattern(
        "struct_local",
        "a local struct becomes one local per member",
        "patterns/aggregates.py",
        """\
struct Best {
  float value;
  int at;
};

__global__ void best(const float* x, int* out, int n) {
  Best b{x[0], 0};
  for (int i = 1; i < n; ++i)
    if (x[i] > b.value) b = Best{x[i], i};
  out[0] = b.at;
}
""",
        (
            "b_value = ",
            "b_at = ",
        ),
        assumes=(
            Assumption(
                "that nothing reaches the struct as one piece of memory",
                "proved",
                "a struct whose address is taken, or that is copied wider than its members, stays memory",
            ),
        ),
    ),
    Pattern(
        "byte_copy",
        "memcpy of a constant size becomes a copy as wide as the types promise",
        "patterns/library.py",
        """\
__global__ void bits(unsigned* out, const float* x) {
  unsigned u;
  float f = x[threadIdx.x];
  memcpy(&u, &f, sizeof(u));
  out[threadIdx.x] = u;
}
""",
        ("lib.copy_bytes(",),
    ),
    Pattern(
        "c_division",
        "integer division and remainder that may see a negative number truncate, as in C",
        "emit/expressions/expr.py",
        """\
__global__ void divide(int* q, const int* a, int b) { q[threadIdx.x] = a[threadIdx.x] / b; }
""",
        ("lib.c_div(",),
    ),
    Pattern(
        "constant_arithmetic",
        "arithmetic on floating-point constants is done in C++'s types: the DSL would compute in double precision",
        "patterns/constants.py",
        """\
#include <cuda_fp16.h>

__global__ void scale(__half* x) {
  const __half third = __float2half(1.0f) / __float2half(3.0f);
  x[threadIdx.x] = x[threadIdx.x] * third;
}
""",
        ("Float16(0.33325195)",),
    ),
    Pattern(
        "bit_cast",
        "a bit cast between scalars is one of registers",
        "patterns/library.py",
        """\
#include <cuda/std/bit>

__global__ void bits(unsigned* out, const float* x) {
  out[threadIdx.x] = cuda::std::bit_cast<unsigned>(x[threadIdx.x]);
}
""",
        ("lib.",),
    ),
    Pattern(
        "sine_and_cosine",
        "sincosf becomes a sine and a cosine",
        "patterns/library.py",
        """\
__global__ void turn(float* s, float* c, const float* x) { sincosf(x[threadIdx.x], s + threadIdx.x, c + threadIdx.x); }
""",
        (
            "sin(",
            "cos(",
        ),
    ),
    Pattern(
        "fp8_format",
        "a conversion whose format is a parameter takes the format that every call gives",
        "patterns/fp8_modes.py",
        """\
#include <cuda_fp8.h>

__device__ unsigned char quantize(float x, __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, format);
}

__global__ void codes(unsigned char* q, const float* x) { q[threadIdx.x] = quantize(x[threadIdx.x], __NV_E4M3); }
""",
        ("Float8E4M3FN(",),
        assumes=(
            Assumption(
                "that every call gives the same format",
                "proved",
                "all calls are in the kernel",
            ),
        ),
    ),
)
