// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
SwiGLU's gate: out = silu(gate) * up, where a row of the input is gate and up side by side.

    a   = T(g / (1 + exp(-g)))
    out = T(a * u)

Both steps round to T, exactly as two separate element-wise kernels would, so the result
equals the unfused one bit for bit. Purely element-wise: no shared memory, one block a
row, each thread moves two 128-bit vectors in and one out. Rows whose length is not a
multiple of the vector take the scalar instance of the same kernel (VEC = 1).
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <typename T>
__device__ __forceinline__ T silu(const T& x) {
  const float f = static_cast<float>(x);
  return static_cast<T>(f / (1.0f + expf(-f)));
}

template <typename T>
__device__ __forceinline__ T multiply(const T& a, const T& b) {
  return static_cast<T>(static_cast<float>(a) * static_cast<float>(b));
}

template <typename scalar_t, int VEC>
__global__ void silu_and_mul_kernel(scalar_t* __restrict__ out,          // [tokens, d]
                                    const scalar_t* __restrict__ input,  // [tokens, 2 * d]
                                    const int d) {
  const int64_t token = blockIdx.x;
  const scalar_t* gate = input + token * 2 * d;
  const scalar_t* up = gate + d;
  scalar_t* row = out + token * d;

  if constexpr (VEC * sizeof(scalar_t) == 16) {
    const uint4* gate_vec = reinterpret_cast<const uint4*>(gate);
    const uint4* up_vec = reinterpret_cast<const uint4*>(up);
    uint4* out_vec = reinterpret_cast<uint4*>(row);
    for (int i = threadIdx.x; i < d / VEC; i += blockDim.x) {
      const uint4 g = __ldg(&gate_vec[i]);
      const uint4 u = __ldg(&up_vec[i]);
      uint4 r;
      const scalar_t* gp = reinterpret_cast<const scalar_t*>(&g);
      const scalar_t* ups = reinterpret_cast<const scalar_t*>(&u);
      scalar_t* rp = reinterpret_cast<scalar_t*>(&r);
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        rp[j] = multiply(silu(gp[j]), ups[j]);
      }
      out_vec[i] = r;
    }
  } else {
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
      row[i] = multiply(silu(__ldg(&gate[i])), __ldg(&up[i]));
    }
  }
}

template <typename scalar_t>
void silu_and_mul(scalar_t* out, const scalar_t* input, int num_tokens, int d, cudaStream_t stream) {
  if (num_tokens == 0) {
    return;
  }
  constexpr int kVec = 16 / sizeof(scalar_t);
  const bool wide = d % kVec == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0 &&
                    reinterpret_cast<uintptr_t>(input) % 16 == 0;
  const dim3 grid(num_tokens);
  if (wide) {
    const dim3 block(d / kVec < 1024 ? d / kVec : 1024);
    silu_and_mul_kernel<scalar_t, kVec><<<grid, block, 0, stream>>>(out, input, d);
  } else {
    const dim3 block(d < 1024 ? d : 1024);
    silu_and_mul_kernel<scalar_t, 1><<<grid, block, 0, stream>>>(out, input, d);
  }
}

template void silu_and_mul(__nv_bfloat16*, const __nv_bfloat16*, int, int, cudaStream_t);
template void silu_and_mul(__half*, const __half*, int, int, cudaStream_t);
template void silu_and_mul(float*, const float*, int, int, cudaStream_t);
