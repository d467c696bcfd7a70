// The 8, 6 and 4 bit floating point types of cuda_fp8.h, cuda_fp6.h and cuda_fp4.h, and their conversions.
#pragma once
#include "porter_half.h"
#pragma clang force_cuda_host_device begin
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef unsigned char __nv_fp6_storage_t;
typedef unsigned char __nv_fp4_storage_t;
typedef unsigned char __nv_fp4x2_storage_t;
typedef unsigned short __nv_fp4x4_storage_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;
typedef enum __nv_fp6_interpretation_t { __NV_E2M3, __NV_E3M2 } __nv_fp6_interpretation_t;
typedef enum __nv_fp4_interpretation_t { __NV_E2M1 } __nv_fp4_interpretation_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
#define PORTER_FP8(F, S)                                                                                  \
  struct F {                                                                                              \
    S __x;                                                                                                \
    F() = default;                                                                                        \
    explicit F(float); explicit F(double); explicit F(__half); explicit F(__nv_bfloat16);                 \
    explicit F(short); explicit F(unsigned short); explicit F(int); explicit F(unsigned int);             \
    explicit F(long); explicit F(unsigned long); explicit F(long long); explicit F(unsigned long long);   \
    explicit operator float() const; explicit operator double() const; explicit operator __half() const;  \
    explicit operator __nv_bfloat16() const; explicit operator bool() const; explicit operator char() const; \
    explicit operator signed char() const; explicit operator unsigned char() const; explicit operator short() const; \
    explicit operator unsigned short() const; explicit operator int() const; explicit operator unsigned int() const; \
    explicit operator long() const; explicit operator unsigned long() const;                              \
    explicit operator long long() const; explicit operator unsigned long long() const;                    \
  };
PORTER_FP8(__nv_fp8_e4m3, __nv_fp8_storage_t) PORTER_FP8(__nv_fp8_e5m2, __nv_fp8_storage_t)
PORTER_FP8(__nv_fp8_e8m0, __nv_fp8_storage_t) PORTER_FP8(__nv_fp4_e2m1, __nv_fp4_storage_t)
PORTER_FP8(__nv_fp6_e2m3, __nv_fp6_storage_t) PORTER_FP8(__nv_fp6_e3m2, __nv_fp6_storage_t)
#undef PORTER_FP8
#define PORTER_FP8X(F, n, S, FV)                                                                          \
  struct F##_x##n##_tag;                                                                                  \
  struct __attribute__((aligned(sizeof(S)))) F { S __x; F() = default; explicit F(FV); explicit F(__half2); explicit F(__nv_bfloat162); \
    explicit F(__half2, __half2); explicit F(__nv_bfloat162, __nv_bfloat162); explicit operator FV() const; explicit operator __half2() const; };
PORTER_FP8X(__nv_fp8x2_e8m0, 2, __nv_fp8x2_storage_t, float2) PORTER_FP8X(__nv_fp8x4_e8m0, 4, __nv_fp8x4_storage_t, float4)
PORTER_FP8X(__nv_fp4x2_e2m1, 2, __nv_fp4x2_storage_t, float2) PORTER_FP8X(__nv_fp4x4_e2m1, 4, __nv_fp4x4_storage_t, float4)
#undef PORTER_FP8X
__nv_fp8_storage_t __nv_cvt_float_to_fp8(float, __nv_saturation_t, __nv_fp8_interpretation_t);
__nv_fp8_storage_t __nv_cvt_double_to_fp8(double, __nv_saturation_t, __nv_fp8_interpretation_t);
// Pairs: the first value in the low byte. half and bfloat16 are exact in float.
PORTER_BODY inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t s, __nv_fp8_interpretation_t t) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(v.y, s, t) << 8 | __nv_cvt_float_to_fp8(v.x, s, t));
}
PORTER_BODY inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t t) {
  return __nv_cvt_float_to_fp8(__half2float(__ushort_as_half(v.x)), s, t);
}
PORTER_BODY inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t t) {
  return __nv_cvt_float2_to_fp8x2(make_float2(__half2float(__ushort_as_half(v.x)), __half2float(__ushort_as_half(v.y))), s, t);
}
PORTER_BODY inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t t) {
  return __nv_cvt_float_to_fp8(__bfloat162float(__ushort_as_bfloat16(v.x)), s, t);
}
PORTER_BODY inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t t) {
  return __nv_cvt_float2_to_fp8x2(make_float2(__bfloat162float(__ushort_as_bfloat16(v.x)), __bfloat162float(__ushort_as_bfloat16(v.y))), s, t);
}
unsigned short __porter_fp8_half_bits(__nv_fp8_storage_t, __nv_fp8_interpretation_t);
PORTER_BODY inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t t) {
  __half_raw r;
  r.x = __porter_fp8_half_bits(v, t);
  return r;
}
PORTER_BODY inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t t) {
  __half2_raw r;
  r.x = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(v & 0xff), t).x;
  r.y = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(v >> 8), t).x;
  return r;
}
// Pairs and fours: the first value in the low byte.
#define PORTER_FP8_PAIR(F, t)                                                                             \
  struct __attribute__((aligned(2))) F {                                                                  \
    __nv_fp8x2_storage_t __x;                                                                             \
    F() = default;                                                                                        \
    explicit F(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, t)) {}                          \
    explicit F(__half2 v) : __x(__nv_cvt_float2_to_fp8x2(__half22float2(v), __NV_SATFINITE, t)) {}         \
    explicit F(__nv_bfloat162 v) : __x(__nv_cvt_float2_to_fp8x2(__bfloat1622float2(v), __NV_SATFINITE, t)) {} \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, t)); }              \
    explicit operator float2() const { return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(__x, t))); } \
  };
#define PORTER_FP8_FOUR(F, t)                                                                             \
  struct __attribute__((aligned(4))) F {                                                                  \
    __nv_fp8x4_storage_t __x;                                                                             \
    F() = default;                                                                                        \
    explicit F(float4 v) : __x((unsigned)__nv_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __NV_SATFINITE, t) << 16 | \
      __nv_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __NV_SATFINITE, t)) {}                               \
    explicit F(__half2 a, __half2 b) : __x((unsigned)__nv_cvt_float2_to_fp8x2(__half22float2(b), __NV_SATFINITE, t) << 16 | \
      __nv_cvt_float2_to_fp8x2(__half22float2(a), __NV_SATFINITE, t)) {}                                   \
    explicit F(__nv_bfloat162 a, __nv_bfloat162 b) : __x((unsigned)__nv_cvt_float2_to_fp8x2(__bfloat1622float2(b), __NV_SATFINITE, t) << 16 | \
      __nv_cvt_float2_to_fp8x2(__bfloat1622float2(a), __NV_SATFINITE, t)) {}                               \
    explicit operator float4() const {                                                                    \
      float2 a = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)__x, t)));        \
      float2 b = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(__x >> 16), t))); \
      return make_float4(a.x, a.y, b.x, b.y);                                                             \
    }                                                                                                     \
  };
PORTER_FP8_PAIR(__nv_fp8x2_e4m3, __NV_E4M3) PORTER_FP8_PAIR(__nv_fp8x2_e5m2, __NV_E5M2)
PORTER_FP8_FOUR(__nv_fp8x4_e4m3, __NV_E4M3) PORTER_FP8_FOUR(__nv_fp8x4_e5m2, __NV_E5M2)
#undef PORTER_FP8_PAIR
#undef PORTER_FP8_FOUR
__nv_fp8_storage_t __nv_cvt_float_to_e8m0(float, __nv_saturation_t, cudaRoundMode);
__nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t);
__nv_fp4_storage_t __nv_cvt_float_to_fp4(float, __nv_fp4_interpretation_t, cudaRoundMode);
__nv_fp4x2_storage_t __nv_cvt_float2_to_fp4x2(float2, __nv_fp4_interpretation_t, cudaRoundMode);
__half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t, __nv_fp4_interpretation_t);
__half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t, __nv_fp4_interpretation_t);
#pragma clang force_cuda_host_device end
