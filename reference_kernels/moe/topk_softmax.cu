// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Expert routing for a power-of-two number of experts: softmax over the router's logits and
the k largest, all in registers.

A row of EXPERTS logits is spread over LANES lanes of a warp (a sub-warp), each with
VALUES of them in runs of VEC: with 64 experts and 16-byte loads of a 16-bit type eight
lanes do a row and a warp does four. Maximum and sum are butterflies inside the sub-warp.
Then k rounds of arg-max: every lane looks through its own values, a butterfly finds the
winner, the winner's lane strikes it out.

Order is total: strictly larger wins, equal values go to the lower expert index. A
probability that is NaN or infinite (a poisoned row) counts as 0, so such a row still routes
to experts 0 .. k-1. The optional bias takes part in the choice, never in the weight.
The grid's last rows are clamped instead of leaving early: all lanes of a warp must reach
the shuffles.
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

template <typename scalar_t, int VEC, int EXPERTS>
struct Layout {
  static constexpr int VALUES = EXPERTS / 32 > VEC ? EXPERTS / 32 : VEC;  // logits a lane
  static constexpr int LANES = EXPERTS / VALUES;                          // lanes a row
  static constexpr int LOADS = VALUES / VEC;
  static_assert((EXPERTS & (EXPERTS - 1)) == 0, "the number of experts must be a power of two");
  static_assert(LANES >= 1 && LANES <= 32, "a row must fit in a warp");
};

template <typename scalar_t, int VEC, int EXPERTS>
__global__ void topk_softmax_kernel(const scalar_t* __restrict__ gating_output,  // [tokens, EXPERTS]
                                    float* __restrict__ topk_weights,            // [tokens, topk]
                                    int* __restrict__ topk_indices,              // [tokens, topk]
                                    int* __restrict__ token_expert_indices,      // [tokens, topk]
                                    const float* __restrict__ bias,              // [EXPERTS] or null
                                    const int num_tokens, const int topk, const bool renormalize) {
  using layout = Layout<scalar_t, VEC, EXPERTS>;
  constexpr int VALUES = layout::VALUES;
  constexpr int LANES = layout::LANES;

  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / LANES;
  const int lane = threadIdx.x % LANES;
  const bool active = row < num_tokens;
  const int64_t load_row = active ? row : num_tokens - 1;

  // Value i of this lane belongs to expert (i / VEC) * LANES * VEC + lane * VEC + i % VEC.
  float prob[VALUES];
  const scalar_t* logits = gating_output + load_row * EXPERTS + lane * VEC;
#pragma unroll
  for (int load = 0; load < layout::LOADS; ++load) {
    const auto v = *reinterpret_cast<const Vec<scalar_t, VEC>*>(logits + load * LANES * VEC);
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      prob[load * VEC + i] = static_cast<float>(v.data[i]);
    }
  }

  float largest = prob[0];
#pragma unroll
  for (int i = 1; i < VALUES; ++i) {
    largest = fmaxf(largest, prob[i]);
  }
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset >>= 1) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset, LANES));
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < VALUES; ++i) {
    prob[i] = expf(prob[i] - largest);
    sum += prob[i];
  }
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset, LANES);
  }
  const float inv_sum = 1.0f / sum;

  float choice[VALUES];
#pragma unroll
  for (int i = 0; i < VALUES; ++i) {
    prob[i] *= inv_sum;
    if (isnan(prob[i]) || isinf(prob[i])) {
      prob[i] = 0.0f;
    }
    choice[i] = prob[i];
  }
  if (bias != nullptr) {
#pragma unroll
    for (int i = 0; i < VALUES; ++i) {
      choice[i] += bias[(i / VEC) * LANES * VEC + lane * VEC + i % VEC];
    }
  }

  float selected_sum = 0.0f;
  for (int k = 0; k < topk; ++k) {
    float best = choice[0];
    float weight = prob[0];
    int expert = lane * VEC;
#pragma unroll
    for (int i = 1; i < VALUES; ++i) {
      if (choice[i] > best) {
        best = choice[i];
        weight = prob[i];
        expert = (i / VEC) * LANES * VEC + lane * VEC + i % VEC;
      }
    }
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best, offset, LANES);
      const float other_weight = __shfl_xor_sync(0xffffffffu, weight, offset, LANES);
      const int other_expert = __shfl_xor_sync(0xffffffffu, expert, offset, LANES);
      if (other > best || (other == best && other_expert < expert)) {
        best = other;
        weight = other_weight;
        expert = other_expert;
      }
    }
    selected_sum += weight;
    if (active && lane == 0) {
      const int64_t slot = static_cast<int64_t>(row) * topk + k;
      topk_weights[slot] = weight;
      topk_indices[slot] = expert;
      token_expert_indices[slot] = k * num_tokens + row;
    }
#pragma unroll
    for (int i = 0; i < VALUES; ++i) {
      if (expert == (i / VEC) * LANES * VEC + lane * VEC + i % VEC) {
        choice[i] = -CUDART_INF_F;
      }
    }
  }

  if (renormalize && active && lane == 0) {
    const float inv = selected_sum > 0.0f ? 1.0f / selected_sum : 1.0f;
    for (int k = 0; k < topk; ++k) {
      topk_weights[static_cast<int64_t>(row) * topk + k] *= inv;
    }
  }
}

template <typename scalar_t, int EXPERTS>
static void launch(const scalar_t* gating_output, float* topk_weights, int* topk_indices, int* token_expert_indices,
                   const float* bias, int num_tokens, int topk, bool renormalize, cudaStream_t stream) {
  constexpr int kWide = 16 / sizeof(scalar_t);
  constexpr int kVec = EXPERTS < kWide ? EXPERTS : kWide;
  constexpr int kThreads = 128;
  constexpr int kRowsPerBlock = kThreads / Layout<scalar_t, kVec, EXPERTS>::LANES;
  const int blocks = (num_tokens + kRowsPerBlock - 1) / kRowsPerBlock;
  topk_softmax_kernel<scalar_t, kVec, EXPERTS><<<blocks, kThreads, 0, stream>>>(
      gating_output, topk_weights, topk_indices, token_expert_indices, bias, num_tokens, topk, renormalize);
}

template <typename scalar_t>
cudaError_t topk_softmax(const scalar_t* gating_output, float* topk_weights, int* topk_indices,
                         int* token_expert_indices, const float* bias, int num_tokens, int num_experts, int topk,
                         bool renormalize, cudaStream_t stream) {
  if (num_tokens == 0) return cudaSuccess;
#define PORTER_LAUNCH(EXPERTS)                                                                             \
  case EXPERTS:                                                                                            \
    launch<scalar_t, EXPERTS>(gating_output, topk_weights, topk_indices, token_expert_indices, bias,       \
                              num_tokens, topk, renormalize, stream);                                      \
    break
  switch (num_experts) {
    PORTER_LAUNCH(4);
    PORTER_LAUNCH(8);
    PORTER_LAUNCH(16);
    PORTER_LAUNCH(32);
    PORTER_LAUNCH(64);
    PORTER_LAUNCH(128);
    PORTER_LAUNCH(256);
    default:
      return cudaErrorInvalidValue;  // topk_softmax_general.cu takes any number
  }
#undef PORTER_LAUNCH
  return cudaGetLastError();
}

template cudaError_t topk_softmax(const __nv_bfloat16*, float*, int*, int*, const float*, int, int, int, bool,
                                  cudaStream_t);
template cudaError_t topk_softmax(const __half*, float*, int*, int*, const float*, int, int, int, bool, cudaStream_t);
template cudaError_t topk_softmax(const float*, float*, int*, int*, const float*, int, int, int, bool, cudaStream_t);
