"""The rewrites that a port may show, each with a kernel that has its idiom. `porter patterns` and docs/patterns.md show
these kernels as they are ported today; tests/patterns/test_catalogue.py ports every one of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """`before` is a whole CUDA kernel; its port must contain every text of `shows`. `assumes` "" means exact."""

    name: str
    title: str
    module: str  # where the rewrite lives, below porter/
    before: str
    shows: tuple[str, ...]
    assumes: str = ""
    instances: tuple[str, ...] = ()


def all_patterns() -> tuple[Pattern, ...]:
    """Every pattern, in the order of the documentation."""
    return PATTERNS


PATTERNS = (
    Pattern(
        "guard",
        "a return at the top of a kernel becomes an if around the rest",
        "patterns/exits.py",
        """\
__global__ void guard(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] = 1.0f;
}
""",
        ("if i < n:",),
    ),
    Pattern(
        "loop_exit",
        "break and continue become flags and conditions, as CuTeDSL loops have no early exit",
        "patterns/exits.py",
        """\
__global__ void find(const int* keys, int* where, int key, int n) {
  for (int i = 0; i < n; ++i) {
    if (keys[i] < 0) continue;
    if (keys[i] == key) {
      where[threadIdx.x] = i;
      break;
    }
  }
}
""",
        ("while ", "= Boolean(True)"),
    ),
    Pattern(
        "strided_loop",
        "a loop over a block's or a grid's threads becomes a range with a step",
        "emit/loops.py",
        """\
__global__ void fill(float* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 0.0f;
}
""",
        ("in range(tidx, n, ",),
    ),
    Pattern(
        "constant_loop",
        "an unrolled loop with constant bounds becomes a loop over Python numbers",
        "emit/loops.py",
        """\
__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void warp_sums(float* x) { x[threadIdx.x] = warp_sum(x[threadIdx.x]); }
""",
        ("for offset in (16, 8, 4, 2, 1):", "lib.shfl_xor("),
    ),
    Pattern(
        "template_parameters",
        "template parameters stay parameters of the port, and what differs between instances is a const_expr",
        "emit/generic.py",
        """\
template <typename T, int N>
__global__ void negate(T* x) {
  for (int j = 0; j < N; ++j) x[j] = static_cast<T>(-static_cast<float>(x[j]));
}
""",
        ("T: cutlass.Constexpr", "N: cutlass.Constexpr"),
        instances=("negate<__half, 8>", "negate<float, 4>"),
    ),
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
    ),
    Pattern(
        "reference_parameter",
        "a device function that writes through references is inlined: CuTeDSL passes scalars by value",
        "patterns/inline.py",
        """\
__device__ void update(float& best, int& index, float value, int at) {
  if (value > best) {
    best = value;
    index = at;
  }
}

__global__ void arg_max(const float* x, int* out, int n) {
  float best = x[0];
  int index = 0;
  for (int i = 1; i < n; ++i) update(best, index, x[i], i);
  out[0] = index;
}
""",
        ("best = value", "index = i"),
    ),
    Pattern(
        "reference_local",
        "a local reference becomes the place it names",
        "patterns/references.py",
        """\
__global__ void bump(float* x) {
  float& mine = x[threadIdx.x];
  mine += 1.0f;
  mine *= 2.0f;
}
""",
        ("[0] + 1.0", "[0] * 2.0"),
    ),
    Pattern(
        "shared_in_function",
        "a shared variable of a device function is declared by the kernel and passed down",
        "patterns/shared_params.py",
        """\
__device__ float share(float v) {
  __shared__ float box;
  if (threadIdx.x == 0) box = v;
  __syncthreads();
  return box;
}

__global__ void spread(float* x) { x[threadIdx.x] = share(x[0]); }
""",
        ("box = lib.shared(Float32, 1)", "share(x[0], box)"),
    ),
    Pattern(
        "dynamic_shared",
        "an extern __shared__ array is the start of the dynamic shared memory",
        "emit/stmt.py",
        """\
__global__ void stage(float* x) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
""",
        ("lib.dyn_shared(Float32", "cute.arch.sync_threads()"),
    ),
    Pattern(
        "struct_parameter",
        "a kernel parameter that is a struct is passed member by member",
        "patterns/struct_params.py",
        """\
struct Params {
  float* out;
  const float* in;
  float scale;
};

__global__ void scaled(Params p) { p.out[threadIdx.x] = p.in[threadIdx.x] * p.scale; }
""",
        ("p_out: cute.Pointer", "p_scale: Float32"),
    ),
    Pattern(
        "c_division",
        "integer division and remainder that may see a negative number truncate, as in C",
        "emit/expr.py",
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
    ),
    Pattern(
        "cub_block_reduce",
        "a cub reduction or scan becomes the corpus function of that name",
        "patterns/library.py",
        """\
#include <cub/cub.cuh>

__global__ void total(const float* x, float* out) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = sum;
}
""",
        ("lib.block_reduce(",),
        assumes="that the order of a floating-point sum is free, as cub says",
    ),
    Pattern(
        "cooperative_group_warp",
        "handles of cooperative groups disappear, and their methods become warp and block operations",
        "patterns/library.py",
        """\
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void warp_total(const float* x, float* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const float sum = cg::reduce(warp, x[threadIdx.x], cg::plus<float>());
  if (warp.thread_rank() == 0) out[warp.meta_group_rank()] = sum;
}
""",
        ("lib.warp_sum(",),
        assumes="that the order of a floating-point sum is free, as cooperative groups say",
    ),
    Pattern(
        "grid_barrier",
        "a barrier over the grid stays one, and the port is launched cooperatively",
        "patterns/library.py",
        """\
#include <cooperative_groups.h>

__global__ void two_phases(int* x) {
  x[blockIdx.x] = 1;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) x[0] = x[gridDim.x - 1];
}
""",
        ("lib.grid_sync()",),
    ),
)
