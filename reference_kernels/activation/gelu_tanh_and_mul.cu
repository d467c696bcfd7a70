// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
GeGLU's gate with the tanh approximation of GELU: out = gelu_tanh(gate) * up

    gelu_tanh(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))

The activation is rounded to T before the product (two roundings, like the unfused pair).
The activation is a template parameter, so one kernel body serves every gated activation of
this file; the grid-stride loop runs over all vectors of all rows, which keeps short rows busy.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608028654f;
  constexpr float kCubic = 0.044715f;
  const float cube = x * x * x;
  const float inner = kSqrt2OverPi * (x + kCubic * cube);
  return 0.5f * x * (1.0f + tanhf(inner));
}

template <typename scalar_t, int VEC, float (*ACT)(float)>
__device__ __forceinline__ void act_and_mul_row_vec(Vec<scalar_t, VEC>& y, const Vec<scalar_t, VEC>& gate,
                                                    const Vec<scalar_t, VEC>& up) {
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const scalar_t a = static_cast<scalar_t>(ACT(static_cast<float>(gate.data[j])));
    y.data[j] = static_cast<scalar_t>(static_cast<float>(a) * static_cast<float>(up.data[j]));
  }
}

template <typename scalar_t, int VEC>
__global__ void gelu_tanh_and_mul_kernel(scalar_t* __restrict__ out,          // [tokens, d]
                                         const scalar_t* __restrict__ input,  // [tokens, 2 * d], rows input_stride apart
                                         const int64_t input_stride, const int64_t num_tokens, const int d) {
  using vec_t = Vec<scalar_t, VEC>;
  const int vecs_per_row = d / VEC;
  const int64_t total = num_tokens * vecs_per_row;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;

  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    const int64_t token = i / vecs_per_row;
    const int col = static_cast<int>(i % vecs_per_row) * VEC;
    const scalar_t* row = input + token * input_stride + col;
    const vec_t gate = *reinterpret_cast<const vec_t*>(row);
    const vec_t up = *reinterpret_cast<const vec_t*>(row + d);
    vec_t y;
    act_and_mul_row_vec<scalar_t, VEC, gelu_tanh>(y, gate, up);
    *reinterpret_cast<vec_t*>(out + token * d + col) = y;
  }
}

template <typename scalar_t>
void gelu_tanh_and_mul(scalar_t* out, const scalar_t* input, int64_t input_stride, int64_t num_tokens, int d,
                       cudaStream_t stream) {
  if (num_tokens == 0 || d == 0) return;
  constexpr int kThreads = 256;
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(input);
  const bool wide = addresses % 16 == 0 && d % kVec == 0 && input_stride % kVec == 0;
  const int64_t items = num_tokens * (wide ? d / kVec : d);
  const int64_t wanted = (items + kThreads - 1) / kThreads;
  const unsigned blocks = static_cast<unsigned>(wanted < 1024 ? wanted : 1024);
  if (wide) {
    gelu_tanh_and_mul_kernel<scalar_t, kVec>
        <<<blocks, kThreads, 0, stream>>>(out, input, input_stride, num_tokens, d);
  } else {
    gelu_tanh_and_mul_kernel<scalar_t, 1><<<blocks, kThreads, 0, stream>>>(out, input, input_stride, num_tokens, d);
  }
}

template void gelu_tanh_and_mul(__nv_bfloat16*, const __nv_bfloat16*, int64_t, int64_t, int, cudaStream_t);
template void gelu_tanh_and_mul(__half*, const __half*, int64_t, int64_t, int, cudaStream_t);
template void gelu_tanh_and_mul(float*, const float*, int64_t, int64_t, int, cudaStream_t);
