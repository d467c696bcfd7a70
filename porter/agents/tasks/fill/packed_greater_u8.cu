// A byte of ones where a byte of a is greater than that of b.
__global__ void packed_greater_u8(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vcmpgtu4(a[i], b[i]);
}
