// curand's Philox and XORWOW generators, fp8 pairs and pairs of halves built from their bits.
#include <curand_kernel.h>
__global__ void philox(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  curandStatePhilox4_32_10_t state;
  unsigned long long seed = ((unsigned long long)u[t] << 32) | u[t + 64];
  curand_init(seed, u[t + 128], (unsigned long long)u[t + 192] << 2 | (t & 3), &state);
  unsigned a = curand(&state);
  float b = curand_uniform(&state);
  float4 c = curand_uniform4(&state);
  uint4 d = curand4(&state);
  u[t] = a;
  f[t] = b;
  f[t + 64] = c.x + c.y + c.z + c.w;
  u[t + 64] = d.x ^ d.y ^ d.z ^ d.w;
  skipahead(17 + t, &state);
  u[t + 128] = curand(&state);
  f[t + 128] = curand_normal(&state);
  f[t + 192] = curand_normal(&state);
}
__global__ void xorwow(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  curandState_t state;
  unsigned long long seed = ((unsigned long long)u[t] << 32) | u[t + 64];
  curand_init(seed, 0, 0, &state);
  unsigned a = curand(&state);
  for (int k = 0; k < (t & 7); ++k) a ^= curand(&state);
  u[t] = a;
  f[t] = curand_uniform(&state);
  f[t + 64] = curand_normal(&state);
  f[t + 128] = curand_normal(&state);
  u[t + 128] = state.v[3] + state.d;
}
