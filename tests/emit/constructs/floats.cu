// Floating point: exact functions, fast functions, conversions, half types, comparisons with NaN.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__global__ void math(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float a = f[t], b = f[t + 64];
  f[t + 128] = expf(a * 0.01f) + logf(fabsf(b) + 1.0f);
  f[t + 192] = sqrtf(fabsf(a)) / (1.0f + rsqrtf(fabsf(b) + 0.5f));
  f[t + 256] = tanhf(a) + erff(b * 0.1f) + sinf(a) * cosf(b);
  f[t + 320] = powf(fabsf(a) + 0.1f, 1.5f) + exp2f(b * 0.1f) + log2f(fabsf(a) + 2.0f);
  f[t + 384] = floorf(a) + ceilf(b) + rintf(a) + truncf(b) + roundf(a);
  f[t + 448] = fmaxf(a, b) * fminf(a, 2.0f) + copysignf(a, b) + fmaf(a, b, 3.0f);
  f[t + 512] = a * b + 1.5f - b / 3.0f;
}
__global__ void fast(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float a = f[t], b = f[t + 64];
  f[t + 128] = __expf(a * 0.01f) + __logf(fabsf(b) + 1.0f) + __fdividef(a, 3.0f);
  f[t + 192] = __fadd_rn(__fmul_rn(a, b), b) + __frcp_rn(b + 100.0f) + __fsqrt_rn(fabsf(a));
  f[t + 256] = __powf(fabsf(a) + 0.1f, 0.7f) + __sinf(a) + __cosf(b) + __saturatef(a);
  i[t] = __float2int_rn(a) + __float2int_rz(b) * 3 + __float2int_rd(a) * 5 + __float2int_ru(b) * 7;
  f[t + 320] = __int2float_rn(i[t + 64]) + __uint_as_float((u[t] & 0x007fffffu) | 0x3f800000u);
  u[t + 128] = __float_as_uint(a) ^ (unsigned)__float_as_int(b);
}
__global__ void nans(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float a = t % 5 == 0 ? __int_as_float(0x7fc00000) : f[t];
  float b = t % 7 == 0 ? INFINITY : f[t + 64];
  i[t] = (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b);
  i[t + 64] = isnan(a) + 2 * isinf(b);
  f[t + 128] = fmaxf(a, b);
  f[t + 192] = a > b ? a : b;
  f[t + 256] = !(a < b) ? 1.0f : 2.0f;
  i[t + 128] = (a ? 1 : 0);
}
__global__ void halves(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __half a = __float2half(f[t]), b = __float2half_rn(f[t + 64]);
  __half c = a * b + a;
  c = __hadd(c, __hmul(a, __float2half(0.5f)));
  f[t + 128] = __half2float(c) + __half2float(__hmax(a, b)) + float(__hsub(a, b));
  i[t] = (a < b) + 2 * __hgt(a, b) + 4 * (c == c);
  __nv_bfloat16 x = __float2bfloat16(f[t]), y = (__nv_bfloat16)f[t + 64];
  x = x * y - x / __float2bfloat16(3.0f);
  f[t + 192] = __bfloat162float(x) + (float)__hfma(x, y, y);
  __half2 p = __floats2half2_rn(f[t], f[t + 64]);
  p = __hfma2(p, p, __float2half2_rn(1.0f));
  float2 q = __half22float2(p);
  f[t + 256] = q.x;
  f[t + 320] = q.y + __low2float(p);
  __nv_bfloat162 r = __floats2bfloat162_rn(f[t], f[t + 64]);
  r = __hmul2(r, r);
  f[t + 384] = __bfloat162float(r.x) + __high2float(r);
  reinterpret_cast<__half*>(u)[t] = a;
  reinterpret_cast<__nv_bfloat16*>(u)[t + 256] = x;
  reinterpret_cast<__half2*>(u)[t + 256] = p;
}
__global__ void fp8(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __nv_fp8_e4m3 a = __nv_fp8_e4m3(f[t] * 10.0f);
  __nv_fp8_e5m2 b(f[t + 64] * 1000.0f);
  f[t + 128] = float(a) + float(b);
  reinterpret_cast<__nv_fp8_e4m3*>(u)[t] = a;
  reinterpret_cast<__nv_fp8_e5m2*>(u)[t + 64] = b;
  reinterpret_cast<unsigned char*>(u)[t + 128] = a.__x;
}
__global__ void half_math(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  __half* h = reinterpret_cast<__half*>(f + 512);
  __half x = __ushort_as_half((unsigned short)(i[t] & 0x7bff)), y = __float2half(f[t]);
  h[t] = hexp(y);
  h[t + 64] = hexp2(y);
  h[t + 128] = __hadd(hlog(x), hlog2(x));
  h[t + 192] = hlog10(x);
  h[t + 256] = hsqrt(x);
  h[t + 320] = hrsqrt(x);
  h[t + 384] = hrcp(x);
  __nv_bfloat16* b = reinterpret_cast<__nv_bfloat16*>(f + 768);
  __nv_bfloat16 v = __float2bfloat16(f[t + 64]), w = __float2bfloat16(fabsf(f[t + 64]) + 0.01f);
  b[t] = hexp(v);
  b[t + 64] = hexp2(v);
  b[t + 128] = hlog(w);
  b[t + 192] = hrsqrt(w);
  b[t + 256] = hlog2(w);
  b[t + 320] = hrcp(w);
  h[t + 448] = hexp(t == 0 ? __ushort_as_half(0x1f79) : t == 1 ? __ushort_as_half(0xc1ef) : y);
}
__device__ inline unsigned char to_fp8(float x, __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, format);
}
__device__ __noinline__ unsigned char scaled_fp8(float x, float scale, __nv_fp8_interpretation_t format) {
  return to_fp8(x * scale, format);
}
__global__ void fp8_formats(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  reinterpret_cast<unsigned char*>(u)[t] = scaled_fp8(f[t], 3.0f, __NV_E4M3);
  reinterpret_cast<unsigned char*>(u)[t + 64] = __nv_cvt_float_to_fp8(f[t + 64], __NV_SATFINITE, __NV_E5M2);
  reinterpret_cast<unsigned short*>(u)[t + 64] = __nv_cvt_float2_to_fp8x2(reinterpret_cast<float2*>(f)[t], __NV_SATFINITE, __NV_E4M3);
}
__global__ void casts(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float a = f[t];
  i[t] = (int)a + (int)(a * 1e6f);
  u[t] = (unsigned)fabsf(a * 100.0f);
  double d = a;
  d = d * 1.000001 + 1.0 / 3.0;
  f[t + 64] = (float)d;
  i[t + 64] = (int)(long long)(d * 1e5);
  f[t + 128] = (float)(i[t + 128] > 0) + (float)(unsigned char)i[t + 128];
  bool z = a;
  i[t + 192] = z;
  char c = (char)(int)a;
  i[t + 256] = c;
}
__device__ inline __half scaled(__half x, __half by) { return x * by * __float2half(0.3f); }
__global__ void constants(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  const __half c = __float2half(0.1f), d = __float2half(0.7071f) * c;
  const __nv_bfloat16 e = __float2bfloat16(0.044715f);
  const float k = 0.1f, l = k * 0.2f;
  f[t + 128] = f[t] * (0.1f * 0.7f * 1.3f) + l * 0.3f + k / 0.7f;
  f[t + 192] = f[t] * __half2float(d) + __half2float(__float2half(0.3f) * __float2half(1.1284f) + c);
  f[t + 256] = f[t] * (float)e + (float)(e * __float2bfloat16(1.1f));
  f[t + 320] = __half2float(scaled(__float2half(0.9f), __float2half(0.77f)));
  f[t + 384] = (float)((double)0.1f * 3.0 - 1.0 / 3.0) + (float)(-c);
}
