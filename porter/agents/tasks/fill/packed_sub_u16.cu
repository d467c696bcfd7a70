// Differences of pairs of 16-bit numbers, each modulo 65536, a lane at a time by recursion.
__device__ unsigned differences(unsigned a, unsigned b, int lane, unsigned done) {
  const unsigned x = a >> (16 * lane) & 0xFFFFu, y = b >> (16 * lane) & 0xFFFFu;
  const unsigned here = ((unsigned)(x - y) & 0xFFFFu) << (16 * lane);
  return lane == 1 ? done | here : differences(a, b, lane + 1, done | here);
}
__global__ void packed_sub_u16(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = differences(a[i], b[i], n > 0 ? 0 : 1, 0u);
}
