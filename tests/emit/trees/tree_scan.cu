// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
// Sum of squares of a row as the last of the running sums (Hillis and Steele).
__global__ void tree_scan(float* __restrict__ out, const float* __restrict__ in, int rows, int cols) {
  __shared__ float s[1024];
  const int row = blockIdx.x;
  if (row >= rows) return;
  const int tid = threadIdx.x;
  const float* x = in + (size_t)row * cols;
  float v = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) v += x[i] * x[i];
  s[tid] = v;
  __syncthreads();
  for (int o = 1; o < blockDim.x; o <<= 1) {
    float left = 0.0f;
    if (tid >= o) left = s[tid - o];
    __syncthreads();
    s[tid] += left;
    __syncthreads();
  }
  if (tid == blockDim.x - 1) s[0] = s[tid];
  __syncthreads();
  if (tid == 0) out[row] = s[0];
}
