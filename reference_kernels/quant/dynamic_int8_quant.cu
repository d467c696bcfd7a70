// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Dynamic symmetric quantisation to int8, one scale a token:

    scale = max|x| / 127            q = saturate(round(x * (127 / max|x|)))

Unlike the fp8 kernels this one multiplies by a reciprocal, computed once a row. A row of
zeros has scale 0 and codes 0. Rounding is to nearest, ties to even.
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
__global__ void dynamic_int8_quant_kernel(int8_t* __restrict__ out, const scalar_t* __restrict__ input,
                                          float* __restrict__ scale_out, const int hidden_size) {
  __shared__ float warp_max[32];
  __shared__ float s_absmax;

  const int tid = threadIdx.x;
  const int64_t offset = static_cast<int64_t>(blockIdx.x) * hidden_size;
  const Vec<scalar_t, VEC>* x = reinterpret_cast<const Vec<scalar_t, VEC>*>(input + offset);
  Vec<int8_t, VEC>* q = reinterpret_cast<Vec<int8_t, VEC>*>(out + offset);
  const int vecs = hidden_size / VEC;

  float absmax = 0.0f;
  for (int i = tid; i < vecs; i += blockDim.x) {
    const Vec<scalar_t, VEC> v = x[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float a = fabsf(static_cast<float>(v.data[j]));
      absmax = a > absmax ? a : absmax;
    }
  }
#pragma unroll
  for (int delta = 16; delta > 0; delta >>= 1) {
    absmax = fmaxf(absmax, __shfl_down_sync(0xffffffffu, absmax, delta));
  }
  if (tid % warpSize == 0) {
    warp_max[tid / warpSize] = absmax;
  }
  __syncthreads();
  if (tid < 32) {
    absmax = tid < blockDim.x / warpSize ? warp_max[tid] : 0.0f;
#pragma unroll
    for (int delta = 16; delta > 0; delta >>= 1) {
      absmax = fmaxf(absmax, __shfl_down_sync(0xffffffffu, absmax, delta));
    }
    if (tid == 0) {
      s_absmax = absmax;
      scale_out[blockIdx.x] = absmax / 127.0f;
    }
  }
  __syncthreads();

  const float inv_scale = s_absmax == 0.0f ? 0.0f : 127.0f / s_absmax;
  for (int i = tid; i < vecs; i += blockDim.x) {
    const Vec<scalar_t, VEC> v = x[i];
    Vec<int8_t, VEC> r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float scaled = rintf(static_cast<float>(v.data[j]) * inv_scale);
      r.data[j] = static_cast<int8_t>(fminf(fmaxf(scaled, -128.0f), 127.0f));
    }
    q[i] = r;
  }
}

template <typename scalar_t>
void dynamic_int8_quant(int8_t* out, const scalar_t* input, float* scale, int num_tokens, int hidden_size,
                        cudaStream_t stream) {
  if (num_tokens == 0) return;
  const bool wide = hidden_size % 8 == 0 && reinterpret_cast<uintptr_t>(input) % 16 == 0 &&
                    reinterpret_cast<uintptr_t>(out) % 8 == 0;
  const int items = wide ? hidden_size / 8 : hidden_size;
  const int threads = items > 256 ? 256 : (items + 31) / 32 * 32;
  if (wide) {
    dynamic_int8_quant_kernel<scalar_t, 8><<<num_tokens, threads, 0, stream>>>(out, input, scale, hidden_size);
  } else {
    dynamic_int8_quant_kernel<scalar_t, 1><<<num_tokens, threads, 0, stream>>>(out, input, scale, hidden_size);
  }
}

template void dynamic_int8_quant(int8_t*, const __nv_bfloat16*, float*, int, int, cudaStream_t);
template void dynamic_int8_quant(int8_t*, const __half*, float*, int, int, cudaStream_t);
