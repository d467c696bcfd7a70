// A power that is computed again for each element of a row.
__global__ void power_recomputed(float* out, const float* a, const float* base, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float p = 1.0f;
    for (int k = 0; k < 16; ++k) p *= base[blockIdx.x];
    out[blockIdx.x * cols + c] = a[blockIdx.x * cols + c] * p;
  }
}
