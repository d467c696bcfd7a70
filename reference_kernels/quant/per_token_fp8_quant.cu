// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Dynamic quantisation to e4m3 with one scale a token:

    scale = max(max|x| / 448, 1 / (448 * 512))
    q     = e4m3(clamp(x / scale, -448, 448))

The floor keeps a row of zeros (or denormals) from dividing by nothing. The quotient is a
true division: multiplying by a rounded reciprocal would move values that sit on a
rounding boundary to the neighbouring code. One block a row, two passes over it; the
maximum travels through warp shuffles and one shared slot a warp.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define FP8_E4M3_MAX 448.0f
#define MIN_SCALING_FACTOR (1.0f / (FP8_E4M3_MAX * 512.0f))

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ __nv_fp8_e4m3 quantize(float value, float scale) {
  const float q = value / scale;
  return __nv_fp8_e4m3(fmaxf(-FP8_E4M3_MAX, fminf(q, FP8_E4M3_MAX)));
}

__device__ __forceinline__ float block_reduce_max(float value) {
  __shared__ float warp_max[32];
  for (int mask = 16; mask > 0; mask >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  if ((threadIdx.x & 31) == 0) {
    warp_max[threadIdx.x >> 5] = value;
  }
  __syncthreads();
  value = warp_max[0];
  for (int warp = 1; warp < (blockDim.x >> 5); ++warp) {
    value = fmaxf(value, warp_max[warp]);
  }
  return value;
}

template <typename scalar_t, int VEC>
__global__ void per_token_fp8_quant_kernel(__nv_fp8_e4m3* __restrict__ out,     // [tokens, hidden]
                                           float* __restrict__ scales,          // [tokens, 1]
                                           const scalar_t* __restrict__ input,  // [tokens, hidden]
                                           const int64_t input_stride, const int hidden_size) {
  using in_vec_t = Vec<scalar_t, VEC>;
  using out_vec_t = Vec<__nv_fp8_e4m3, VEC>;
  const int64_t token = blockIdx.x;
  const in_vec_t* x = reinterpret_cast<const in_vec_t*>(input + token * input_stride);
  out_vec_t* q = reinterpret_cast<out_vec_t*>(out + token * hidden_size);
  const int vecs = hidden_size / VEC;

  float absmax = 0.0f;
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const in_vec_t v = x[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      absmax = fmaxf(absmax, fabsf(static_cast<float>(v.data[j])));
    }
  }
  absmax = block_reduce_max(absmax);

  const float scale = fmaxf(absmax / FP8_E4M3_MAX, MIN_SCALING_FACTOR);
  if (threadIdx.x == 0) {
    scales[token] = scale;
  }

  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const in_vec_t v = x[i];
    out_vec_t r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      r.data[j] = quantize(static_cast<float>(v.data[j]), scale);
    }
    q[i] = r;
  }
}

template <typename scalar_t>
void per_token_fp8_quant(__nv_fp8_e4m3* out, float* scales, const scalar_t* input, int64_t input_stride,
                         int num_tokens, int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0) return;
  const bool wide = reinterpret_cast<uintptr_t>(input) % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 8 == 0 &&
                    hidden_size % 8 == 0 && input_stride % 8 == 0;
  const int items = wide ? hidden_size / 8 : hidden_size;
  const dim3 block(items >= 256 ? 256 : (items + 31) / 32 * 32);
  if (wide) {
    per_token_fp8_quant_kernel<scalar_t, 8>
        <<<num_tokens, block, 0, stream>>>(out, scales, input, input_stride, hidden_size);
  } else {
    per_token_fp8_quant_kernel<scalar_t, 1>
        <<<num_tokens, block, 0, stream>>>(out, scales, input, input_stride, hidden_size);
  }
}

template void per_token_fp8_quant(__nv_fp8_e4m3*, float*, const __nv_bfloat16*, int64_t, int, int, cudaStream_t);
template void per_token_fp8_quant(__nv_fp8_e4m3*, float*, const __half*, int64_t, int, int, cudaStream_t);
