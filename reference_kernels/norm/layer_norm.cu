// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
LayerNorm over the last dimension: y = (x - mean) / sqrt(var + eps) * gamma + beta

Two passes over the row for the statistics. The second one sums (x - mean)^2 with the
true mean: E[x^2] - mean^2 would need one pass fewer, but cancels when the mean is large
against the spread. gamma and beta stay in fp32 whatever the type of the activations.

One block a row; the same scratch words serve both reductions, so a barrier stands
before the second one writes them again.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

constexpr int kWarpSize = 32;
constexpr unsigned kFullMask = 0xffffffffu;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

template <int N>
__device__ __forceinline__ void load_floats(float (&dst)[N], const float* __restrict__ src) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int j = 0; j < N / 4; ++j) {
      const float4 f = __ldg(reinterpret_cast<const float4*>(src) + j);
      dst[4 * j + 0] = f.x;
      dst[4 * j + 1] = f.y;
      dst[4 * j + 2] = f.z;
      dst[4 * j + 3] = f.w;
    }
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      dst[j] = __ldg(src + j);
    }
  }
}

__device__ __forceinline__ float block_all_reduce_sum(float value, float* scratch) {
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int num_warps = blockDim.x / kWarpSize;
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset >>= 1) {
    value += __shfl_down_sync(kFullMask, value, offset);
  }
  if (lane == 0) {
    scratch[warp] = value;
  }
  __syncthreads();
  value = lane < num_warps ? scratch[lane] : 0.0f;
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset >>= 1) {
    value += __shfl_down_sync(kFullMask, value, offset);
  }
  return __shfl_sync(kFullMask, value, 0);
}

template <typename scalar_t, int VEC>
__global__ void layer_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input,
                                  const float* __restrict__ gamma, const float* __restrict__ beta,
                                  const int64_t input_stride, const float epsilon, const int hidden_size) {
  __shared__ float scratch[kWarpSize];

  const scalar_t* x = input + static_cast<int64_t>(blockIdx.x) * input_stride;
  scalar_t* y = out + static_cast<int64_t>(blockIdx.x) * hidden_size;
  const float inv_hidden = 1.0f / static_cast<float>(hidden_size);
  const int step = blockDim.x * VEC;

  float sum = 0.0f;
  for (int i = threadIdx.x * VEC; i < hidden_size; i += step) {
    const Vec<scalar_t, VEC> v = *reinterpret_cast<const Vec<scalar_t, VEC>*>(x + i);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      sum += static_cast<float>(v.data[j]);
    }
  }
  const float mean = block_all_reduce_sum(sum, scratch) * inv_hidden;
  __syncthreads();

  float sum_sq = 0.0f;
  for (int i = threadIdx.x * VEC; i < hidden_size; i += step) {
    const Vec<scalar_t, VEC> v = *reinterpret_cast<const Vec<scalar_t, VEC>*>(x + i);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float d = static_cast<float>(v.data[j]) - mean;
      sum_sq += d * d;
    }
  }
  const float variance = block_all_reduce_sum(sum_sq, scratch) * inv_hidden;
  const float rstd = rsqrtf(variance + epsilon);

  for (int i = threadIdx.x * VEC; i < hidden_size; i += step) {
    const Vec<scalar_t, VEC> v = *reinterpret_cast<const Vec<scalar_t, VEC>*>(x + i);
    float g[VEC];
    float b[VEC];
    load_floats<VEC>(g, gamma + i);
    load_floats<VEC>(b, beta + i);
    Vec<scalar_t, VEC> o;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      o.data[j] = static_cast<scalar_t>((static_cast<float>(v.data[j]) - mean) * rstd * g[j] + b[j]);
    }
    *reinterpret_cast<Vec<scalar_t, VEC>*>(y + i) = o;
  }
}

template <typename scalar_t, int VEC>
static void launch_layer_norm(scalar_t* out, const scalar_t* input, const float* gamma, const float* beta,
                              int64_t input_stride, float epsilon, int num_tokens, int hidden_size,
                              cudaStream_t stream) {
  const int vecs = (hidden_size + VEC - 1) / VEC;
  int threads = (vecs + kWarpSize - 1) / kWarpSize * kWarpSize;
  threads = threads > 512 ? 512 : threads;
  layer_norm_kernel<scalar_t, VEC>
      <<<num_tokens, threads, 0, stream>>>(out, input, gamma, beta, input_stride, epsilon, hidden_size);
}

template <typename scalar_t>
void layer_norm(scalar_t* out, const scalar_t* input, const float* gamma, const float* beta, int64_t input_stride,
                float epsilon, int num_tokens, int hidden_size, cudaStream_t stream) {
  if (num_tokens <= 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uint64_t bits = reinterpret_cast<uint64_t>(out) | reinterpret_cast<uint64_t>(input) |
                        reinterpret_cast<uint64_t>(gamma) | reinterpret_cast<uint64_t>(beta);
  if ((bits & 15) == 0 && hidden_size % kVec == 0 && input_stride % kVec == 0) {
    launch_layer_norm<scalar_t, kVec>(out, input, gamma, beta, input_stride, epsilon, num_tokens, hidden_size, stream);
  } else {
    launch_layer_norm<scalar_t, 1>(out, input, gamma, beta, input_stride, epsilon, num_tokens, hidden_size, stream);
  }
}

template void layer_norm(__nv_bfloat16*, const __nv_bfloat16*, const float*, const float*, int64_t, float, int, int,
                         cudaStream_t);
template void layer_norm(__half*, const __half*, const float*, const float*, int64_t, float, int, int, cudaStream_t);
template void layer_norm(float*, const float*, const float*, const float*, int64_t, float, int, int, cudaStream_t);
