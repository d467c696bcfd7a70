// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Residual add and RMSNorm in one pass over memory, both operands updated in place:

    residual <- T(input + residual)
    input    <- T(f(residual) * rstd * f(weight))

The sum is rounded to T before anything else looks at it: the variance and the result are
computed from the rounded residual, so the kernel agrees bit for bit with an addition
kernel followed by a norm kernel.

One block owns one row. A thread reads back only the residual elements it wrote itself,
therefore the second loop needs no fence, just the barrier inside the reduction.
Eight elements travel together in one 128-bit access.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

template <typename scalar_t, int VEC>
__device__ __forceinline__ float add_and_square(Vec<scalar_t, VEC>& residual, const Vec<scalar_t, VEC>& x) {
  float sum_sq = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    residual.data[j] = static_cast<scalar_t>(static_cast<float>(x.data[j]) + static_cast<float>(residual.data[j]));
    const float z = static_cast<float>(residual.data[j]);
    sum_sq += z * z;
  }
  return sum_sq;
}

// The sum over the block, given to every thread: each warp adds up the partial sums for itself, one barrier in all.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float partial[32];
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, mask);
  }
  if (lane == 0) {
    partial[threadIdx.x / 32] = value;
  }
  __syncthreads();
  value = lane < blockDim.x / 32 ? partial[lane] : 0.0f;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, mask);
  }
  return value;
}

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(1024)
    fused_add_rms_norm_kernel(scalar_t* __restrict__ input,         // [tokens, hidden], rows input_stride apart
                              const int64_t input_stride,
                              scalar_t* __restrict__ residual,      // [tokens, hidden]
                              const scalar_t* __restrict__ weight,  // [hidden]
                              const float epsilon, const int hidden_size) {
  using vec_t = Vec<scalar_t, VEC>;
  const int vecs = hidden_size / VEC;
  vec_t* x = reinterpret_cast<vec_t*>(input + int64_t(blockIdx.x) * input_stride);
  vec_t* r = reinterpret_cast<vec_t*>(residual + int64_t(blockIdx.x) * hidden_size);
  const vec_t* w = reinterpret_cast<const vec_t*>(weight);

  float sum_sq = 0.0f;
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    vec_t z = r[i];
    sum_sq += add_and_square<scalar_t, VEC>(z, x[i]);
    r[i] = z;
  }

  const float rstd = rsqrtf(block_sum(sum_sq) / static_cast<float>(hidden_size) + epsilon);

  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t z = r[i];
    const vec_t g = w[i];
    vec_t y;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      y.data[j] = static_cast<scalar_t>(static_cast<float>(z.data[j]) * rstd * static_cast<float>(g.data[j]));
    }
    x[i] = y;
  }
}

static bool is_aligned(const void* pointer, size_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

template <typename scalar_t>
void fused_add_rms_norm(scalar_t* input, int64_t input_stride, scalar_t* residual, const scalar_t* weight,
                        float epsilon, int num_tokens, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0) return;
  const dim3 grid(num_tokens);
  const bool can_vectorize = is_aligned(input, 16) && is_aligned(residual, 16) && is_aligned(weight, 16) &&
                             hidden_size % 8 == 0 && input_stride % 8 == 0;
  // Few rows leave most of the device idle: a wide block shortens each row. With many rows narrow blocks overlap better.
  const int max_threads = num_tokens < 256 ? 1024 : 256;
  const int items = can_vectorize ? hidden_size / 8 : hidden_size;
  const int threads = items < max_threads ? (items + 31) / 32 * 32 : max_threads;
  if (can_vectorize) {
    fused_add_rms_norm_kernel<scalar_t, 8>
        <<<grid, threads, 0, stream>>>(input, input_stride, residual, weight, epsilon, hidden_size);
  } else {
    fused_add_rms_norm_kernel<scalar_t, 1>
        <<<grid, threads, 0, stream>>>(input, input_stride, residual, weight, epsilon, hidden_size);
  }
}

template void fused_add_rms_norm(__nv_bfloat16*, int64_t, __nv_bfloat16*, const __nv_bfloat16*, float, int, int,
                                 cudaStream_t);
template void fused_add_rms_norm(__half*, int64_t, __half*, const __half*, float, int, int, cudaStream_t);
