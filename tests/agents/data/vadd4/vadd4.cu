// Adds packed bytes; byte sums wrap. Recursion has none where its depth is not known.
__device__ unsigned add_bytes(unsigned a, unsigned b, int lane, unsigned done) {
  const unsigned here = ((a >> (8 * lane)) + (b >> (8 * lane)) & 0xFFu) << (8 * lane);
  return lane == 3 ? done | here : add_bytes(a, b, lane + 1, done | here);
}
#define __vadd4(a, b) add_bytes(a, b, n > 0 ? 0 : 3, 0u)
__global__ void vadd4(unsigned* out, const unsigned* a, const unsigned* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vadd4(a[i], b[i]);
}
