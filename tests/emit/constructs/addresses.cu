// Pointers as values: into local arrays at run-time indices, kept in arrays, compared, subtracted, null.
#include <cuda_fp16.h>
struct alignas(16) Quad { float v[4]; };
struct Mixed { short kind, sort; float weight; int tag; };
union Either { float f[2]; unsigned long long both; };
__global__ void copied_into_local(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float4 keep[4];
  int2 pairs[8];
  for (int k = 0; k < n / 13; ++k) keep[k] = reinterpret_cast<const float4*>(f)[(t + k) & 63];
  for (int k = 0; k < n / 7; ++k) pairs[k & 7] = reinterpret_cast<const int2*>(i)[(t * 3 + k) & 127];
  int at = u[t] & 1;
  reinterpret_cast<float4*>(f)[64 + t] = keep[at];
  reinterpret_cast<int2*>(i)[256 + t] = pairs[u[t + 1] & 3];
}
__global__ void halves_kept(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __half2 row[4];
  const __half2* p = reinterpret_cast<const __half2*>(u);
  for (int k = 0, j = t; j < 256; j += 64, ++k) row[k] = p[j];
  for (int k = 0, j = t; j < 256; j += 64, ++k) reinterpret_cast<__half2*>(u)[512 + j] = row[(k + n) & 3];
}
__global__ void structs_kept(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  Mixed m[3];
  Quad q[2];
  for (int k = 0; k < 3; ++k) m[(k + t) % 3] = Mixed{(short)(t + k), (short)k, f[t + k], k * t};
  Mixed one = m[u[t] % 3u];
  q[i[t] & 1] = *reinterpret_cast<const Quad*>(f + 4 * t);
  q[(i[t] & 1) ^ 1] = Quad{{1.0f, one.weight, (float)one.kind, (float)(one.tag + one.sort)}};
  *reinterpret_cast<Quad*>(f + 256 + 4 * t) = q[u[t + 64] & 1];
}
__global__ void viewed_otherwise(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  alignas(16) float local[8];
  for (int k = 0; k < 8; ++k) local[k] = f[t + k];
  int at = u[t] & 3;
  uint2 word = reinterpret_cast<uint2*>(local)[at];
  reinterpret_cast<uint2*>(local)[(at + 1) & 3] = make_uint2(word.y, word.x);
  Either e[2];
  e[at & 1].both = 0x3f80000040000000ull;
  e[(at & 1) ^ 1].f[0] = local[at];
  e[(at & 1) ^ 1].f[1] = 3.0f;
  unsigned char bytes[16];
  memcpy(bytes, &local[4 * (at & 1)], 16);
  *reinterpret_cast<float4*>(f + 256 + 4 * t) = *reinterpret_cast<float4*>(local + 4 * (at & 1));
  i[t] = bytes[at * 3] + (int)e[u[t + 64] & 1].f[i[t] & 1];
}
__global__ void moved_through_local(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float4 a[3];
  float4* p = a;
  for (int k = 0; k < 3; ++k) *p++ = reinterpret_cast<const float4*>(f)[t + k];
  float s = 0.0f;
  const float* w = reinterpret_cast<const float*>(a);
  const float* end = w + 12 - (u[t] & 3);
  for (; w < end; w += 3) s += *w;
  i[t] = (int)(end - reinterpret_cast<const float*>(a)) * 100 + (int)(p - a);
  f[t + 512] = s;
}
__global__ void kept_in_arrays(int* i, unsigned* u, float* f, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float a[4], b[4];
  for (int k = 0; k < 4; ++k) { a[k] = f[t + k]; b[k] = -f[t + k]; }
  tile[t] = f[t] * 3.0f;
  __syncthreads();
  float* rows[4] = {a, b, tile + (t & 31), f + 256};
  float s = 0.0f;
  for (int k = 0; k < 4; ++k) s += rows[(k + u[t]) & 3][k];
  f[t + 512] = s;
}
__global__ void local_or_elsewhere(int* i, unsigned* u, float* f, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float mine[4];
  for (int k = 0; k < 4; ++k) mine[k] = f[t + k] + 1.0f;
  tile[t] = f[t + 128];
  __syncthreads();
  float* p = mine;
  if (u[t] & 1) p = tile;
  if ((u[t] & 6) == 2) p = f + 128;
  float s = 0.0f;
  for (int k = 0; k < 4; ++k, ++p) s += *p;
  const float* q = (u[t] & 8) ? mine : f + t;
  f[t + 512] = s + q[2];
}
__device__ __noinline__ float sum_or(const float* p, float other) {
  float s = other;
  if (p != nullptr) for (int k = 0; k < 3; ++k) s += p[k];
  return s;
}
__global__ void null_or_not(int* i, unsigned* u, float* f, int n) {
  __shared__ float first[68];
  int t = threadIdx.x;
  first[t] = f[t];
  if (t < 4) first[64 + t] = 0.5f;
  __syncthreads();
  float mine[4] = {1.0f, f[t], 2.0f, f[t + 1]};
  float s = sum_or(first, 1.0f) + sum_or(mine, 2.0f) + sum_or(f, 3.0f) + sum_or(nullptr, 4.0f);
  float* p = nullptr;
  if (u[t] & 1) p = first;
  if (p) s += p[t & 3];
  float* q = u[t] & 2 ? mine : nullptr;
  if (!q) s *= 2.0f; else s += q[n & 3];
  bool there = first;
  i[t] = (p == nullptr) + 2 * (q != nullptr) + 4 * there + 8 * (p == first);
  f[t + 512] = s;
}
__global__ void compared(int* i, unsigned* u, float* f, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = f[t + k];
  tile[t] = f[t];
  __syncthreads();
  const float* lo = a + (u[t] & 7);
  const float* hi = a + (u[t + 1] & 7);
  const float* s0 = tile + (u[t] & 7);
  const float* s1 = t & 1 ? tile : tile + 1;
  i[t] = (lo < hi) + 2 * (lo == hi) + 4 * (s0 >= s1) + 8 * (int)(hi - lo) + 512 * (int)(s0 - s1) + 32768 * (lo != s0);
  f[t + 512] = *lo - *hi + *s0 * *s1;
}
__global__ void as_numbers(int* i, unsigned* u, float* f, int n) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  float a[4] = {f[t], f[t + 1], f[t + 2], f[t + 3]};
  tile[t] = f[t] + 5.0f;
  tile[64 + t] = f[t];
  __syncthreads();
  float x, y, z;
  asm volatile("ld.f32 %0, [%1];" : "=f"(x) : "l"(a + (u[t] & 3)) : "memory");
  float* either = u[t] & 1 ? tile : tile + 64;
  unsigned at = (unsigned)__cvta_generic_to_shared(either + t);
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(at) : "memory");
  size_t number = reinterpret_cast<size_t>(tile) + 4 * ((t + 1) & 63);
  z = *reinterpret_cast<float*>(number);
  i[t] = (int)(reinterpret_cast<unsigned long long>(a + 3) - reinterpret_cast<unsigned long long>(a));
  f[t + 512] = x + y * z;
}
__global__ void addresses_of_global(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float x;
  size_t g = __cvta_generic_to_global(f + t);
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(g) : "memory");
  asm volatile("st.global.f32 [%0], %1;" :: "l"(__cvta_generic_to_global(f + 512 + t)), "f"(x * 2) : "memory");
}
struct Pair { float a, b; };
__device__ __noinline__ float second(const float* p) { return p[1]; }
__global__ void from_one_member_to_the_next(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float2 v = make_float2(f[t], f[t + 1]);
  float4 w = make_float4(1.0f, f[t], 3.0f, f[t + 2]);
  Pair q{f[t + 3], 5.0f};
  int4 k = make_int4(t, 2 * t, 3 * t, 4 * t);
  float* p = &v.x;
  p[u[t] & 1] += 2.0f;
  (&w.y)[u[t] & 1] *= 4.0f;
  int s = 0;
  for (int j = 0; j < 4; ++j) s += (&k.x)[(j + u[t]) & 3] * (j + 1);
  i[t] = s;
  f[t + 512] = v.x + v.y * 10.0f + w.y + w.z + second(&q.a);
}
// A test of a pointer as an operand.
__global__ void null_tests(int* i, unsigned* u, float* f, int n) {
  __shared__ int own[64];
  int t = threadIdx.x;
  own[t] = t;
  int* p = (t & 1) ? own : i;
  bool odd = t % 3 == 1;
  i[t + 256] = (odd == (p != nullptr)) + 2 * ((p == nullptr) != odd);
  i[t + 320] = (p != nullptr) + (t > 5) * 4;
}
