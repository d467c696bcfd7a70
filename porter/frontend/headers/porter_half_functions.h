// Functions of cuda_fp16.h and cuda_bf16.h that others of them make up. Lowered like user code.
#pragma once
#include "porter_half.h"
#pragma clang force_cuda_host_device begin
#define PORTER_HALF_COMPARE(op, H, H2)                                                                                 \
  PORTER_BODY inline bool __h##op##u(H a, H b) { return __hisnan(a) || __hisnan(b) || __h##op(a, b); }                 \
  PORTER_BODY inline H2 __h##op##2(H2 a, H2 b) { return H2(H(__h##op(a.x, b.x) ? 1.0f : 0.0f), H(__h##op(a.y, b.y) ? 1.0f : 0.0f)); } \
  PORTER_BODY inline H2 __h##op##u2(H2 a, H2 b) { return H2(H(__h##op##u(a.x, b.x) ? 1.0f : 0.0f), H(__h##op##u(a.y, b.y) ? 1.0f : 0.0f)); } \
  PORTER_BODY inline unsigned __h##op##2_mask(H2 a, H2 b) { return (__h##op(a.x, b.x) ? 0xFFFFu : 0u) | (__h##op(a.y, b.y) ? 0xFFFF0000u : 0u); } \
  PORTER_BODY inline unsigned __h##op##u2_mask(H2 a, H2 b) { return (__h##op##u(a.x, b.x) ? 0xFFFFu : 0u) | (__h##op##u(a.y, b.y) ? 0xFFFF0000u : 0u); } \
  PORTER_BODY inline bool __hb##op##2(H2 a, H2 b) { return __h##op(a.x, b.x) && __h##op(a.y, b.y); }                   \
  PORTER_BODY inline bool __hb##op##u2(H2 a, H2 b) { return __h##op##u(a.x, b.x) && __h##op##u(a.y, b.y); }
#define PORTER_HALF_COMPARES(H, H2)                                                                                    \
  PORTER_HALF_COMPARE(eq, H, H2) PORTER_HALF_COMPARE(ne, H, H2) PORTER_HALF_COMPARE(lt, H, H2)                         \
  PORTER_HALF_COMPARE(le, H, H2) PORTER_HALF_COMPARE(gt, H, H2) PORTER_HALF_COMPARE(ge, H, H2)
PORTER_HALF_COMPARES(__half, __half2)
PORTER_HALF_COMPARES(__nv_bfloat16, __nv_bfloat162)
// _sat: to [0, 1], NaN to +0; _relu: no less than 0, NaN stays one; _nan: NaN where either is.
#define PORTER_HALF_CLAMPED(H, H2, NAN_)                                                                               \
  PORTER_BODY inline H __porter_saturated(H x) { return float(x) > 0.0f ? (float(x) > 1.0f ? H(1.0f) : x) : H(0.0f); } \
  PORTER_BODY inline H __hadd_sat(H a, H b) { return __porter_saturated(__hadd(a, b)); }                               \
  PORTER_BODY inline H __hsub_sat(H a, H b) { return __porter_saturated(__hsub(a, b)); }                               \
  PORTER_BODY inline H __hmul_sat(H a, H b) { return __porter_saturated(__hmul(a, b)); }                               \
  PORTER_BODY inline H __hfma_sat(H a, H b, H c) { return __porter_saturated(__hfma(a, b, c)); }                       \
  PORTER_BODY inline H __hmax_nan(H a, H b) { return __hisnan(a) || __hisnan(b) ? NAN_ : __hmax(a, b); }               \
  PORTER_BODY inline H __hmin_nan(H a, H b) { return __hisnan(a) || __hisnan(b) ? NAN_ : __hmin(a, b); }               \
  PORTER_BODY inline H __hfma_relu(H a, H b, H c) { const H x = __hfma(a, b, c); return __hisnan(x) ? NAN_ : float(x) > 0.0f ? x : H(0.0f); } \
  PORTER_BODY inline H2 __hadd2_sat(H2 a, H2 b) { return H2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)); }             \
  PORTER_BODY inline H2 __hsub2_sat(H2 a, H2 b) { return H2(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)); }             \
  PORTER_BODY inline H2 __hmul2_sat(H2 a, H2 b) { return H2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)); }             \
  PORTER_BODY inline H2 __hfma2_sat(H2 a, H2 b, H2 c) { return H2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); } \
  PORTER_BODY inline H2 __hfma2_relu(H2 a, H2 b, H2 c) { return H2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); } \
  PORTER_BODY inline H2 __hmax2_nan(H2 a, H2 b) { return H2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)); }             \
  PORTER_BODY inline H2 __hmin2_nan(H2 a, H2 b) { return H2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)); }             \
  PORTER_BODY inline int __hisinf(H a) { return isinf(float(a)) ? (float(a) < 0.0f ? -1 : 1) : 0; }                      \
  PORTER_BODY inline H2 __hisnan2(H2 a) { return H2(H(__hisnan(a.x) ? 1.0f : 0.0f), H(__hisnan(a.y) ? 1.0f : 0.0f)); } \
  PORTER_BODY inline H2 __hcmadd(H2 a, H2 b, H2 c) {                                                                   \
    return H2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));               \
  }
PORTER_HALF_CLAMPED(__half, __half2, __ushort_as_half((unsigned short)0x7FFF))
PORTER_HALF_CLAMPED(__nv_bfloat16, __nv_bfloat162, __ushort_as_bfloat16((unsigned short)0x7FFF))
// Narrow integers: the wider conversion, held to the range; NaN is 0 there already.
#define PORTER_HALF_NARROW(H, name, r)                                                                                 \
  PORTER_BODY inline short __##name##2short_##r(H h) { const int v = __##name##2int_##r(h); return (short)(v > 32767 ? 32767 : v < -32768 ? -32768 : v); } \
  PORTER_BODY inline unsigned short __##name##2ushort_##r(H h) { const unsigned v = __##name##2uint_##r(h); return (unsigned short)(v > 65535u ? 65535u : v); }
#define PORTER_HALF_NARROWS(H, name)                                                                                   \
  PORTER_HALF_NARROW(H, name, rn) PORTER_HALF_NARROW(H, name, rz) PORTER_HALF_NARROW(H, name, rd) PORTER_HALF_NARROW(H, name, ru) \
  PORTER_BODY inline signed char __##name##2char_rz(H h) { const int v = __##name##2int_rz(h); return (signed char)(v > 127 ? 127 : v < -128 ? -128 : v); } \
  PORTER_BODY inline unsigned char __##name##2uchar_rz(H h) { const unsigned v = __##name##2uint_rz(h); return (unsigned char)(v > 255u ? 255u : v); }
PORTER_HALF_NARROWS(__half, half)
PORTER_HALF_NARROWS(__nv_bfloat16, bfloat16)
PORTER_BODY inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
PORTER_BODY inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
PORTER_BODY inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
PORTER_BODY inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
#undef PORTER_HALF_COMPARE
#undef PORTER_HALF_COMPARES
#undef PORTER_HALF_CLAMPED
#undef PORTER_HALF_NARROW
#undef PORTER_HALF_NARROWS
#pragma clang force_cuda_host_device end
