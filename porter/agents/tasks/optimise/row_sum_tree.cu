// Row sums through shared memory, a barrier a step: warps could shuffle.
__global__ void row_sum_tree(float* out, const float* a, int cols) {
  __shared__ float part[128];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) sum += a[blockIdx.x * cols + c];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
