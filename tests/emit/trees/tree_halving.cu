// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
// Sum of squares of a row: the upper half is added to the lower one.
__global__ void tree_halving(float* __restrict__ out, const float* __restrict__ in, int rows, int cols) {
  __shared__ float s[1024];
  const int row = blockIdx.x;
  if (row >= rows) return;
  const int tid = threadIdx.x;
  const float* x = in + (size_t)row * cols;
  float v = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) v += x[i] * x[i];
  s[tid] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) {
    if (tid < o) s[tid] += s[tid + o];
    __syncthreads();
  }
  if (tid == 0) out[row] = s[0];
}
