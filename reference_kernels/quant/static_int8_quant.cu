// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Symmetric quantisation to int8 with a scale known beforehand: q = saturate(round(x / scale))

Rounding is to nearest, ties to even; out-of-range values saturate to [-128, 127]. The
conversion instruction does the rounding and sends NaN to zero, the clamp happens on integers.
A flat grid-stride loop over vectors: no thread cares where a row ends.
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

__device__ __forceinline__ int8_t float_to_int8_rn(float x) {
  const int rounded = __float2int_rn(x);
  return static_cast<int8_t>(min(max(rounded, -128), 127));
}

template <typename scalar_t, int VEC>
__global__ void static_int8_quant_kernel(int8_t* __restrict__ out, const scalar_t* __restrict__ input,
                                         const float* __restrict__ scale_ptr, const int64_t num_vecs) {
  const float scale = *scale_ptr;
  const Vec<scalar_t, VEC>* x = reinterpret_cast<const Vec<scalar_t, VEC>*>(input);
  Vec<int8_t, VEC>* q = reinterpret_cast<Vec<int8_t, VEC>*>(out);
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  while (i < num_vecs) {
    const Vec<scalar_t, VEC> v = x[i];
    Vec<int8_t, VEC> r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      r.data[j] = float_to_int8_rn(static_cast<float>(v.data[j]) / scale);
    }
    q[i] = r;
    i += step;
  }
}

template <typename scalar_t>
void static_int8_quant(int8_t* out, const scalar_t* input, const float* scale, int64_t numel, cudaStream_t stream) {
  if (numel == 0) return;
  constexpr int kThreads = 256;
  constexpr int64_t kMaxBlocks = 2048;
  const bool wide =
      numel % 8 == 0 && reinterpret_cast<uintptr_t>(input) % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 8 == 0;
  const int64_t vecs = wide ? numel / 8 : numel;
  const unsigned blocks = static_cast<unsigned>(std::min((vecs + kThreads - 1) / kThreads, kMaxBlocks));
  if (wide) {
    static_int8_quant_kernel<scalar_t, 8><<<blocks, kThreads, 0, stream>>>(out, input, scale, vecs);
  } else {
    static_int8_quant_kernel<scalar_t, 1><<<blocks, kThreads, 0, stream>>>(out, input, scale, vecs);
  }
}

template void static_int8_quant(int8_t*, const __nv_bfloat16*, const float*, int64_t, cudaStream_t);
template void static_int8_quant(int8_t*, const __half*, const float*, int64_t, cudaStream_t);
template void static_int8_quant(int8_t*, const float*, const float*, int64_t, cudaStream_t);
