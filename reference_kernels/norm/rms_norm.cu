// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
RMSNorm over the last dimension: y = x / sqrt(mean(x^2) + eps) * weight

One block owns one row. Every thread walks the row in VEC-wide steps (eight 16-bit
elements are one 128-bit access), adds up squares in fp32, and the block reduces them:
a shuffle tree inside each warp, one shared slot a warp, the first warp adds the slots.
The row is read a second time to write the result. It comes from L1/L2 then, which is
cheaper than holding a row of unknown length in registers.

The product is rounded once, at the end: y = T(f(x) * rstd * f(weight)).
Rows may be strided (a slice of a wider tensor); elements inside a row are contiguous.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ float warp_reduce_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// The sum over the block; only the first warp's result is complete.
__device__ __forceinline__ float block_reduce_sum(float value, float* partial) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  value = warp_reduce_sum(value);
  if (lane == 0) {
    partial[warp] = value;
  }
  __syncthreads();
  if (warp == 0) {
    value = lane < (blockDim.x >> 5) ? partial[lane] : 0.0f;
    value = warp_reduce_sum(value);
  }
  return value;
}

template <typename scalar_t, int VEC>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out,           // [tokens, hidden]
                                const scalar_t* __restrict__ input,   // [tokens, hidden], rows input_stride apart
                                const int64_t input_stride,
                                const scalar_t* __restrict__ weight,  // [hidden]
                                const float epsilon, const int hidden_size) {
  __shared__ float partial[32];
  __shared__ float s_rstd;

  using vec_t = Vec<scalar_t, VEC>;
  const int64_t row = blockIdx.x;
  const vec_t* x_vec = reinterpret_cast<const vec_t*>(input + row * input_stride);
  const vec_t* w_vec = reinterpret_cast<const vec_t*>(weight);
  vec_t* y_vec = reinterpret_cast<vec_t*>(out + row * hidden_size);
  const int num_vecs = hidden_size / VEC;

  float sum_sq = 0.0f;
  for (int i = threadIdx.x; i < num_vecs; i += blockDim.x) {
    const vec_t x = x_vec[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(x.data[j]);
      sum_sq += f * f;
    }
  }

  sum_sq = block_reduce_sum(sum_sq, partial);
  if (threadIdx.x == 0) {
    s_rstd = rsqrtf(sum_sq / hidden_size + epsilon);
  }
  __syncthreads();
  const float rstd = s_rstd;

  for (int i = threadIdx.x; i < num_vecs; i += blockDim.x) {
    const vec_t x = x_vec[i];
    const vec_t w = w_vec[i];
    vec_t y;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(x.data[j]) * rstd;
      y.data[j] = static_cast<scalar_t>(f * static_cast<float>(w.data[j]));
    }
    y_vec[i] = y;
  }
}

template <typename scalar_t>
void rms_norm(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight, float epsilon,
              int num_tokens, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0) {
    return;
  }
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(input) |
                              reinterpret_cast<uintptr_t>(weight);
  const bool wide = addresses % 16 == 0 && hidden_size % kVec == 0 && input_stride % kVec == 0;
  const int vecs = wide ? hidden_size / kVec : hidden_size;
  const int threads = std::min((vecs + 31) / 32 * 32, 1024);
  if (wide) {
    rms_norm_kernel<scalar_t, kVec>
        <<<num_tokens, threads, 0, stream>>>(out, input, input_stride, weight, epsilon, hidden_size);
  } else {
    rms_norm_kernel<scalar_t, 1>
        <<<num_tokens, threads, 0, stream>>>(out, input, input_stride, weight, epsilon, hidden_size);
  }
}

template void rms_norm(__nv_bfloat16*, const __nv_bfloat16*, int64_t, const __nv_bfloat16*, float, int, int,
                       cudaStream_t);
template void rms_norm(__half*, const __half*, int64_t, const __half*, float, int, int, cudaStream_t);
template void rms_norm(float*, const float*, int64_t, const float*, float, int, int, cudaStream_t);
