// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
The way back from the experts: each token collects its rows, weighted by the router.

    out[t, :] = T(sum over j of weights[t, j] * f(permuted[inverse[t, j], :]))

fp32 accumulation in the order of j, one rounding. Slots whose row lies at or past num_valid
(computed on another rank, or dropped) or whose index is negative contribute nothing; a token
without any valid slot gets zeros, so the caller need not clear the output. num_valid is read
from device memory, because the host does not know how many slots stayed here.
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
__global__ void moe_unpermute_kernel(scalar_t* __restrict__ out,             // [tokens, hidden]
                                     const scalar_t* __restrict__ permuted,  // [rows, hidden]
                                     const float* __restrict__ topk_weights,  // [tokens, topk]
                                     const int* __restrict__ inverse,        // [tokens, topk]
                                     const int64_t* __restrict__ num_valid,  // [1]
                                     const int topk, const int hidden_size) {
  using vec_t = Vec<scalar_t, VEC>;
  const int64_t token = blockIdx.x;
  const int64_t valid = *num_valid;
  const float* weights = topk_weights + token * topk;
  const int* rows = inverse + token * topk;

  for (int col = threadIdx.x * VEC; col < hidden_size; col += blockDim.x * VEC) {
    float acc[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      acc[i] = 0.0f;
    }
    for (int j = 0; j < topk; ++j) {
      const int64_t row = rows[j];
      if (row < 0 || row >= valid) continue;
      const float weight = weights[j];
      const vec_t v = *reinterpret_cast<const vec_t*>(permuted + row * hidden_size + col);
#pragma unroll
      for (int i = 0; i < VEC; ++i) {
        acc[i] = fmaf(weight, static_cast<float>(v.data[i]), acc[i]);
      }
    }
    vec_t y;
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      y.data[i] = static_cast<scalar_t>(acc[i]);
    }
    *reinterpret_cast<vec_t*>(out + token * hidden_size + col) = y;
  }
}

template <typename scalar_t>
void moe_unpermute(scalar_t* out, const scalar_t* permuted, const float* topk_weights, const int* inverse,
                   const int64_t* num_valid, int num_tokens, int topk, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  constexpr int kThreads = 128;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(permuted);
  if (addresses % 16 == 0 && hidden_size % kVec == 0) {
    moe_unpermute_kernel<scalar_t, kVec>
        <<<num_tokens, kThreads, 0, stream>>>(out, permuted, topk_weights, inverse, num_valid, topk, hidden_size);
  } else {
    moe_unpermute_kernel<scalar_t, 1>
        <<<num_tokens, kThreads, 0, stream>>>(out, permuted, topk_weights, inverse, num_valid, topk, hidden_size);
  }
}

template void moe_unpermute(__nv_bfloat16*, const __nv_bfloat16*, const float*, const int*, const int64_t*, int, int,
                            int, cudaStream_t);
template void moe_unpermute(__half*, const __half*, const float*, const int*, const int64_t*, int, int, int,
                            cudaStream_t);
