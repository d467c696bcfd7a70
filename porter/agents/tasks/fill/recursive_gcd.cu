// Greatest common divisor by a recursive function.
__device__ int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
__global__ void recursive_gcd(int* out, const int* a, const int* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gcd(a[i], b[i]);
}
