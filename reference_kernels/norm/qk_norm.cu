// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Per-head RMSNorm of the query and key heads, in place, both in one launch.

A head is short (64 to 256 elements), so a block per head would mostly wait at barriers.
Here sixteen lanes, half a warp, own a head: for 128 elements of a 16-bit type every lane
holds exactly one 128-bit vector, the row never leaves registers, and four shuffles finish
the reduction. No shared memory, no barrier, one read and one write of each element.

q and k are views of a packed qkv projection: heads are HEAD_DIM apart, tokens q_stride and
k_stride apart, and what lies between (the v heads) is not touched. Heads are numbered over
both operands, so the last half-warps of the grid may have nothing to do; each half-warp has
its own shuffle mask and leaves alone.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

constexpr int kLanesPerHead = 16;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

template <typename scalar_t, int VEC, int HEAD_DIM>
__global__ void qk_norm_kernel(scalar_t* __restrict__ q,               // [tokens, num_q_heads, HEAD_DIM]
                               scalar_t* __restrict__ k,               // [tokens, num_k_heads, HEAD_DIM]
                               const scalar_t* __restrict__ q_weight,  // [HEAD_DIM]
                               const scalar_t* __restrict__ k_weight,  // [HEAD_DIM]
                               const int64_t q_stride, const int64_t k_stride, const int num_q_heads,
                               const int num_k_heads, const int num_tokens, const float epsilon) {
  constexpr int kVecsPerLane = HEAD_DIM / (kLanesPerHead * VEC);
  static_assert(kVecsPerLane * kLanesPerHead * VEC == HEAD_DIM, "sixteen lanes must cover a head in whole vectors");
  using vec_t = Vec<scalar_t, VEC>;

  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t global_head = thread / kLanesPerHead;
  const int lane = threadIdx.x % kLanesPerHead;
  const int heads_per_token = num_q_heads + num_k_heads;
  const int64_t token = global_head / heads_per_token;
  const int head = static_cast<int>(global_head % heads_per_token);
  if (token >= num_tokens) {
    return;
  }

  const bool is_q = head < num_q_heads;
  scalar_t* row = is_q ? q + token * q_stride + head * HEAD_DIM
                       : k + token * k_stride + (head - num_q_heads) * HEAD_DIM;
  const scalar_t* weight = is_q ? q_weight : k_weight;

  vec_t x[kVecsPerLane];
  float sum_sq = 0.0f;
#pragma unroll
  for (int i = 0; i < kVecsPerLane; ++i) {
    x[i] = reinterpret_cast<const vec_t*>(row)[i * kLanesPerHead + lane];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(x[i].data[j]);
      sum_sq += f * f;
    }
  }

  const unsigned half_warp = 0xffffu << (threadIdx.x & 16);
#pragma unroll
  for (int offset = kLanesPerHead / 2; offset > 0; offset >>= 1) {
    sum_sq += __shfl_xor_sync(half_warp, sum_sq, offset, kLanesPerHead);
  }
  const float rstd = rsqrtf(sum_sq / HEAD_DIM + epsilon);

#pragma unroll
  for (int i = 0; i < kVecsPerLane; ++i) {
    const vec_t w = reinterpret_cast<const vec_t*>(weight)[i * kLanesPerHead + lane];
    vec_t y;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      y.data[j] = static_cast<scalar_t>(static_cast<float>(x[i].data[j]) * rstd * static_cast<float>(w.data[j]));
    }
    reinterpret_cast<vec_t*>(row)[i * kLanesPerHead + lane] = y;
  }
}

template <typename scalar_t>
cudaError_t qk_norm(scalar_t* q, scalar_t* k, const scalar_t* q_weight, const scalar_t* k_weight, int64_t q_stride,
                    int64_t k_stride, int num_q_heads, int num_k_heads, int head_dim, int num_tokens, float epsilon,
                    cudaStream_t stream) {
  const int64_t heads = static_cast<int64_t>(num_tokens) * (num_q_heads + num_k_heads);
  if (heads == 0) return cudaSuccess;
  constexpr int kThreads = 128;
  constexpr int kHeadsPerBlock = kThreads / kLanesPerHead;
  const unsigned blocks = static_cast<unsigned>((heads + kHeadsPerBlock - 1) / kHeadsPerBlock);
  switch (head_dim) {
    case 64:
      qk_norm_kernel<scalar_t, 4, 64><<<blocks, kThreads, 0, stream>>>(
          q, k, q_weight, k_weight, q_stride, k_stride, num_q_heads, num_k_heads, num_tokens, epsilon);
      break;
    case 128:
      qk_norm_kernel<scalar_t, 8, 128><<<blocks, kThreads, 0, stream>>>(
          q, k, q_weight, k_weight, q_stride, k_stride, num_q_heads, num_k_heads, num_tokens, epsilon);
      break;
    case 256:
      qk_norm_kernel<scalar_t, 8, 256><<<blocks, kThreads, 0, stream>>>(
          q, k, q_weight, k_weight, q_stride, k_stride, num_q_heads, num_k_heads, num_tokens, epsilon);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

template cudaError_t qk_norm(__nv_bfloat16*, __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, int64_t,
                             int64_t, int, int, int, int, float, cudaStream_t);
template cudaError_t qk_norm(__half*, __half*, const __half*, const __half*, int64_t, int64_t, int, int, int, int,
                             float, cudaStream_t);
