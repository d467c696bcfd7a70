// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Gathers rows by a map: out[i, :] = input[dst2src[i], :]; a negative source leaves the row as it is.

Feeds grouped GEMMs after routing: the map repeats a token once for each of its experts. One
warp moves one row in 128-bit steps, so lanes of a warp agree on the source and skip together.
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
__global__ void permute_rows_kernel(scalar_t* __restrict__ out,          // [num_dst, hidden]
                                    const scalar_t* __restrict__ input,  // [num_src, hidden], rows input_stride apart
                                    const int* __restrict__ dst2src,     // [num_dst]
                                    const int64_t input_stride, const int num_dst, const int hidden_size) {
  using vec_t = Vec<scalar_t, VEC>;
  const int lane = threadIdx.x & 31;
  const int warps_per_grid = gridDim.x * (blockDim.x >> 5);
  for (int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); row < num_dst; row += warps_per_grid) {
    const int source = __ldg(dst2src + row);
    if (source < 0) {
      continue;
    }
    const vec_t* from = reinterpret_cast<const vec_t*>(input + source * input_stride);
    vec_t* to = reinterpret_cast<vec_t*>(out + static_cast<int64_t>(row) * hidden_size);
#pragma unroll 4
    for (int i = lane; i < hidden_size / VEC; i += 32) {
      to[i] = from[i];
    }
  }
}

template <typename scalar_t>
void permute_rows(scalar_t* out, const scalar_t* input, const int* dst2src, int64_t input_stride, int num_dst,
                  int hidden_size, cudaStream_t stream) {
  if (num_dst == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  constexpr int kWarps = 4;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(input);
  const int blocks = (num_dst + kWarps - 1) / kWarps < 1024 ? (num_dst + kWarps - 1) / kWarps : 1024;
  if (addresses % 16 == 0 && hidden_size % kVec == 0 && input_stride % kVec == 0) {
    permute_rows_kernel<scalar_t, kVec>
        <<<blocks, kWarps * 32, 0, stream>>>(out, input, dst2src, input_stride, num_dst, hidden_size);
  } else {
    permute_rows_kernel<scalar_t, 1>
        <<<blocks, kWarps * 32, 0, stream>>>(out, input, dst2src, input_stride, num_dst, hidden_size);
  }
}

template void permute_rows(__nv_bfloat16*, const __nv_bfloat16*, const int*, int64_t, int, int, cudaStream_t);
template void permute_rows(__half*, const __half*, const int*, int64_t, int, int, cudaStream_t);
template void permute_rows(float*, const float*, const int*, int64_t, int, int, cudaStream_t);
