// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
// Sum of squares of a row: each thread reads its partner round a ring.
__global__ void tree_ring(float* __restrict__ out, const float* __restrict__ in, int rows, int cols) {
  __shared__ float s[1024];
  const int row = blockIdx.x;
  if (row >= rows) return;
  const int tid = threadIdx.x;
  const float* x = in + (size_t)row * cols;
  float v = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) v += x[i] * x[i];
  s[tid] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o /= 2) {
    if (tid < o) {
      const int partner = (tid + o) % blockDim.x;
      s[tid] += s[partner];
    }
    __syncthreads();
  }
  if (tid == 0) out[row] = s[0];
}
