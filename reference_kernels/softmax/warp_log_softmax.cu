// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Log-softmax of short rows: y = x - max - log(sum(exp(x - max))), one warp a row.

A row of at most 32 * ITEMS elements fits in the registers of a warp, so memory is read once,
there is no shared memory and no barrier, and four rows share a block. Lanes stride by 32:
neighbouring lanes touch neighbouring elements without any demand on alignment. Lanes past
the end hold -inf, which neither wins the maximum nor adds to the sum. A row of nothing but
-inf has no logarithm to give: NaN.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <stdint.h>

constexpr int WARPS_PER_BLOCK = 4;

struct MaxOp {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct AddOp {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Op>
__device__ __forceinline__ float warp_reduce(float value, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

template <typename scalar_t, int ITEMS>
__global__ void __launch_bounds__(WARPS_PER_BLOCK * 32)
    warp_log_softmax_kernel(scalar_t* __restrict__ out,          // [rows, cols]
                            const scalar_t* __restrict__ input,  // [rows, cols]
                            const int rows, const int cols) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) {
    return;  // the whole warp leaves: threadIdx.y is the warp
  }
  const int lane = threadIdx.x;
  const scalar_t* x = input + static_cast<size_t>(row) * cols;
  scalar_t* y = out + static_cast<size_t>(row) * cols;

  float value[ITEMS];
  float largest = -CUDART_INF_F;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int col = lane + 32 * i;
    value[i] = col < cols ? static_cast<float>(x[col]) : -CUDART_INF_F;
    largest = fmaxf(largest, value[i]);
  }
  largest = warp_reduce(largest, MaxOp());

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    value[i] -= largest;
    sum += expf(value[i]);
  }
  const float log_sum = logf(warp_reduce(sum, AddOp()));

#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int col = lane + 32 * i;
    if (col >= cols) break;
    y[col] = static_cast<scalar_t>(value[i] - log_sum);
  }
}

template <typename scalar_t>
cudaError_t warp_log_softmax(scalar_t* out, const scalar_t* input, int rows, int cols, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const dim3 block(32, WARPS_PER_BLOCK);
  const dim3 grid((rows + WARPS_PER_BLOCK - 1) / WARPS_PER_BLOCK);
  if (cols <= 64) {
    warp_log_softmax_kernel<scalar_t, 2><<<grid, block, 0, stream>>>(out, input, rows, cols);
  } else if (cols <= 256) {
    warp_log_softmax_kernel<scalar_t, 8><<<grid, block, 0, stream>>>(out, input, rows, cols);
  } else if (cols <= 1024) {
    warp_log_softmax_kernel<scalar_t, 32><<<grid, block, 0, stream>>>(out, input, rows, cols);
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

template cudaError_t warp_log_softmax(__nv_bfloat16*, const __nv_bfloat16*, int, int, cudaStream_t);
template cudaError_t warp_log_softmax(__half*, const __half*, int, int, cudaStream_t);
template cudaError_t warp_log_softmax(float*, const float*, int, int, cudaStream_t);
