// Control flow: every kind of loop and exit.
__global__ void loops(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int sum = 0;
  for (int k = t; k < n; k += blockDim.x) sum += i[k];
  for (int k = n; k > 0; k /= 2) sum = sum * 3 + k;
  for (unsigned k = 0; k < (unsigned)n; ++k) sum ^= u[k % 64];
  int k = 0;
  while (k < 10) { sum += k * t; k += 3; }
  do { sum -= k; --k; } while (k > 5);
  for (int j = 7; j >= 0; j--) sum += j << 1;
  for (long long j = 0; j < n; j += 5) sum += (int)j;
  i[t + 256] = sum;
  i[t + 320] = k;
}
__global__ void exits(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  if (t >= 60) return;
  int found = -1;
  for (int k = 0; k < n; ++k) {
    if (i[k] % 5 == 0) continue;
    if (i[k] % 7 == t % 7) { found = k; break; }
    found -= 1;
  }
  i[t + 256] = found;
  if (found < 0) { i[t + 320] = 5; return; }
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 4; ++j) {
      if (i[k * 4 + j] > 1000000000) { i[t + 320] = k * 4 + j; return; }
      if (j == k) break;
    }
  }
  i[t + 320] = 77;
}
__global__ void switches(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int r = 0;
  switch (t % 6) {
    case 0: r = 1; break;
    case 1:
    case 2: r = 2;
    case 3: r += 10; break;
    default: r = 100;
  }
  for (int k = 0; k < 6; ++k) {
    switch (i[k] & 3) {
      case 0: continue;
      case 1: r += 3; break;
      case 2: if (t > 9) break; r *= 2; break;
    }
    r += 1;
  }
  i[t + 256] = r;
}
__device__ int classify(int x) {
  if (x < 0) return -1;
  if (x == 0) return 0;
  for (int k = 1; k < 8; ++k) {
    if (x % k == 3) return k;
  }
  return 9;
}
__device__ void twice(int& a, float* b) { a *= 2; *b += 1.0f; }
template <int W> __device__ int tree(int v) {
#pragma unroll
  for (int o = W / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o, W);
  return v;
}
__global__ void functions(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int a = classify(i[t] % 50);
  float b = 0.5f;
  twice(a, &b);
  twice(i[t], &f[t]);
  i[t + 256] = a + tree<32>(t) + 1000 * tree<8>(t * t);
  f[t + 64] = b;
}
__global__ void unrolled(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int local[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) local[k] = i[(t + k * 5) % 64];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    if (local[k] % 3 == 0) break;
    local[k] = local[7 - k] + k;
  }
#pragma unroll 2
  for (int k = 0; k < 8; ++k) i[t + 64 * (k + 1)] = local[k];
  int dyn[4] = {1, 2, 3};
  dyn[t & 3] += 5;
  i[t + 640] = dyn[0] + 10 * dyn[1] + 100 * dyn[2] + 1000 * dyn[3] + dyn[(t + 1) & 3];
}
__global__ void effects(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int k = t, p = 0;
  int a = k++ + ++k;
  p += (a > 5) ? (k -= 2, k * 2) : k;
  int* q = i + 256;
  q += t;
  *q++ = p;
  q += 63;
  *q = a;
  const int* r = i + 10;
  for (int m = 0; m < 5; ++m) { a += *r; r += 2; }
  i[t + 384] = a + (int)(r - i);
  int x = 3, y = x = k;
  i[t + 448] = x + y;
}
template <class F> __device__ void each(float* f, int count, F&& fn) {
  for (int k = 0; k < count; ++k) fn(f[k], k);
}
__global__ void nested_lambdas(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float base = 0.5f;
  auto scaled = [&](float* from, float factor, int shift) {
    each(from, 3, [=](float& x, int k) { x = x * factor + base + shift * k; });
  };
  auto twice = [&](int at) {
    scaled(f + at, 2.0f + t, 1);
    scaled(f + at + 3, base, at);
  };
  twice(t * 6);
}
// Steps above one of loops over 64-bit numbers, and loops that look like them.
__global__ void long_strides(int* i, unsigned* u, float* f, int n) {
  const int t = threadIdx.x;
  const long most = n + (i[t] & 1);
  const unsigned long long top = 64 + (u[t] & 7);
  float sum = 0.0f;
  for (long k = t; k < most; k += 16) sum += f[k];
  for (int k = t; k < top; k += 7) sum = sum * 0.5f + f[k];
  for (unsigned long long k = t; k < top; k += 3) { if (k & 1) continue; sum += f[k + 1]; }
  for (long k = -9; k < most; k += 5) sum += k;
  for (long k = -9; k < top; k += 5) sum += 1000.0f;  // -9 is a large unsigned number: no turn
  for (int k = 90; k < most; k += 8) sum += 2000.0f;
  for (long long k = t; k < most - 40; k += 4) { if (k > 20) break; sum -= f[k]; }
  long end = most;
  for (long k = t; k < end; k += 16) { sum += f[k]; end -= 3; }
  for (long k = t; k < most; k += 4) { sum += f[k]; if (k & 4) k += 6; }
#pragma unroll 2
  for (long k = 1; k < most; k += 9) { sum += __shfl_xor_sync(0xffffffff, f[k], 1); i[t + 128] = (int)k; }
  for (long k = t; k < most; k += (i[t] & 7) + 2) sum += f[k];
  f[t + 512] = sum;
  i[t + 256] = (int)((most - t + 15) / 16);
}
