// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
RMSNorm with its result written as e4m3, the scale known beforehand (static quantisation).

    y = T(x * rstd * weight)          rounded to the activation type, as a separate norm kernel would
    q = e4m3(clamp(y * (1 / scale)))  reciprocal computed once, saturating at +-448

The intermediate rounding is part of the contract: fused and unfused pipelines must produce the same codes.
Eight 16-bit inputs become one 64-bit store.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

constexpr float kFp8Max = 448.0f;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ __nv_fp8_e4m3 to_fp8(float value) {
  return __nv_fp8_e4m3(fmaxf(-kFp8Max, fminf(value, kFp8Max)));
}

template <typename scalar_t, int VEC>
__global__ void rms_norm_static_fp8_quant_kernel(__nv_fp8_e4m3* __restrict__ out, const scalar_t* __restrict__ input,
                                                 const int64_t input_stride, const scalar_t* __restrict__ weight,
                                                 const float* __restrict__ scale, const float epsilon,
                                                 const int hidden_size) {
  __shared__ float partial[32];
  __shared__ float s_rstd;

  const scalar_t* x = input + blockIdx.x * input_stride;
  const int64_t out_row = static_cast<int64_t>(blockIdx.x) * hidden_size;

  float sum_sq = 0.0f;
  for (int i = threadIdx.x; i < hidden_size / VEC; i += blockDim.x) {
    const auto v = reinterpret_cast<const Vec<scalar_t, VEC>*>(x)[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(v.data[j]);
      sum_sq += f * f;
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum_sq += __shfl_xor_sync(0xffffffffu, sum_sq, offset);
  }
  if (threadIdx.x % 32 == 0) {
    partial[threadIdx.x / 32] = sum_sq;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) {
      total += partial[warp];
    }
    s_rstd = rsqrtf(total / hidden_size + epsilon);
  }
  __syncthreads();

  const float rstd = s_rstd;
  const float inv_scale = 1.0f / *scale;
  for (int i = threadIdx.x; i < hidden_size / VEC; i += blockDim.x) {
    const auto v = reinterpret_cast<const Vec<scalar_t, VEC>*>(x)[i];
    const auto w = reinterpret_cast<const Vec<scalar_t, VEC>*>(weight)[i];
    Vec<__nv_fp8_e4m3, VEC> q;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const scalar_t y = static_cast<scalar_t>(static_cast<float>(v.data[j]) * rstd * static_cast<float>(w.data[j]));
      q.data[j] = to_fp8(static_cast<float>(y) * inv_scale);
    }
    reinterpret_cast<Vec<__nv_fp8_e4m3, VEC>*>(out + out_row)[i] = q;
  }
}

template <typename scalar_t>
void rms_norm_static_fp8_quant(__nv_fp8_e4m3* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                               const float* scale, float epsilon, int num_tokens, int hidden_size,
                               cudaStream_t stream) {
  if (num_tokens == 0) return;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(input) | reinterpret_cast<uintptr_t>(weight);
  const bool wide = addresses % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 8 == 0 && hidden_size % 8 == 0 &&
                    input_stride % 8 == 0;
  const int items = wide ? hidden_size / 8 : hidden_size;
  const int threads = std::min((items + 31) / 32 * 32, 1024);
  if (wide) {
    rms_norm_static_fp8_quant_kernel<scalar_t, 8>
        <<<num_tokens, threads, 0, stream>>>(out, input, input_stride, weight, scale, epsilon, hidden_size);
  } else {
    rms_norm_static_fp8_quant_kernel<scalar_t, 1>
        <<<num_tokens, threads, 0, stream>>>(out, input, input_stride, weight, scale, epsilon, hidden_size);
  }
}

template void rms_norm_static_fp8_quant(__nv_fp8_e4m3*, const __nv_bfloat16*, int64_t, const __nv_bfloat16*,
                                        const float*, float, int, int, cudaStream_t);
template void rms_norm_static_fp8_quant(__nv_fp8_e4m3*, const __half*, int64_t, const __half*, const float*, float, int,
                                        int, cudaStream_t);
