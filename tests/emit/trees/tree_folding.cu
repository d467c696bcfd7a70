// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
// Sum of squares of a row: the array is folded in the middle, also when its length is odd.
__global__ void tree_folding(float* __restrict__ out, const float* __restrict__ in, int rows, int cols) {
  __shared__ float s[1024];
  const int row = blockIdx.x;
  if (row >= rows) return;
  const int tid = threadIdx.x;
  const float* x = in + (size_t)row * cols;
  float v = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) v += x[i] * x[i];
  s[tid] = v;
  __syncthreads();
  int left = blockDim.x;
  while (left > 1) {
    const int half = left / 2;
    if (tid < half) s[tid] += s[left - 1 - tid];
    __syncthreads();
    left -= half;
  }
  if (tid == 0) out[row] = s[0];
}
