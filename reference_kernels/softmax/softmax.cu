// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Softmax over the last dimension with the online recurrence, one block a row.

The textbook needs a pass for the maximum and a pass for the sum. Online softmax keeps
both at once: a running maximum m and the sum d of exp(x - m) so far. A larger x rescales
what was summed, d <- d * exp(m_old - m_new) + exp(x - m_new), and two partial results
merge by the same rule, so the block reduction works on (m, d) pairs.

Policy for the corners: a row of nothing but -inf (everything masked) gives zeros, not NaN;
a NaN or +inf anywhere gives a row of NaN. Rows may be strided.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <stdint.h>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

struct MaxSum {
  float m;  // maximum seen
  float d;  // sum of exp(x - m)
};

__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
  MaxSum r;
  r.m = fmaxf(a.m, b.m);
  // -inf - -inf would be NaN: nothing but masked elements so far, any finite shift will do.
  const float shift = r.m == -CUDART_INF_F ? 0.0f : r.m;
  r.d = a.d * expf(a.m - shift) + b.d * expf(b.m - shift);
  return r;
}

__device__ __forceinline__ MaxSum warp_merge(MaxSum s) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    MaxSum other;
    other.m = __shfl_xor_sync(0xffffffffu, s.m, offset);
    other.d = __shfl_xor_sync(0xffffffffu, s.d, offset);
    s = merge(s, other);
  }
  return s;
}

template <typename scalar_t, int VEC>
__global__ void softmax_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input,
                               const int64_t input_stride, const int64_t output_stride, const int cols) {
  __shared__ MaxSum partial[32];
  using vec_t = Vec<scalar_t, VEC>;
  const int64_t row = blockIdx.x;
  const vec_t* x = reinterpret_cast<const vec_t*>(input + row * input_stride);
  vec_t* y = reinterpret_cast<vec_t*>(out + row * output_stride);
  const int vecs = cols / VEC;

  MaxSum s = {-CUDART_INF_F, 0.0f};
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t v = x[i];
    float f[VEC];
    float largest = s.m;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      f[j] = static_cast<float>(v.data[j]);
      largest = fmaxf(largest, f[j]);
    }
    const float shift = largest == -CUDART_INF_F ? 0.0f : largest;
    // Rescale once a vector, not once an element.
    s.d *= expf(s.m - shift);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      s.d += expf(f[j] - shift);
    }
    s.m = largest;
  }

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  s = warp_merge(s);
  if (lane == 0) {
    partial[warp] = s;
  }
  __syncthreads();
  if (lane < (blockDim.x >> 5)) {
    s = partial[lane];
  } else {
    s.m = -CUDART_INF_F;
    s.d = 0.0f;
  }
  s = warp_merge(s);

  const float shift = s.m == -CUDART_INF_F ? 0.0f : s.m;
  const float inv = s.d == 0.0f ? 0.0f : 1.0f / s.d;
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t v = x[i];
    vec_t r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      r.data[j] = static_cast<scalar_t>(expf(static_cast<float>(v.data[j]) - shift) * inv);
    }
    y[i] = r;
  }
}

template <typename scalar_t>
void softmax(scalar_t* out, const scalar_t* input, int64_t input_stride, int64_t output_stride, int rows, int cols,
             cudaStream_t stream) {
  if (rows == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(input);
  const bool wide = addresses % 16 == 0 && cols % kVec == 0 && input_stride % kVec == 0 && output_stride % kVec == 0;
  const int items = wide ? cols / kVec : cols;
  const int threads = items >= 1024 ? 1024 : (items + 31) / 32 * 32;
  if (wide) {
    softmax_kernel<scalar_t, kVec><<<rows, threads, 0, stream>>>(out, input, input_stride, output_stride, cols);
  } else {
    softmax_kernel<scalar_t, 1><<<rows, threads, 0, stream>>>(out, input, input_stride, output_stride, cols);
  }
}

template void softmax(__nv_bfloat16*, const __nv_bfloat16*, int64_t, int64_t, int, int, cudaStream_t);
template void softmax(__half*, const __half*, int64_t, int64_t, int, int, cudaStream_t);
template void softmax(float*, const float*, int64_t, int64_t, int, int, cudaStream_t);
