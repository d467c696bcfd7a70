// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
The clamped SwiGLU of gpt-oss, gate and up interleaved: gate = x[0::2], up = x[1::2]

    gate = min(gate, limit)          up = clamp(up, -limit, limit)
    out  = T((up + 1) * gate * sigmoid(alpha * gate))

All in fp32, one rounding. Interleaving is a gift to vector loads: one 128-bit load brings
VEC / 2 finished (gate, up) pairs, and half a vector goes out.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ float clamped_swiglu(float gate, float up, float alpha, float limit) {
  // Comparisons rather than fminf/fmaxf: a NaN must come through.
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up;
  up = up < -limit ? -limit : up;
  const float glu = gate / (1.0f + expf(-gate * alpha));
  return (up + 1.0f) * glu;
}

template <typename scalar_t, int VEC>
__global__ void swigluoai_and_mul_kernel(scalar_t* __restrict__ out,          // [tokens, d]
                                         const scalar_t* __restrict__ input,  // [tokens, 2 * d], pairs
                                         const int d, const float alpha, const float limit) {
  static_assert(VEC % 2 == 0, "a vector holds whole pairs");
  constexpr int kPairs = VEC / 2;
  const int64_t token = blockIdx.x;
  const scalar_t* x = input + token * 2 * d;
  scalar_t* y = out + token * d;

  const int col = (blockIdx.y * blockDim.x + threadIdx.x) * kPairs;
  if (col >= d) return;

  const Vec<scalar_t, VEC> pairs = *reinterpret_cast<const Vec<scalar_t, VEC>*>(x + 2 * col);
  Vec<scalar_t, kPairs> result;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    const float gate = static_cast<float>(pairs.data[2 * p]);
    const float up = static_cast<float>(pairs.data[2 * p + 1]);
    result.data[p] = static_cast<scalar_t>(clamped_swiglu(gate, up, alpha, limit));
  }
  *reinterpret_cast<Vec<scalar_t, kPairs>*>(y + col) = result;
}

template <typename scalar_t>
void swigluoai_and_mul(scalar_t* out, const scalar_t* input, float alpha, float limit, int num_tokens, int d,
                       cudaStream_t stream) {
  if (num_tokens == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  constexpr int kThreads = 128;
  const bool wide = d % (kVec / 2) == 0 && reinterpret_cast<uintptr_t>(input) % 16 == 0 &&
                    reinterpret_cast<uintptr_t>(out) % 8 == 0;
  const int items = wide ? d / (kVec / 2) : d;
  const dim3 grid(num_tokens, (items + kThreads - 1) / kThreads);
  if (wide) {
    swigluoai_and_mul_kernel<scalar_t, kVec><<<grid, kThreads, 0, stream>>>(out, input, d, alpha, limit);
  } else {
    swigluoai_and_mul_kernel<scalar_t, 2><<<grid, kThreads, 0, stream>>>(out, input, d, alpha, limit);
  }
}

template void swigluoai_and_mul(__nv_bfloat16*, const __nv_bfloat16*, float, float, int, int, cudaStream_t);
template void swigluoai_and_mul(__half*, const __half*, float, float, int, int, cudaStream_t);
