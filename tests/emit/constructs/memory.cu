// Pointers, structs, unions, vector types, shared memory, atomics, warp and block operations.
struct alignas(16) Pack { float data[4]; };
struct Stat { float m; int n; __device__ void add(float x) { m += x; ++n; } __device__ float mean() const { return m / n; } };
union Bits { float f; unsigned u; unsigned short h[2]; };
template <typename T, int N> struct Array {
  T v[N];
  __device__ T& operator[](int k) { return v[k]; }
  __device__ void fill(T x) {
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = x;
  }
};
__global__ void vectors(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float4 a = reinterpret_cast<const float4*>(f)[t];
  float4 b = *reinterpret_cast<float4*>(&f[256 + 4 * t]);
  a.x += b.w;
  a.y *= 2.0f;
  float4 c = make_float4(a.x, b.y, a.z - b.z, (float)t);
  reinterpret_cast<float4*>(f)[64 + t] = c;
  Pack p = *reinterpret_cast<Pack*>(f + 4 * t);
#pragma unroll
  for (int k = 0; k < 4; ++k) p.data[k] = p.data[k] * 0.5f + k;
  *(Pack*)(f + 4 * t) = p;
  uint4 w = *(const uint4*)(u + 4 * t);
  w.x ^= w.w;
  *(uint4*)(u + 4 * t) = w;
  int2 z = reinterpret_cast<int2*>(i)[t];
  i[t + 256] = z.x - z.y;
  float2 pair = t & 1 ? make_float2(1.0f, 2.0f) : make_float2(3.0f, 4.0f);
  f[768 + t] = pair.x * 10.0f + pair.y;
}
__global__ void structs(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  Stat s{0.0f, 0};
  for (int k = 0; k < 5; ++k) s.add(f[(t + k) % 64]);
  f[t + 64] = s.mean();
  Stat w = s;
  w.add(100.0f);
  i[t] = w.n * 10 + s.n;
  f[t + 128] = w.m - s.m;
  Bits b;
  b.f = f[t];
  i[t + 64] = b.h[0] ^ b.h[1];
  b.u &= 0xffff0000u;
  f[t + 192] = b.f;
  Array<float, 4> arr;
  arr.fill(1.5f);
  arr[2] = f[t];
  arr[t & 3] += 2.0f;
  f[t + 256] = arr[0] + arr[1] * 2.0f + arr[2] * 4.0f + arr[3] * 8.0f;
  auto scale = [&](float x) { return x * arr[2] + (float)n; };
  f[t + 320] = scale(2.0f) - scale(f[t]);
}
__global__ void shared(int* i, unsigned* u, float* f, int n) {
  __shared__ float buf[64];
  __shared__ int counter;
  __shared__ float grid[8][9];
  int t = threadIdx.x;
  if (t == 0) counter = 0;
  buf[t] = f[t];
  grid[t / 8][t % 8] = f[t + 64];
  __syncthreads();
  atomicAdd(&counter, t);
  f[t + 128] = buf[63 - t] + grid[t % 8][t / 8];
  __syncthreads();
  i[t] = counter;
  volatile float* v = buf;
  v[t] = 2.0f;
  f[t + 192] = v[t] + buf[t ^ 1] * 0.0f;
}
__global__ void atomics(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  atomicAdd(&i[t % 4], t);
  atomicMax(&i[8 + t % 4], i[t + 64] % 1000);
  atomicMin(&u[8 + t % 4], u[t + 64]);
  atomicOr(&u[16], 1u << (t & 31));
  atomicXor(&u[17], u[t + 64]);
  atomicAnd(&u[18], ~(1u << (t & 7)));
  atomicExch(&i[t + 128], t * 3);
  int old = atomicCAS(&i[t + 192], i[t + 192], 7);
  i[t + 256] = old;
  atomicInc(&u[20], 40u);
  atomicAdd(&f[t + 64], 0.5f);
}
__global__ void warps(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float v = f[t];
  v += __shfl_xor_sync(0xffffffff, v, 16);
  v = fmaxf(v, __shfl_down_sync(0xffffffff, v, 3));
  v += __shfl_up_sync(0xffffffff, v, 1, 8);
  f[t + 64] = v + __shfl_sync(0xffffffff, v, 5, 16);
  unsigned m = __ballot_sync(0xffffffffu, i[t] > 0);
  u[t] = m;
  i[t + 64] = __any_sync(0xffffffffu, i[t] > 2000000000) + 2 * __all_sync(0xffffffffu, i[t] != 0);
  i[t + 128] = __reduce_add_sync(0xffffffffu, i[t] & 15);
  u[t + 64] = __match_any_sync(0xffffffffu, i[t] & 3);
  i[t + 192] = __syncthreads_count(i[t] > 0);
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  int y;
  asm("add.s32 %0, %1, %2;" : "=r"(y) : "r"(i[t]), "r"(5));
  i[t + 256] = (int)lane + y;
  long long z = __shfl_xor_sync(0xffffffffu, (long long)i[t] << 20, 1);
  i[t + 320] = (int)(z >> 20);
}
__constant__ const float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
constexpr int kOffset = 12;
enum Mode { kA = 3, kB = 5 };
__device__ __forceinline__ float pick(float x, float y, Mode m) { return m == kA ? x : y; }
__global__ void constants(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  f[t + 64] = table[t & 3] * f[t];
  i[t] = kOffset + sizeof(Pack) + kB;
  f[t + 128] = pick(f[t], 9.0f, t & 1 ? kA : kB);
}
template <int N> __device__ int plus(int x) {
  int y;
  asm("add.s32 %0, %1, %2;" : "=r"(y) : "r"(x), "n"(N));
  return y;
}
__global__ void pointers(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  const float* p = nullptr;
  if (n > 10) p = f + t;
  const float* q = t & 1 ? f : f + 64;
  float s = 0.0f;
  if (p != nullptr) s = *p;
  for (int k = 0; k < 3; ++k, q += 2) s += *q;
  int* w;
  if (t < 32) w = i + 256; else w = i + 512;
  w[t] = plus<7>(t) + plus<-3>(t);
  f[t + 128] = s;
  asm volatile("{ .reg .b32 r; mov.b32 r, %1; st.global.b32 [%0], r; }" ::"l"(u + 512 + t), "r"(t * 3) : "memory");
}
struct Nibbles { signed char low : 4; signed char high : 4; };
struct Packed { unsigned kind : 3; int value : 20; unsigned flag : 1; int rest; unsigned char a : 2, b : 6; };
struct Counted { unsigned n : 5; unsigned m : 27; __device__ Counted(unsigned x) : n(x), m(x * 3u) {} };
__global__ void bit_fields(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  Nibbles* nibbles = reinterpret_cast<Nibbles*>(i + 128);
  Nibbles x = nibbles[t];
  Nibbles y = {(signed char)(x.high + 1), (signed char)(x.low * 2)};
  nibbles[t] = y;
  Packed p{5u, i[t], 1u, i[t + 64], 1, 9};
  p.value += 7;
  p.kind ^= u[t];
  p.flag = p.value > 0;
  p.b++;
  int old = p.a--;
  i[t] = p.value + old * 1000 + p.rest;
  i[t + 64] = p.kind | p.flag << 4 | p.a << 8 | p.b << 12;
  Counted c(u[t + 64]);
  c.n -= 3;
  u[t] = c.n + c.m * 32u;
  reinterpret_cast<Packed*>(u + 128)[t].value = c.n;
}
__constant__ float lut[4] = {0.5f, 1.5f, -2.0f, 8.0f};
struct Bin { int bin; float score; };
__device__ Bin pick(float x) { return {x > 0 ? 1 : 3, x * 2}; }
struct Pointers { const void* ptrs[2]; };
template <class P> __device__ float first(const P* ptrs[], int k) { return ptrs[0][k] + ptrs[1][k + 1]; }
__global__ void tables(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  const auto [bin, score] = pick(f[t]);
  f[t] = lut[bin] * score;
  Pointers p{f + 64, f + 128};
  f[t + 512] = first<float>((const float**)&p.ptrs[0], t);
}
__global__ void reference_parameters(int& i, unsigned& u, float* f, int n) {
  int t = threadIdx.x;
  if (t == 0) {
    i += n;
    atomicMax(&u, 77u);
    (&i)[3] = i * 2;
  }
  f[t] += 1.0f;
}
__global__ void pointers_of_two_spaces(int* i, unsigned* u, float* f, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = f[t] * 2.0f;
  __syncthreads();
  const float* from = (i[t] & 1) ? tile : f + 64;
  float sum = from[t];
  float* p = nullptr;
  for (int k = 0; k < 3; ++k) {
    if (k == 1) p = tile + (t ^ 1);
    else p = f + 128 + t;
    sum += *p;
  }
  from = from + 1;
  f[t + 256] = sum + from[t & 31];
}
template <class T, int N> struct Row { T a[N]; };
struct alignas(8) Half2x2 { unsigned short h[4]; };
__global__ void references_to_other_classes(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  Row<int, 4> row;
  (int4&)row = *(const int4*)(i + 4 * t);
  row.a[t & 3] += n;
  *(int4*)(i + 256 + 4 * t) = (const int4&)row;
  Half2x2 halves;
  (uint2&)halves = ((const uint2*)u)[t];
  halves.h[1] ^= 0x55;
  (unsigned long long&)row = (unsigned long long&)halves;
  u[t + 512] = row.a[0] + 3 * row.a[1];
}
__global__ void where_it_failed(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  if (i[t] == 0x7fffffff && n < -5) printf("%s:%d: %5.2f%% of %s\n", __FILE__, __LINE__, f[t], __func__);
  i[t] += 1;
}
// Atomics of vectors: each element is added atomically, also where the old values are wanted.
__global__ void vector_atomics(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __shared__ __half2 halves[4];
  if (t < 4) halves[t] = __floats2half2_rn(0.0f, 1.0f);
  __nv_bfloat162* low = reinterpret_cast<__nv_bfloat162*>(u + 256);
  float2* pairs = reinterpret_cast<float2*>(f + 256);
  float4* fours = reinterpret_cast<float4*>(f + 320);
  if (t < 8) {
    u[t + 256] = 0;
    pairs[t] = make_float2(0.0f, 2.0f);
    fours[t] = make_float4(0.0f, 1.0f, 2.0f, 3.0f);
  }
  __syncthreads();
  atomicAdd(&halves[t & 3], __floats2half2_rn((float)(t % 4), 0.5f));
  atomicAdd(fours + (t & 7), make_float4((float)t, -1.0f, 0.5f, 2.0f));
  if (t < 8) {
    float2 old = atomicAdd(pairs + t, make_float2(1.0f, (float)t));
    __nv_bfloat162 before = atomicAdd(low + t, __floats2bfloat162_rn((float)t, 3.0f));
    i[t + 256] = (int)(__low2float(before) + 5.0f * old.y);
  }
  __syncthreads();
  if (t < 4) f[t + 384] = __low2float(halves[t]) + 100.0f * __high2float(halves[t]);
}
// Offsets of type size_t that go back: 2^64 less a constant.
__global__ void unsigned_offsets(int* i, unsigned* u, float* f, int n) {
  constexpr size_t W = 32;
  int t = threadIdx.x;
  float* p = f + 400 - W * 4;
  p[t] = f[t] * 2.0f;
  float* q = f + 2 * (size_t)n + (300 - W * 5);
  q[t] += 1.0f;
  unsigned long long back = 0 - W;
  i[t + 256] = *(i + 100 + back + (size_t)(t & 31));
  int* r = i + 320;
  r[W - 2 * W + t + 64] = t;
}
