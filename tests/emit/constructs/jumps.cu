// goto, recursion of a known depth, inline PTX in nvcc's spelling, operators of templates.
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <bit>
#include <functional>
#include <limits>
#include <stdint.h>
__global__ void leaves_loops(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, found = -1, seen = 0;
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 8; ++c) {
      ++seen;
      if ((i[512 + r * 8 + c] & 15) == (t & 15)) {
        found = r * 8 + c;
        goto done;
      }
    }
    seen += 100;
  }
  found = -2;
done:
  i[t] = found * 1000 + seen;
  for (int r = 0; r < 4; ++r) {
    int k = 0;
    while (true) {
      switch ((u[t] >> k) & 3) {
        case 0: goto next;
        case 1: k += 2; break;
        default: ++k;
      }
      if (k > 20) goto next;
      if (k == 13) goto out;
    }
  next:
    i[64 + t] += k + r;
  }
out:
  i[128 + t] = 7;
}
__global__ void cleans_up(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int state;
  if (t >= n) goto fail;
  i[t] += 1;
  if (i[t] % 3 == 0) {
    if (u[t] & 1) goto fail;
    u[t] += 5;
  }
  i[t] *= 2;
  goto end;
fail:
  state = t + 1;
  i[t] = -state;
  if (u[t] & 2) return;
  u[t] = state;
end:
  f[t] = i[t];
}
__global__ void goes_back(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, turns = 0;
  unsigned v = u[t];
again:
  int bit = v & 1;
  v >>= 1;
  ++turns;
  if (bit == 0 && v) goto again;
  if (turns < 3 && v) {
    v ^= 1;
    goto again;
  }
  i[t] = turns * 2 + bit;
  u[t] = v;
}

__device__ int fact(int k) { return k <= 1 ? 1 : k * fact(k - 1); }
__device__ unsigned power(unsigned x, int k) {
  if (k == 0) return 1;
  unsigned half = power(x, k / 2);
  return k % 2 ? half * half * x : half * half;
}
__device__ int odd(int k);
__device__ int even(int k) { return k == 0 || odd(k - 1) ? k + 1 : 0; }
__device__ int odd(int k) { return k != 0 && even(k - 1) ? k + 2 : 0; }
__device__ void sums(int* row, int width) {
  if (width == 1) return;
  for (int k = 0; k < width / 2; ++k) row[k] += row[k + width / 2];
  sums(row, width / 2);
}
__global__ void recursive(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  i[t] = fact(6) + even(5) + odd(4);
  u[t] = power(u[t], 5) + power(3, 3);
  int row[8];
  for (int k = 0; k < 8; ++k) row[k] = i[64 + t + k] & 0xff;
  sums(row, 8);
  i[256 + t] = row[0];
}

__device__ unsigned lane() { unsigned r; asm("mov.u32 %0, %laneid;" : "=r"(r)); return r; }
#define SPECIAL(name, reg) \
  __device__ unsigned name() { unsigned r; asm volatile("mov.u32 %0, %" #reg ";" : "=r"(r)); return r; }
SPECIAL(column, tid.x)
SPECIAL(below, lanemask_lt)
__global__ void registers(int* i, unsigned* u, float* f, int n) {
  unsigned both;
  asm volatile("{ .reg .u32 a; mov.u32 a, %ntid.x; add.u32 %0, a, %1; }" : "=r"(both) : "r"(lane()));
  u[threadIdx.x] = lane() + 100 * column();
  u[64 + threadIdx.x] = below() ^ both;
}

struct Larger {
  template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};
template <typename T> struct Closer : public std::binary_function<T, T, T> {
  __device__ T operator()(const T& a, const T& b) const { return a * a < b * b ? a : b; }
};
template <template <typename> class Op, typename T> __device__ T whole_block(T v) {
  using Reduce = cub::BlockReduce<T, 64>;
  __shared__ typename Reduce::TempStorage scratch;
  return Reduce(scratch).Reduce(v, Op<T>());
}
__global__ void operators(int* i, unsigned* u, float* f, int n) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage scratch;
  int most = Reduce(scratch).Reduce(i[threadIdx.x], Larger());
  __syncthreads();
  int least = Reduce(scratch).Reduce(i[threadIdx.x], cub::Min(), 40);
  float near = whole_block<Closer>(f[threadIdx.x]);
  if (threadIdx.x == 0) { i[64] = most; i[65] = least; f[64] = near; f[65] = cub::FpLimits<float>::Lowest(); }
}

template <std::float_round_style S> __device__ float rounded(float v) {
  return S == std::round_toward_infinity ? ceilf(v) : rintf(v);
}
__global__ void words(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __half2_raw h = *reinterpret_cast<__half2*>(&u[t]);
  h.x ^= 0x8000;
  *reinterpret_cast<__half2*>(&u[t]) = h;
  __nv_bfloat162_raw b = *reinterpret_cast<__nv_bfloat162*>(&u[64 + t]);
  unsigned short low = b.x;
  b.x = b.y;
  b.y = low;
  *reinterpret_cast<__nv_bfloat162*>(&u[64 + t]) = __nv_bfloat162(b);
  u[128 + t] ^= UINT32_C(0x80000000);
  f[t] = rounded<std::round_to_nearest>(f[t]) + rounded<std::round_toward_infinity>(f[64 + t]);
}

struct Scratch { float sums[8]; int warps; double wide[2]; };
extern __shared__ Scratch scratch;
__global__ void shared_objects(int* i, unsigned* u, float* f, int n) {
  extern __shared__ float4 four;
  int t = threadIdx.x;
  if (t < 8) scratch.sums[t] = f[t];
  if (t == 9) { scratch.warps = n; scratch.wide[1] = 0.5; four.y = f[9]; }
  __syncthreads();
  f[t] = scratch.sums[t % 8] * (float)scratch.wide[1] + four.y;
  i[t] = scratch.warps;
}
