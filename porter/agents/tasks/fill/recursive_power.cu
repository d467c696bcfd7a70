// The fifth power by a recursive function with an accumulator.
__device__ float power(float x, int k, float acc) { return k == 0 ? acc : power(x, k - 1, acc * x); }
__global__ void recursive_power(float* out, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = power(a[i], n > 0 ? 5 : 0, 1.0f);
}
