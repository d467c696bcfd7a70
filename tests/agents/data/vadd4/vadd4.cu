// Adds packed bytes; byte sums wrap.
__global__ void vadd4(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vadd4(a[i], b[i]);
}
