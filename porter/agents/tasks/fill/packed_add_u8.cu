// Sums of four bytes, each modulo 256, a lane at a time by recursion.
__device__ unsigned sums(unsigned a, unsigned b, int lane, unsigned done) {
  const unsigned x = a >> (8 * lane) & 0xFFu, y = b >> (8 * lane) & 0xFFu;
  const unsigned here = ((unsigned)(x + y) & 0xFFu) << (8 * lane);
  return lane == 3 ? done | here : sums(a, b, lane + 1, done | here);
}
__global__ void packed_add_u8(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sums(a[i], b[i], n > 0 ? 0 : 3, 0u);
}
