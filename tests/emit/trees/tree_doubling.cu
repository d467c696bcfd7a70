// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
// Sum of squares of a row: neighbours first, by threads that stay together.
__global__ void tree_doubling(float* __restrict__ out, const float* __restrict__ in, int rows, int cols) {
  __shared__ float s[1024];
  const int row = blockIdx.x;
  if (row >= rows) return;
  const int tid = threadIdx.x;
  const float* x = in + (size_t)row * cols;
  float v = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) v += x[i] * x[i];
  s[tid] = v;
  __syncthreads();
  for (int o = 1; o < blockDim.x; o *= 2) {
    const int at = 2 * o * tid;
    if (at < blockDim.x) s[at] += s[at + o];
    __syncthreads();
  }
  if (tid == 0) out[row] = s[0];
}
