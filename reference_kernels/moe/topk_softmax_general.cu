// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Expert routing for any number of experts: softmax and top-k with the row in shared memory.

One block owns one token. The probabilities sit in dynamic shared memory (and, beside them,
the values that decide the choice: probability plus optional bias). Each of the k rounds is a
block-wide arg-max over (value, index) pairs; the winner is struck out by writing -inf.
Same order and same corner cases as topk_softmax.cu: strictly larger wins, ties go to the
lower index, a NaN or infinite probability counts as 0, the weight is never biased.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <stdint.h>

constexpr int WARP = 32;

struct Candidate {
  float value;
  int index;
};

__device__ __forceinline__ Candidate better(const Candidate& a, const Candidate& b) {
  const bool take_b = b.value > a.value || (b.value == a.value && b.index < a.index);
  return take_b ? b : a;
}

__device__ __forceinline__ Candidate warp_argmax(Candidate c) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    Candidate other;
    other.value = __shfl_xor_sync(0xffffffffu, c.value, offset);
    other.index = __shfl_xor_sync(0xffffffffu, c.index, offset);
    c = better(c, other);
  }
  return c;
}

// Every thread gets the result. `scratch` holds a word a warp; it may be used again after the call.
template <bool IS_MAX>
__device__ float block_reduce(float value, float* scratch) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = IS_MAX ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % WARP == 0) {
    scratch[threadIdx.x / WARP] = value;
  }
  __syncthreads();
  float total = scratch[0];
  for (int warp = 1; warp < blockDim.x / WARP; ++warp) {
    total = IS_MAX ? fmaxf(total, scratch[warp]) : total + scratch[warp];
  }
  __syncthreads();
  return total;
}

template <typename scalar_t>
__global__ void topk_softmax_general_kernel(const scalar_t* __restrict__ gating_output,  // [tokens, num_experts]
                                            float* __restrict__ topk_weights,            // [tokens, topk]
                                            int* __restrict__ topk_indices,              // [tokens, topk]
                                            int* __restrict__ token_expert_indices,      // [tokens, topk]
                                            const float* __restrict__ bias,              // [num_experts] or null
                                            const int num_experts, const int topk, const bool renormalize) {
  extern __shared__ float smem[];
  float* prob = smem;                  // [num_experts]
  float* choice = smem + num_experts;  // [num_experts]
  __shared__ float scratch[WARP];
  __shared__ Candidate warp_best[WARP];
  __shared__ int s_winner;

  const int token = blockIdx.x;
  const int tid = threadIdx.x;
  const scalar_t* logits = gating_output + static_cast<int64_t>(token) * num_experts;

  float largest = -CUDART_INF_F;
  for (int e = tid; e < num_experts; e += blockDim.x) {
    const float x = static_cast<float>(logits[e]);
    prob[e] = x;
    largest = fmaxf(largest, x);
  }
  largest = block_reduce<true>(largest, scratch);

  float sum = 0.0f;
  for (int e = tid; e < num_experts; e += blockDim.x) {
    const float p = expf(prob[e] - largest);
    prob[e] = p;
    sum += p;
  }
  const float inv_sum = 1.0f / block_reduce<false>(sum, scratch);

  for (int e = tid; e < num_experts; e += blockDim.x) {
    float p = prob[e] * inv_sum;
    p = (isnan(p) || isinf(p)) ? 0.0f : p;
    prob[e] = p;
    choice[e] = bias != nullptr ? p + bias[e] : p;
  }
  __syncthreads();

  float selected_sum = 0.0f;  // kept by thread 0
  for (int k = 0; k < topk; ++k) {
    Candidate best = {-CUDART_INF_F, num_experts};
    for (int e = tid; e < num_experts; e += blockDim.x) {
      const Candidate mine = {choice[e], e};
      best = better(best, mine);
    }
    best = warp_argmax(best);
    if (tid % WARP == 0) {
      warp_best[tid / WARP] = best;
    }
    __syncthreads();
    if (tid == 0) {
      for (int warp = 1; warp < blockDim.x / WARP; ++warp) {
        best = better(best, warp_best[warp]);
      }
      const int64_t slot = static_cast<int64_t>(token) * topk + k;
      const float weight = prob[best.index];
      topk_weights[slot] = weight;
      topk_indices[slot] = best.index;
      token_expert_indices[slot] = k * gridDim.x + token;
      selected_sum += weight;
      s_winner = best.index;
    }
    __syncthreads();
    if (s_winner % blockDim.x == tid) {
      choice[s_winner] = -CUDART_INF_F;
    }
  }

  if (renormalize && tid == 0) {
    const float inv = selected_sum > 0.0f ? 1.0f / selected_sum : 1.0f;
    for (int k = 0; k < topk; ++k) {
      topk_weights[static_cast<int64_t>(token) * topk + k] *= inv;
    }
  }
}

template <typename scalar_t>
void topk_softmax_general(const scalar_t* gating_output, float* topk_weights, int* topk_indices,
                          int* token_expert_indices, const float* bias, int num_tokens, int num_experts, int topk,
                          bool renormalize, cudaStream_t stream) {
  if (num_tokens == 0) return;
  const int threads = num_experts > 128 ? 256 : 128;
  const size_t smem = 2 * static_cast<size_t>(num_experts) * sizeof(float);
  topk_softmax_general_kernel<scalar_t><<<num_tokens, threads, smem, stream>>>(
      gating_output, topk_weights, topk_indices, token_expert_indices, bias, num_experts, topk, renormalize);
}

template void topk_softmax_general(const __nv_bfloat16*, float*, int*, int*, const float*, int, int, int, bool,
                                   cudaStream_t);
template void topk_softmax_general(const __half*, float*, int*, int*, const float*, int, int, int, bool, cudaStream_t);
template void topk_softmax_general(const float*, float*, int*, int*, const float*, int, int, int, bool, cudaStream_t);
