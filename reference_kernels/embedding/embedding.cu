// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Embedding lookup with the vocabulary split over ranks.

This rank holds the rows [vocab_start, vocab_end) of the table. A token outside gives a row
of zeros, so that the all-reduce over the ranks that follows adds up to the right row;
negative ids (padding) are outside on every rank. A plain copy: bits are never interpreted.
One block a token along x; along y the row is cut into pieces of blockDim.x vectors.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <typename scalar_t, int VEC>
struct alignas(sizeof(scalar_t) * VEC) Pack {
  scalar_t elements[VEC];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      elements[i] = static_cast<scalar_t>(0.0f);
    }
  }
};

template <typename scalar_t, int VEC>
__global__ void embedding_kernel(scalar_t* __restrict__ out,           // [tokens, hidden]
                                 const int64_t* __restrict__ ids,      // [tokens]
                                 const scalar_t* __restrict__ weight,  // [vocab_end - vocab_start, hidden]
                                 const int64_t vocab_start, const int64_t vocab_end, const int hidden_size) {
  using pack_t = Pack<scalar_t, VEC>;
  const int col = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
  if (col >= hidden_size) return;

  const int64_t id = __ldg(ids + blockIdx.x);
  pack_t value;
  if (id >= vocab_start && id < vocab_end) {
    value = *reinterpret_cast<const pack_t*>(weight + (id - vocab_start) * hidden_size + col);
  } else {
    value.clear();
  }
  *reinterpret_cast<pack_t*>(out + static_cast<int64_t>(blockIdx.x) * hidden_size + col) = value;
}

template <typename scalar_t>
void embedding(scalar_t* out, const int64_t* ids, const scalar_t* weight, int64_t vocab_start, int64_t vocab_end,
               int num_tokens, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0 || hidden_size == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  constexpr int kThreads = 128;
  const bool wide = hidden_size % kVec == 0 &&
                    ((reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(weight)) & 15) == 0;
  const int packs = wide ? hidden_size / kVec : hidden_size;
  const dim3 grid(num_tokens, (packs + kThreads - 1) / kThreads);
  if (wide) {
    embedding_kernel<scalar_t, kVec>
        <<<grid, kThreads, 0, stream>>>(out, ids, weight, vocab_start, vocab_end, hidden_size);
  } else {
    embedding_kernel<scalar_t, 1>
        <<<grid, kThreads, 0, stream>>>(out, ids, weight, vocab_start, vocab_end, hidden_size);
  }
}

template void embedding(__nv_bfloat16*, const int64_t*, const __nv_bfloat16*, int64_t, int64_t, int, int,
                        cudaStream_t);
template void embedding(__half*, const int64_t*, const __half*, int64_t, int64_t, int, int, cudaStream_t);
template void embedding(float*, const int64_t*, const float*, int64_t, int64_t, int, int, cudaStream_t);
