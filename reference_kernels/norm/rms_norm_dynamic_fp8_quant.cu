// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
RMSNorm with its result written as e4m3 and a scale computed for each token (dynamic quantisation).

    n     = T(T(x * rstd) * weight)            two roundings, as the unfused norm of this pipeline has
    scale = max(max|n| / 448, 1 / (448 * 512))
    q     = e4m3(clamp(n / scale, -448, 448))

The scale is known only after the whole row has been normalised. Instead of normalising twice the
row is parked in dynamic shared memory as T, the type it was rounded to anyway: half the space of
floats, and what comes back is exactly what the maximum was taken over. Each thread reads only
what it wrote, so the barriers inside the reductions are all there is.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

constexpr float kFp8Max = 448.0f;
constexpr float kMinScale = 1.0f / (448.0f * 512.0f);

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

struct Sum {
  static constexpr float identity = 0.0f;
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
  static constexpr float identity = 0.0f;  // of magnitudes
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename Op>
__device__ __forceinline__ float block_all_reduce(float value, Op op, float* scratch) {
  const int lane = threadIdx.x & 31;
  const int num_warps = (blockDim.x + 31) >> 5;
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  if (lane == 0) {
    scratch[threadIdx.x >> 5] = value;
  }
  __syncthreads();
  value = lane < num_warps ? scratch[lane] : Op::identity;
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

template <typename scalar_t, int VEC>
__global__ void rms_norm_dynamic_fp8_quant_kernel(__nv_fp8_e4m3* __restrict__ out,      // [tokens, hidden]
                                                  float* __restrict__ scales,           // [tokens, 1]
                                                  const scalar_t* __restrict__ input,   // [tokens, hidden]
                                                  const scalar_t* __restrict__ weight,  // [hidden]
                                                  const int64_t input_stride, const float epsilon,
                                                  const int hidden_size) {
  extern __shared__ __align__(16) unsigned char smem[];
  __shared__ float sums[32];
  __shared__ float maxima[32];

  using vec_t = Vec<scalar_t, VEC>;
  vec_t* parked = reinterpret_cast<vec_t*>(smem);  // [hidden / VEC]
  const int64_t token = blockIdx.x;
  const vec_t* x = reinterpret_cast<const vec_t*>(input + token * input_stride);
  const vec_t* w = reinterpret_cast<const vec_t*>(weight);
  const int vecs = hidden_size / VEC;

  float sum_sq = 0.0f;
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t v = x[i];
    parked[i] = v;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(v.data[j]);
      sum_sq += f * f;
    }
  }
  const float rstd = rsqrtf(block_all_reduce(sum_sq, Sum(), sums) / hidden_size + epsilon);

  float absmax = 0.0f;
  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t g = w[i];
    vec_t n = parked[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const scalar_t normalised = static_cast<scalar_t>(static_cast<float>(n.data[j]) * rstd);
      n.data[j] = static_cast<scalar_t>(static_cast<float>(normalised) * static_cast<float>(g.data[j]));
      absmax = fmaxf(absmax, fabsf(static_cast<float>(n.data[j])));
    }
    parked[i] = n;
  }
  absmax = block_all_reduce(absmax, Max(), maxima);
  const float scale = fmaxf(absmax / kFp8Max, kMinScale);
  if (threadIdx.x == 0) {
    scales[token] = scale;
  }

  for (int i = threadIdx.x; i < vecs; i += blockDim.x) {
    const vec_t n = parked[i];
    Vec<__nv_fp8_e4m3, VEC> q;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(n.data[j]) / scale;
      q.data[j] = __nv_fp8_e4m3(fmaxf(-kFp8Max, fminf(f, kFp8Max)));
    }
    reinterpret_cast<Vec<__nv_fp8_e4m3, VEC>*>(out + token * hidden_size)[i] = q;
  }
}

template <typename scalar_t>
cudaError_t rms_norm_dynamic_fp8_quant(__nv_fp8_e4m3* out, float* scales, const scalar_t* input,
                                       const scalar_t* weight, int64_t input_stride, float epsilon, int num_tokens,
                                       int hidden_size, cudaStream_t stream) {
  if (num_tokens == 0) return cudaSuccess;
  const size_t smem = hidden_size * sizeof(scalar_t);
  if (smem > 40 * 1024) return cudaErrorInvalidValue;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(input) | reinterpret_cast<uintptr_t>(weight);
  const bool wide = addresses % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 8 == 0 && hidden_size % 8 == 0 &&
                    input_stride % 8 == 0;
  const int items = wide ? hidden_size / 8 : hidden_size;
  const int threads = std::min((items + 31) / 32 * 32, 512);
  if (wide) {
    rms_norm_dynamic_fp8_quant_kernel<scalar_t, 8>
        <<<num_tokens, threads, smem, stream>>>(out, scales, input, weight, input_stride, epsilon, hidden_size);
  } else {
    rms_norm_dynamic_fp8_quant_kernel<scalar_t, 1>
        <<<num_tokens, threads, smem, stream>>>(out, scales, input, weight, input_stride, epsilon, hidden_size);
  }
  return cudaGetLastError();
}

template cudaError_t rms_norm_dynamic_fp8_quant(__nv_fp8_e4m3*, float*, const __nv_bfloat16*, const __nv_bfloat16*,
                                                int64_t, float, int, int, cudaStream_t);
template cudaError_t rms_norm_dynamic_fp8_quant(__nv_fp8_e4m3*, float*, const __half*, const __half*, int64_t, float,
                                                int, int, cudaStream_t);
