// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Dynamic quantisation to e4m3 with one scale for the whole tensor, in one cooperative launch.

    scale = max(max|x| / 448, 1 / (448 * 512))
    q     = e4m3(clamp(x * (1 / scale), -448, 448))

Nobody can quantise before everybody has looked, so the grid meets in the middle. Magnitudes are
not negative, and the bits of such floats sort like unsigned integers: the block maxima go into
one word by atomicMax. The word must be zero before the launch. The reciprocal of the scale is
computed once and multiplied, as with a scale known beforehand.
*/
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr float kFp8Max = 448.0f;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(kThreads)
    per_tensor_fp8_quant_kernel(__nv_fp8_e4m3* __restrict__ out,     // [numel]
                                float* __restrict__ scale,           // [1]
                                const scalar_t* __restrict__ input,  // [numel]
                                unsigned* absmax_bits,               // [1], zero before the launch
                                const int64_t num_vecs) {
  __shared__ float warp_max[kThreads / 32];
  const auto* x = reinterpret_cast<const Vec<scalar_t, VEC>*>(input);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;

  float absmax = 0.0f;
  for (int64_t i = first; i < num_vecs; i += step) {
    const Vec<scalar_t, VEC> v = x[i];
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      absmax = fmaxf(absmax, fabsf(static_cast<float>(v.data[j])));
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    absmax = fmaxf(absmax, __shfl_xor_sync(0xffffffffu, absmax, offset));
  }
  if (threadIdx.x % 32 == 0) {
    warp_max[threadIdx.x / 32] = absmax;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / 32; ++warp) {
      absmax = fmaxf(absmax, warp_max[warp]);
    }
    atomicMax(absmax_bits, __float_as_uint(absmax));
  }

  cg::this_grid().sync();

  absmax = __uint_as_float(__ldcg(absmax_bits));
  const float s = fmaxf(absmax / kFp8Max, 1.0f / (kFp8Max * 512.0f));
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *scale = s;
  }
  const float inverse = 1.0f / s;
  for (int64_t i = first; i < num_vecs; i += step) {
    const Vec<scalar_t, VEC> v = x[i];
    Vec<__nv_fp8_e4m3, VEC> q;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float f = static_cast<float>(v.data[j]) * inverse;
      q.data[j] = __nv_fp8_e4m3(fmaxf(-kFp8Max, fminf(f, kFp8Max)));
    }
    reinterpret_cast<Vec<__nv_fp8_e4m3, VEC>*>(out)[i] = q;
  }
}

template <typename scalar_t, int VEC>
static cudaError_t launch(__nv_fp8_e4m3* out, float* scale, const scalar_t* input, unsigned* absmax_bits,
                          int64_t numel, int max_blocks, cudaStream_t stream) {
  int64_t num_vecs = numel / VEC;
  const int64_t wanted = std::max<int64_t>((num_vecs + kThreads - 1) / kThreads, 1);
  const dim3 grid(static_cast<unsigned>(std::min<int64_t>(wanted, max_blocks)));
  void* args[] = {&out, &scale, &input, &absmax_bits, &num_vecs};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&per_tensor_fp8_quant_kernel<scalar_t, VEC>), grid,
                                     dim3(kThreads), args, 0, stream);
}

// max_blocks: at most what is resident at once, the multiprocessors times the blocks of each.
template <typename scalar_t>
cudaError_t per_tensor_fp8_quant(__nv_fp8_e4m3* out, float* scale, const scalar_t* input, unsigned* absmax_bits,
                                 int64_t numel, int max_blocks, cudaStream_t stream) {
  const cudaError_t cleared = cudaMemsetAsync(absmax_bits, 0, sizeof(unsigned), stream);
  if (cleared != cudaSuccess) return cleared;
  const bool wide =
      numel % 8 == 0 && reinterpret_cast<uintptr_t>(input) % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 8 == 0;
  return wide ? launch<scalar_t, 8>(out, scale, input, absmax_bits, numel, max_blocks, stream)
              : launch<scalar_t, 1>(out, scale, input, absmax_bits, numel, max_blocks, stream);
}

template cudaError_t per_tensor_fp8_quant(__nv_fp8_e4m3*, float*, const __nv_bfloat16*, unsigned*, int64_t, int,
                                          cudaStream_t);
template cudaError_t per_tensor_fp8_quant(__nv_fp8_e4m3*, float*, const __half*, unsigned*, int64_t, int,
                                          cudaStream_t);
