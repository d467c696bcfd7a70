// PyTorch's scalar types for device code, over CUDA's own: same layout, same conversions and the same rounding.
// Arithmetic on two of them is done in float and rounded once, as in PyTorch.
#pragma once
#include "porter_oracle.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#define PORTER_HD __host__ __device__ __forceinline__
namespace c10 {
struct alignas(2) Half {
  unsigned short x;
  struct from_bits_t {};
  PORTER_HD static constexpr from_bits_t from_bits() { return from_bits_t(); }
  Half() = default;
  PORTER_HD constexpr Half(unsigned short bits, from_bits_t) : x(bits) {}
  PORTER_HD Half(float v) : x(__half_as_ushort(__float2half(v))) {}
  PORTER_HD Half(const __half& v) : x(__half_as_ushort(v)) {}
  PORTER_HD operator float() const { return __half2float(__ushort_as_half(x)); }
  PORTER_HD operator __half() const { return __ushort_as_half(x); }
};
struct alignas(2) BFloat16 {
  unsigned short x;
  struct from_bits_t {};
  PORTER_HD static constexpr from_bits_t from_bits() { return from_bits_t(); }
  BFloat16() = default;
  PORTER_HD constexpr BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
  PORTER_HD BFloat16(float v) : x(__bfloat16_as_ushort(__float2bfloat16(v))) {}
  PORTER_HD BFloat16(const __nv_bfloat16& v) : x(__bfloat16_as_ushort(v)) {}
  PORTER_HD operator float() const { return __bfloat162float(__ushort_as_bfloat16(x)); }
  PORTER_HD operator __nv_bfloat16() const { return __ushort_as_bfloat16(x); }
};
// The conversions from float do not saturate: beyond the largest value e4m3fn gives NaN and e5m2 infinity.
PORTER_HD unsigned char __porter_to_e4m3fn(float v) {
  const unsigned sign = (__float_as_uint(v) >> 24) & 0x80u;
  const float a = fabsf(v);
  if (!(a <= 464.0f)) return static_cast<unsigned char>(sign | 0x7fu);  // 464 is the tie that rounds to 448
  return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
}
PORTER_HD unsigned char __porter_to_e5m2(float v) {
  const unsigned sign = (__float_as_uint(v) >> 24) & 0x80u;
  const float a = fabsf(v);
  if (a != a) return static_cast<unsigned char>(sign | 0x7fu);
  if (a >= 61440.0f) return static_cast<unsigned char>(sign | 0x7cu);  // the tie rounds up
  return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2);
}
#define PORTER_FP8(NAME, KIND, FROM)                                                                      \
  struct alignas(1) NAME {                                                                                 \
    unsigned char x;                                                                                       \
    struct from_bits_t {};                                                                                 \
    PORTER_HD static constexpr from_bits_t from_bits() { return from_bits_t(); }                           \
    NAME() = default;                                                                                      \
    PORTER_HD constexpr NAME(unsigned char bits, from_bits_t) : x(bits) {}                                 \
    PORTER_HD NAME(float v) : x(FROM(v)) {}                                                                \
    PORTER_HD operator float() const { return __half2float(__half(__nv_cvt_fp8_to_halfraw(x, KIND))); }    \
  };
PORTER_FP8(Float8_e4m3fn, __NV_E4M3, __porter_to_e4m3fn)
PORTER_FP8(Float8_e5m2, __NV_E5M2, __porter_to_e5m2)
// Types that device code for NVIDIA GPUs names but does not compute with.
#define PORTER_CODE(NAME)                                                                                 \
  struct alignas(1) NAME {                                                                                 \
    unsigned char x;                                                                                       \
    struct from_bits_t {};                                                                                 \
    PORTER_HD static constexpr from_bits_t from_bits() { return from_bits_t(); }                           \
    NAME() = default;                                                                                      \
    PORTER_HD constexpr NAME(unsigned char bits, from_bits_t) : x(bits) {}                                 \
  };
PORTER_CODE(Float8_e4m3fnuz)
PORTER_CODE(Float8_e5m2fnuz)
PORTER_CODE(Float8_e8m0fnu)
#undef PORTER_CODE
#define PORTER_ORDER(T, OP)                                                                               \
  PORTER_HD bool operator OP(const T& a, const T& b) { return static_cast<float>(a) OP static_cast<float>(b); } \
  PORTER_HD bool operator OP(const T& a, float b) { return static_cast<float>(a) OP b; }                   \
  PORTER_HD bool operator OP(float a, const T& b) { return a OP static_cast<float>(b); }                   \
  PORTER_HD bool operator OP(const T& a, double b) { return static_cast<float>(a) OP b; }                  \
  PORTER_HD bool operator OP(double a, const T& b) { return a OP static_cast<float>(b); }                  \
  PORTER_HD bool operator OP(const T& a, int b) { return static_cast<float>(a) OP b; }                     \
  PORTER_HD bool operator OP(int a, const T& b) { return a OP static_cast<float>(b); }
#define PORTER_COMPARISONS(T)                                                                             \
  PORTER_ORDER(T, <) PORTER_ORDER(T, >) PORTER_ORDER(T, <=) PORTER_ORDER(T, >=) PORTER_ORDER(T, ==) PORTER_ORDER(T, !=)
#define PORTER_ARITHMETIC(T)                                                                              \
  PORTER_HD T operator+(const T& a, const T& b) { return static_cast<float>(a) + static_cast<float>(b); }  \
  PORTER_HD T operator-(const T& a, const T& b) { return static_cast<float>(a) - static_cast<float>(b); }  \
  PORTER_HD T operator*(const T& a, const T& b) { return static_cast<float>(a) * static_cast<float>(b); }  \
  PORTER_HD T operator/(const T& a, const T& b) { return static_cast<float>(a) / static_cast<float>(b); }  \
  PORTER_HD T operator-(const T& a) { return -static_cast<float>(a); }                                     \
  PORTER_HD T& operator+=(T& a, const T& b) { return a = a + b; }                                          \
  PORTER_HD T& operator-=(T& a, const T& b) { return a = a - b; }                                          \
  PORTER_HD T& operator*=(T& a, const T& b) { return a = a * b; }                                          \
  PORTER_HD T& operator/=(T& a, const T& b) { return a = a / b; }                                          \
  PORTER_MIXED(T, float, float) PORTER_MIXED(T, double, double) PORTER_INTEGER(T, int) PORTER_INTEGER(T, long) \
  PORTER_HD float& operator+=(float& a, const T& b) { return a += static_cast<float>(b); }                 \
  PORTER_HD float& operator-=(float& a, const T& b) { return a -= static_cast<float>(b); }                 \
  PORTER_HD float& operator*=(float& a, const T& b) { return a *= static_cast<float>(b); }                 \
  PORTER_HD float& operator/=(float& a, const T& b) { return a /= static_cast<float>(b); }
#define PORTER_MIXED(T, U, R)                                                                             \
  PORTER_HD R operator+(T a, U b) { return static_cast<R>(static_cast<float>(a)) + b; }                    \
  PORTER_HD R operator-(T a, U b) { return static_cast<R>(static_cast<float>(a)) - b; }                    \
  PORTER_HD R operator*(T a, U b) { return static_cast<R>(static_cast<float>(a)) * b; }                    \
  PORTER_HD R operator/(T a, U b) { return static_cast<R>(static_cast<float>(a)) / b; }                    \
  PORTER_HD R operator+(U a, T b) { return a + static_cast<R>(static_cast<float>(b)); }                    \
  PORTER_HD R operator-(U a, T b) { return a - static_cast<R>(static_cast<float>(b)); }                    \
  PORTER_HD R operator*(U a, T b) { return a * static_cast<R>(static_cast<float>(b)); }                    \
  PORTER_HD R operator/(U a, T b) { return a / static_cast<R>(static_cast<float>(b)); }
#define PORTER_INTEGER(T, U)                                                                              \
  PORTER_HD T operator+(T a, U b) { return a + T(static_cast<float>(b)); }                                 \
  PORTER_HD T operator-(T a, U b) { return a - T(static_cast<float>(b)); }                                 \
  PORTER_HD T operator*(T a, U b) { return a * T(static_cast<float>(b)); }                                 \
  PORTER_HD T operator/(T a, U b) { return a / T(static_cast<float>(b)); }                                 \
  PORTER_HD T operator+(U a, T b) { return T(static_cast<float>(a)) + b; }                                 \
  PORTER_HD T operator-(U a, T b) { return T(static_cast<float>(a)) - b; }                                 \
  PORTER_HD T operator*(U a, T b) { return T(static_cast<float>(a)) * b; }                                 \
  PORTER_HD T operator/(U a, T b) { return T(static_cast<float>(a)) / b; }
PORTER_ARITHMETIC(Half)
PORTER_COMPARISONS(Half) PORTER_COMPARISONS(BFloat16)
PORTER_ARITHMETIC(BFloat16)
PORTER_ARITHMETIC(Float8_e4m3fn)
PORTER_ARITHMETIC(Float8_e5m2)
#undef PORTER_ARITHMETIC
#undef PORTER_MIXED
#undef PORTER_INTEGER
#undef PORTER_FP8
}  // namespace c10
namespace at {
using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Float8_e8m0fnu;
using c10::Half;
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <> struct OpMathType<Float8_e4m3fn> { using type = float; };
template <> struct OpMathType<Float8_e5m2> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool OnGpu> using acc_type = typename OpMathType<T>::type;
}  // namespace at
namespace torch {
namespace headeronly {
using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Float8_e8m0fnu;
using c10::Half;
}  // namespace headeronly
}  // namespace torch
#if defined(PORTER_ORACLE_STD) || defined(PORTER_ORACLE_CUDASTD)
#if defined(PORTER_ORACLE_CUDASTD)
namespace cuda {
#endif
namespace std {
#define PORTER_LIMITS(T, LOWEST, MIN, MAX, EPSILON, INFINITE, QNAN, HAS_INFINITY)                         \
  template <> class numeric_limits<T> {                                                                    \
   public:                                                                                                 \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;   \
    static constexpr bool has_infinity = HAS_INFINITY, has_quiet_NaN = true;                               \
    PORTER_HD static constexpr T lowest() { return T(LOWEST, T::from_bits()); }                            \
    PORTER_HD static constexpr T min() { return T(MIN, T::from_bits()); }                                  \
    PORTER_HD static constexpr T max() { return T(MAX, T::from_bits()); }                                  \
    PORTER_HD static constexpr T epsilon() { return T(EPSILON, T::from_bits()); }                          \
    PORTER_HD static constexpr T infinity() { return T(INFINITE, T::from_bits()); }                        \
    PORTER_HD static constexpr T quiet_NaN() { return T(QNAN, T::from_bits()); }                           \
  };
PORTER_LIMITS(c10::Half, 0xfbff, 0x0400, 0x7bff, 0x1400, 0x7c00, 0x7e00, true)
PORTER_LIMITS(c10::BFloat16, 0xff7f, 0x0080, 0x7f7f, 0x3c00, 0x7f80, 0x7fc0, true)
PORTER_LIMITS(c10::Float8_e4m3fn, 0xfe, 0x08, 0x7e, 0x20, 0x7f, 0x7f, false)
PORTER_LIMITS(c10::Float8_e5m2, 0xfb, 0x04, 0x7b, 0x34, 0x7c, 0x7f, true)
#undef PORTER_LIMITS
}  // namespace std
#if defined(PORTER_ORACLE_CUDASTD)
}  // namespace cuda
#endif
#endif
PORTER_HD c10::Half __ldg(const c10::Half* p) { return c10::Half(__ldg(reinterpret_cast<const __half*>(p))); }
PORTER_HD c10::BFloat16 __ldg(const c10::BFloat16* p) {
  return c10::BFloat16(__ldg(reinterpret_cast<const __nv_bfloat16*>(p)));
}
#undef PORTER_HD
#ifndef C10_HOST_DEVICE
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(max_threads) __launch_bounds__(max_threads)
#define C10_LAUNCH_BOUNDS_2(max_threads, min_blocks) __launch_bounds__(max_threads, min_blocks)
#define C10_WARP_SIZE 32
#define C10_ALWAYS_INLINE __forceinline__
#define C10_UNUSED
#define CUDA_KERNEL_ASSERT(condition)
#define GPU_LAMBDA __host__ __device__
#endif
#ifndef WARP_SHFL
#define WARP_ACTIVEMASK() __activemask()
#define WARP_BALLOT(predicate) __ballot_sync(0xffffffffu, predicate)
#define WARP_SYNC() __syncwarp()
template <class T> __device__ __forceinline__ T WARP_SHFL(T v, int lane, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_sync(mask, v, lane, width);
}
template <class T> __device__ __forceinline__ T WARP_SHFL_XOR(T v, int lanes, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_xor_sync(mask, v, lanes, width);
}
template <class T> __device__ __forceinline__ T WARP_SHFL_UP(T v, unsigned by, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_up_sync(mask, v, by, width);
}
template <class T> __device__ __forceinline__ T WARP_SHFL_DOWN(T v, unsigned by, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_down_sync(mask, v, by, width);
}
#endif
