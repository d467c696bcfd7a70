// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Sum over the experts of a token: out[t, :] = T(sum over j of input[t, j, :])

Accumulation is in fp32 in the order j = 0 .. topk-1, with one rounding at the end. For the
usual values of topk the loop is unrolled, all loads in flight at once; TOPK = 0 is the
instance with the count known only at run time.
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
__device__ __forceinline__ void accumulate(float (&acc)[VEC], const Vec<scalar_t, VEC>& v) {
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    acc[i] += static_cast<float>(v.data[i]);
  }
}

template <typename scalar_t, int VEC, int TOPK>
__global__ void moe_sum_kernel(scalar_t* __restrict__ out,          // [tokens, hidden]
                               const scalar_t* __restrict__ input,  // [tokens, topk, hidden]
                               const int topk, const int hidden_size) {
  using vec_t = Vec<scalar_t, VEC>;
  const int64_t token = blockIdx.x;
  const int vecs = hidden_size / VEC;

  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    float acc[VEC] = {};
    if constexpr (TOPK > 0) {
      const vec_t* x = reinterpret_cast<const vec_t*>(input + token * TOPK * hidden_size) + i;
      vec_t rows[TOPK];
#pragma unroll
      for (int j = 0; j < TOPK; ++j) {
        rows[j] = x[j * vecs];
      }
#pragma unroll
      for (int j = 0; j < TOPK; ++j) {
        accumulate<scalar_t, VEC>(acc, rows[j]);
      }
    } else {
      const vec_t* x = reinterpret_cast<const vec_t*>(input + token * topk * hidden_size) + i;
      for (int j = 0; j < topk; ++j) {
        accumulate<scalar_t, VEC>(acc, x[j * vecs]);
      }
    }
    vec_t y;
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
      y.data[e] = static_cast<scalar_t>(acc[e]);
    }
    reinterpret_cast<vec_t*>(out + token * hidden_size)[i] = y;
  }
}

template <typename scalar_t, int VEC>
static void dispatch_topk(scalar_t* out, const scalar_t* input, int num_tokens, int topk, int hidden_size,
                          cudaStream_t stream) {
  const int vecs = hidden_size / VEC;
  const int threads = vecs < 256 ? vecs : 256;
  switch (topk) {
    case 2:
      moe_sum_kernel<scalar_t, VEC, 2><<<num_tokens, threads, 0, stream>>>(out, input, topk, hidden_size);
      break;
    case 4:
      moe_sum_kernel<scalar_t, VEC, 4><<<num_tokens, threads, 0, stream>>>(out, input, topk, hidden_size);
      break;
    case 8:
      moe_sum_kernel<scalar_t, VEC, 8><<<num_tokens, threads, 0, stream>>>(out, input, topk, hidden_size);
      break;
    default:
      moe_sum_kernel<scalar_t, VEC, 0><<<num_tokens, threads, 0, stream>>>(out, input, topk, hidden_size);
  }
}

template <typename scalar_t>
void moe_sum(scalar_t* out, const scalar_t* input, int num_tokens, int topk, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0 || hidden_size == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(input);
  if (addresses % 16 == 0 && hidden_size % kVec == 0) {
    dispatch_topk<scalar_t, kVec>(out, input, num_tokens, topk, hidden_size, stream);
  } else {
    dispatch_topk<scalar_t, 1>(out, input, num_tokens, topk, hidden_size, stream);
  }
}

template void moe_sum(__nv_bfloat16*, const __nv_bfloat16*, int, int, int, cudaStream_t);
template void moe_sum(__half*, const __half*, int, int, int, cudaStream_t);
template void moe_sum(float*, const float*, int, int, int, cudaStream_t);
