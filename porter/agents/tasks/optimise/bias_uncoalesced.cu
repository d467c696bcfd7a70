// Adds a bias; neighbouring threads work on elements that are four apart.
__global__ void bias_uncoalesced(float* out, const float* a, const float* bias, int n, int cols) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (int k = 0; k < 4; ++k)
    if (start + k < n) out[start + k] = a[start + k] + bias[(start + k) % cols];
}
