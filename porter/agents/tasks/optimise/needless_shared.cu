// Takes elements through shared memory and two barriers, though no thread reads what another one wrote.
__global__ void needless_shared(float* __restrict__ out, const float* __restrict__ a, float s, int n) {
  __shared__ float held[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  held[threadIdx.x] = i < n ? a[i] : 0.0f;
  __syncthreads();
  held[threadIdx.x] *= s;
  __syncthreads();
  if (i < n) out[i] = held[threadIdx.x];
}
