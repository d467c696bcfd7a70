// Integer arithmetic, promotions, signedness, shifts, bit operations.
__global__ void division(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int a = i[t], b = i[t + 64];
  if (b == 0 || (a == -2147483647 - 1 && b == -1)) b = 3;
  i[t + 128] = a / b;
  i[t + 192] = a % b;
  i[t + 256] = a / 7 + a % 7;
  unsigned ua = u[t], ub = u[t + 64] | 1u;
  u[t + 128] = ua / ub;
  u[t + 192] = ua % ub;
  u[t + 256] = ua / 16 + ua % 16;
}
__global__ void signedness(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int a = i[t];
  unsigned b = u[t];
  i[t + 128] = a < (int)b ? 1 : 0;
  i[t + 192] = (unsigned)a < b ? 1 : 0;
  u[t + 128] = b >> 3;
  i[t + 256] = a >> 3;
  u[t + 192] = (unsigned)(a >> 2) ^ (b >> 2);
  u[t + 256] = b * 2654435761u + a;
  i[t + 320] = (b > 0x80000000u) + (a > -5);
  f[t] = (float)b + (float)a;
}
__global__ void narrow(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(u);
  const signed char* sbytes = reinterpret_cast<const signed char*>(u);
  const unsigned short* halves = reinterpret_cast<const unsigned short*>(u);
  i[t + 128] = bytes[t] + bytes[t + 1];
  i[t + 192] = sbytes[t] * sbytes[t + 1];
  i[t + 256] = halves[t] - halves[t + 1];
  unsigned char c = bytes[t];
  c += 200;
  i[t + 320] = c;
  short s = (short)i[t];
  s = s * 3;
  i[t + 384] = s;
}
__global__ void wide(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  long long a = (long long)i[t] * i[t + 64];
  unsigned long long b = (unsigned long long)u[t] * u[t + 64];
  i[t + 128] = (int)(a >> 20);
  u[t + 128] = (unsigned)(b >> 33);
  i[t + 192] = (int)(a / 1000) + (int)(a % 1000);
  u[t + 192] = (unsigned)(b % 1000003ull);
  size_t k = t;
  k = (k + n) * 3 % 64;
  u[t + 256] = u[k];
}
__global__ void bits(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  unsigned b = u[t];
  i[t + 128] = __popc(b) + 100 * __clz(b) + 10000 * __ffs(b);
  u[t + 128] = __brev(b);
  u[t + 192] = __byte_perm(b, u[t + 64], 0x5410);
  u[t + 256] = __umulhi(b, u[t + 64]);
  i[t + 192] = __mulhi(i[t], i[t + 64]);
  u[t + 320] = ~b & (b - 1) | (b ^ 0xff00ff00u);
  u[t + 384] = __funnelshift_l(b, u[t + 64], t & 31);
  i[t + 256] = max(i[t], i[t + 64]) - min(i[t], 12);
  i[t + 320] = abs(i[t] / 2);
}
__global__ void booleans(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  bool a = i[t] > 0, b = i[t + 64];
  i[t + 128] = a && b;
  i[t + 192] = a || !b;
  i[t + 256] = a + b;
  bool c = a != b;
  i[t + 320] = c ? 10 : 20;
  i[t + 384] = !(i[t] & 3) + (a ^ b);
  // the right side must not run where the left side decides
  i[t + 448] = (i[t] != 0 && 100 / i[t] > 2) ? 1 : 0;
  bool* flags = reinterpret_cast<bool*>(u + 512);
  flags[t] = a;
  if (flags[t]) i[t] += 1;
}
