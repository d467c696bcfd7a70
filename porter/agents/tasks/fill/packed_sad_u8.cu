// Sum of absolute differences of four bytes.
__global__ void packed_sad_u8(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vsadu4(a[i], b[i]);
}
