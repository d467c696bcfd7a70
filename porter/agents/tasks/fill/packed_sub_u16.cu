// Differences of pairs of 16-bit numbers, each modulo 65536.
__global__ void packed_sub_u16(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vsub2(a[i], b[i]);
}
