// __half, __nv_bfloat16 and their two-element vectors: the types, operators and intrinsics of cuda_fp16.h and cuda_bf16.h.
#pragma once
#include "porter_math.h"
#pragma clang force_cuda_host_device begin
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };
struct __nv_bfloat16_raw { unsigned short x; };
struct __nv_bfloat162_raw { unsigned short x, y; };

struct __half;
struct __nv_bfloat16;
// The operators are friends so that only arguments of these very types find them (c10::Half converts to __half).
#define PORTER_HALF_TYPES(H, H2, RAW, RAW2, OTHER)                                                       \
  struct __attribute__((aligned(2))) H {                                                                 \
    unsigned short __x;                                                                                  \
    H() = default;                                                                                       \
    constexpr H(const RAW& r) : __x(r.x) {}                                                              \
    explicit H(const OTHER&);                                                                            \
    H(float v); H(double v);                                                                             \
    H(short v); H(unsigned short v); H(int v); H(unsigned int v);\
    H(long v); H(unsigned long v);                                                   \
    H(long long v); H(unsigned long long v);                                         \
    H& operator=(const RAW&);                                                                            \
    H& operator=(float); H& operator=(double); H& operator=(short); H& operator=(unsigned short);        \
    H& operator=(int); H& operator=(unsigned int); H& operator=(long long); H& operator=(unsigned long long); \
    constexpr operator RAW() const { return {__x}; }                                                     \
    operator float() const;                                                                              \
    operator bool() const; operator signed char() const; operator unsigned char() const; operator char() const; \
    operator short() const; operator unsigned short() const; operator int() const; operator unsigned int() const; \
    operator long() const; operator unsigned long() const;                                               \
    operator long long() const; operator unsigned long long() const;                                     \
    friend H operator+(const H&, const H&); friend H operator-(const H&, const H&);                             \
    friend H operator*(const H&, const H&); friend H operator/(const H&, const H&);                             \
    friend H& operator+=(H&, const H&); friend H& operator-=(H&, const H&); friend H& operator*=(H&, const H&); \
    friend H& operator/=(H&, const H&); friend H& operator++(H&); friend H& operator--(H&);                     \
    friend H operator++(H&, int); friend H operator--(H&, int); friend H operator+(const H&);                   \
    friend H operator-(const H&); friend bool operator==(const H&, const H&);                                   \
    friend bool operator!=(const H&, const H&); friend bool operator<(const H&, const H&);                      \
    friend bool operator>(const H&, const H&); friend bool operator<=(const H&, const H&);                      \
    friend bool operator>=(const H&, const H&);                                                                 \
  };                                                                                                     \
  struct __attribute__((aligned(4))) H2 {                                                                \
    H x, y;                                                                                              \
    H2() = default;                                                                                      \
    constexpr H2(const H& a, const H& b) : x(a), y(b) {}                                                 \
    constexpr H2(const RAW2& r) : x(RAW{r.x}), y(RAW{r.y}) {}                                            \
    PORTER_BODY operator RAW2() const { RAW2 r; r.x = RAW(x).x; r.y = RAW(y).x; return r; }              \
    friend H2 operator+(const H2&, const H2&); friend H2 operator-(const H2&, const H2&);                       \
    friend H2 operator*(const H2&, const H2&); friend H2 operator/(const H2&, const H2&);                       \
    friend H2& operator+=(H2&, const H2&); friend H2& operator-=(H2&, const H2&);                               \
    friend H2& operator*=(H2&, const H2&); friend H2& operator/=(H2&, const H2&); friend H2& operator++(H2&);   \
    friend H2& operator--(H2&); friend H2 operator+(const H2&); friend H2 operator-(const H2&);                 \
    friend bool operator==(const H2&, const H2&); friend bool operator!=(const H2&, const H2&);                 \
    friend bool operator<(const H2&, const H2&); friend bool operator>(const H2&, const H2&);                   \
    friend bool operator<=(const H2&, const H2&); friend bool operator>=(const H2&, const H2&);                 \
  };
PORTER_HALF_TYPES(__half, __half2, __half_raw, __half2_raw, __nv_bfloat16)
PORTER_HALF_TYPES(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, __nv_bfloat162_raw, __half)
#undef PORTER_HALF_TYPES
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// ---- arithmetic, comparison and math intrinsics that both types share by overload
#define PORTER_HALF_OPS(H, H2)                                                                           \
  H __hadd(H, H); H __hsub(H, H); H __hmul(H, H); H __hdiv(H, H); H __hfma(H, H, H); H __hneg(H); H __habs(H); \
  H __hadd_rn(H, H); H __hsub_rn(H, H); H __hmul_rn(H, H); H __hadd_sat(H, H); H __hsub_sat(H, H); H __hmul_sat(H, H); \
  H __hfma_sat(H, H, H); H __hfma_relu(H, H, H); H __hmax(H, H); H __hmin(H, H); H __hmax_nan(H, H); H __hmin_nan(H, H); \
  H2 __hadd2(H2, H2); H2 __hsub2(H2, H2); H2 __hmul2(H2, H2); H2 __h2div(H2, H2); H2 __hfma2(H2, H2, H2); H2 __hneg2(H2); \
  H2 __habs2(H2); H2 __hadd2_rn(H2, H2); H2 __hsub2_rn(H2, H2); H2 __hmul2_rn(H2, H2); H2 __hadd2_sat(H2, H2); \
  H2 __hsub2_sat(H2, H2); H2 __hmul2_sat(H2, H2); H2 __hfma2_sat(H2, H2, H2); H2 __hfma2_relu(H2, H2, H2); \
  H2 __hmax2(H2, H2); H2 __hmin2(H2, H2); H2 __hmax2_nan(H2, H2); H2 __hmin2_nan(H2, H2); H2 __hcmadd(H2, H2, H2); \
  bool __heq(H, H); bool __hne(H, H); bool __hlt(H, H); bool __hle(H, H); bool __hgt(H, H); bool __hge(H, H); \
  bool __hequ(H, H); bool __hneu(H, H); bool __hltu(H, H); bool __hleu(H, H); bool __hgtu(H, H); bool __hgeu(H, H); \
  H2 __heq2(H2, H2); H2 __hne2(H2, H2); H2 __hlt2(H2, H2); H2 __hle2(H2, H2); H2 __hgt2(H2, H2); H2 __hge2(H2, H2); \
  bool __hbeq2(H2, H2); bool __hbne2(H2, H2); bool __hblt2(H2, H2); bool __hble2(H2, H2); bool __hbgt2(H2, H2); bool __hbge2(H2, H2); \
  unsigned __heq2_mask(H2, H2); unsigned __hne2_mask(H2, H2); unsigned __hlt2_mask(H2, H2); unsigned __hgt2_mask(H2, H2); \
  bool __hisnan(H); int __hisinf(H); H2 __hisnan2(H2);                                                   \
  H hexp(H); H hexp2(H); H hexp10(H); H hlog(H); H hlog2(H); H hlog10(H); H hsqrt(H); H hrsqrt(H); H hrcp(H); H hsin(H); H hcos(H); \
  H htanh(H); H htanh_approx(H); H hfloor(H); H hceil(H); H htrunc(H); H hrint(H);                       \
  H2 h2exp(H2); H2 h2exp2(H2); H2 h2exp10(H2); H2 h2log(H2); H2 h2log2(H2); H2 h2log10(H2); H2 h2sqrt(H2); H2 h2rsqrt(H2); \
  H2 h2rcp(H2); H2 h2sin(H2); H2 h2cos(H2); H2 h2tanh(H2); H2 h2tanh_approx(H2); H2 h2floor(H2); H2 h2ceil(H2); H2 h2trunc(H2); H2 h2rint(H2);
PORTER_HALF_OPS(__half, __half2)
PORTER_HALF_OPS(__nv_bfloat16, __nv_bfloat162)
#undef PORTER_HALF_OPS

// ---- conversions of cuda_fp16.h
__half __float2half(float); __half __double2half(double); float __half2float(__half);
__half __float2half_rn(float); __half __float2half_rz(float); __half __float2half_ru(float); __half __float2half_rd(float);
__half2 __float2half2_rn(float); __half2 __floats2half2_rn(float, float); __half2 __float22half2_rn(float2);
float2 __half22float2(__half2); float __low2float(__half2); float __high2float(__half2);
__half __low2half(__half2); __half __high2half(__half2); __half2 __half2half2(__half); __half2 __halves2half2(__half, __half);
__half2 __low2half2(__half2); __half2 __high2half2(__half2); __half2 __lowhigh2highlow(__half2); __half2 __lows2half2(__half2, __half2);
__half2 __highs2half2(__half2, __half2); __half2 make_half2(__half, __half);
unsigned short __half_as_ushort(__half); short __half_as_short(__half); __half __ushort_as_half(unsigned short); __half __short_as_half(short);
#define PORTER_HALF_INT(r)                                                                               \
  int __half2int_##r(__half); unsigned __half2uint_##r(__half); short __half2short_##r(__half);          \
  unsigned short __half2ushort_##r(__half); long long __half2ll_##r(__half); unsigned long long __half2ull_##r(__half); \
  __half __int2half_##r(int); __half __uint2half_##r(unsigned); __half __short2half_##r(short); __half __ushort2half_##r(unsigned short); \
  __half __ll2half_##r(long long); __half __ull2half_##r(unsigned long long);                            \
  int __bfloat162int_##r(__nv_bfloat16); unsigned __bfloat162uint_##r(__nv_bfloat16); short __bfloat162short_##r(__nv_bfloat16); \
  __nv_bfloat16 __int2bfloat16_##r(int); __nv_bfloat16 __uint2bfloat16_##r(unsigned); __nv_bfloat16 __short2bfloat16_##r(short); \
  __nv_bfloat16 __ushort2bfloat16_##r(unsigned short); __nv_bfloat16 __ll2bfloat16_##r(long long); __nv_bfloat16 __ull2bfloat16_##r(unsigned long long);                       \
  unsigned short __bfloat162ushort_##r(__nv_bfloat16); long long __bfloat162ll_##r(__nv_bfloat16); unsigned long long __bfloat162ull_##r(__nv_bfloat16);
PORTER_HALF_INT(rn) PORTER_HALF_INT(rz) PORTER_HALF_INT(ru) PORTER_HALF_INT(rd)
#undef PORTER_HALF_INT
signed char __bfloat162char_rz(__nv_bfloat16); unsigned char __bfloat162uchar_rz(__nv_bfloat16);
signed char __half2char_rz(__half); unsigned char __half2uchar_rz(__half);
// ---- conversions of cuda_bf16.h
__nv_bfloat16 __float2bfloat16(float); __nv_bfloat16 __double2bfloat16(double); float __bfloat162float(__nv_bfloat16);
__nv_bfloat16 __float2bfloat16_rn(float); __nv_bfloat16 __float2bfloat16_rz(float); __nv_bfloat16 __float2bfloat16_ru(float);
__nv_bfloat16 __float2bfloat16_rd(float); __nv_bfloat162 __float2bfloat162_rn(float); __nv_bfloat162 __floats2bfloat162_rn(float, float);
__nv_bfloat162 __float22bfloat162_rn(float2); float2 __bfloat1622float2(__nv_bfloat162); float __low2float(__nv_bfloat162);
float __high2float(__nv_bfloat162); __nv_bfloat16 __low2bfloat16(__nv_bfloat162); __nv_bfloat16 __high2bfloat16(__nv_bfloat162);
__nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16); __nv_bfloat162 __halves2bfloat162(__nv_bfloat16, __nv_bfloat16);
__nv_bfloat162 __low2bfloat162(__nv_bfloat162); __nv_bfloat162 __high2bfloat162(__nv_bfloat162); __nv_bfloat162 __lows2bfloat162(__nv_bfloat162, __nv_bfloat162);
__nv_bfloat162 __highs2bfloat162(__nv_bfloat162, __nv_bfloat162); __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162);
__nv_bfloat162 make_bfloat162(__nv_bfloat16, __nv_bfloat16);
unsigned short __bfloat16_as_ushort(__nv_bfloat16); short __bfloat16_as_short(__nv_bfloat16);
__nv_bfloat16 __ushort_as_bfloat16(unsigned short); __nv_bfloat16 __short_as_bfloat16(short);
constexpr inline __half __porter_half_bits(unsigned short b) { return __half(__half_raw{b}); }
constexpr inline __nv_bfloat16 __porter_bf16_bits(unsigned short b) { return __nv_bfloat16(__nv_bfloat16_raw{b}); }
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7F7FU)

namespace std {
#define PORTER_HALF_LIMITS(T, bits, lo, hi, low, eps, inf, nan, dig)                                        \
  template <> struct numeric_limits<T> {                                                                    \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true, has_infinity = true, has_quiet_NaN = true; \
    static constexpr int digits = dig, radix = 2;                                                           \
    static constexpr T min() noexcept { return bits(lo); }                                                  \
    static constexpr T max() noexcept { return bits(hi); }                                                  \
    static constexpr T lowest() noexcept { return bits(low); }                                              \
    static constexpr T epsilon() noexcept { return bits(eps); }                                             \
    static constexpr T infinity() noexcept { return bits(inf); }                                            \
    static constexpr T quiet_NaN() noexcept { return bits(nan); }                                           \
  };
PORTER_HALF_LIMITS(__half, __porter_half_bits, 0x0400, 0x7BFF, 0xFBFF, 0x1400, 0x7C00, 0x7FFF, 11)
PORTER_HALF_LIMITS(__nv_bfloat16, __porter_bf16_bits, 0x0080, 0x7F7F, 0xFF7F, 0x3C00, 0x7F80, 0x7FFF, 8)
#undef PORTER_HALF_LIMITS
}  // namespace std
#pragma clang force_cuda_host_device end
