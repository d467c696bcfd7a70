// A polynomial of degree 7 by a recursive function.
__device__ float horner(float x, int k) { return k == 0 ? 1.0f : horner(x, k - 1) * x + (float)k; }
__global__ void recursive_horner(float* out, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = horner(a[i], 7);
}
