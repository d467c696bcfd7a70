// Maxima of pairs of signed 16-bit numbers.
__global__ void packed_max_s16(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vmaxs2(a[i], b[i]);
}
