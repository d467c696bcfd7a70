// Math, fast-math, integer and conversion functions of the CUDA math API.
#pragma once
#include "porter_std.h"
#include "porter_vector.h"
#pragma clang force_cuda_host_device begin
// name for double, name##f for float, an overload for float, and one for integers that goes through double
#define PORTER_F1(name)                                                                                \
  float name##f(float); double name(double); float name(float);                                       \
  template <class T> std::enable_if_t<__is_integral(T), double> name(T);
#define PORTER_F2(name)                                                                                \
  float name##f(float, float); double name(double, double); float name(float, float);                 \
  template <class T, class U> std::enable_if_t<__is_arithmetic(T) && __is_arithmetic(U) && !(__is_same(T, float) && __is_same(U, float)) && !(__is_same(T, double) && __is_same(U, double)), double> name(T, U);
#define PORTER_F3(name) float name##f(float, float, float); double name(double, double, double); float name(float, float, float);
#define PORTER_EACH_F1(X)                                                                              \
  X(sqrt) X(rsqrt) X(cbrt) X(rcbrt) X(exp) X(exp2) X(exp10) X(expm1) X(log) X(log2) X(log10) X(log1p)  \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh)      \
  X(erf) X(erfc) X(erfinv) X(erfcinv) X(erfcx) X(normcdf) X(normcdfinv) X(tgamma) X(lgamma) X(fabs)    \
  X(floor) X(ceil) X(trunc) X(round) X(rint) X(nearbyint) X(logb) X(sinpi) X(cospi) X(j0) X(j1) X(y0) X(y1)
PORTER_EACH_F1(PORTER_F1)
PORTER_F2(pow) PORTER_F2(fmod) PORTER_F2(remainder) PORTER_F2(fmax) PORTER_F2(fmin) PORTER_F2(fdim) PORTER_F2(hypot)
PORTER_F2(atan2) PORTER_F2(copysign) PORTER_F2(nextafter) PORTER_F2(rhypot)
PORTER_F3(fma)
float fdividef(float, float);
float ldexpf(float, int); double ldexp(double, int); float ldexp(float, int);
float scalbnf(float, int); double scalbn(double, int); float scalbn(float, int);
float frexpf(float, int*); double frexp(double, int*); float frexp(float, int*);
float modff(float, float*); double modf(double, double*); float modf(float, float*);
void sincosf(float, float*, float*); void sincos(double, double*, double*); void sincos(float, float*, float*);
void sincospif(float, float*, float*); void sincospi(double, double*, double*);
int ilogbf(float); int ilogb(double);
long lroundf(float); long lround(double); long lround(float); long lrintf(float); long lrint(double); long lrint(float);
long long llroundf(float); long long llround(double); long long llrintf(float); long long llrint(double);
float norm3df(float, float, float); float rnorm3df(float, float, float); float norm4df(float, float, float, float);
bool isnan(float); bool isnan(double); bool isinf(float); bool isinf(double); bool isfinite(float); bool isfinite(double);
bool signbit(float); bool signbit(double);
template <class T> std::enable_if_t<__is_integral(T), bool> isnan(T);
template <class T> std::enable_if_t<__is_integral(T), bool> isinf(T);
constexpr int abs(int v) { return v < 0 ? -v : v; }
constexpr long abs(long v) { return v < 0 ? -v : v; }
constexpr long long abs(long long v) { return v < 0 ? -v : v; }
float abs(float); double abs(double);
long labs(long); long long llabs(long long);
#define PORTER_MINMAX(R, A, B)                                            \
  constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }         \
  constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
PORTER_MINMAX(int, int, int) PORTER_MINMAX(unsigned, unsigned, unsigned) PORTER_MINMAX(unsigned, int, unsigned)
PORTER_MINMAX(unsigned, unsigned, int) PORTER_MINMAX(long, long, long) PORTER_MINMAX(unsigned long, unsigned long, unsigned long)
PORTER_MINMAX(unsigned long, long, unsigned long) PORTER_MINMAX(unsigned long, unsigned long, long)
PORTER_MINMAX(long long, long long, long long) PORTER_MINMAX(unsigned long long, unsigned long long, unsigned long long)
PORTER_MINMAX(unsigned long long, long long, unsigned long long) PORTER_MINMAX(unsigned long long, unsigned long long, long long)
PORTER_MINMAX(float, float, float) PORTER_MINMAX(double, double, double) PORTER_MINMAX(double, float, double)
PORTER_MINMAX(double, double, float)
#undef PORTER_MINMAX
int umin(int, int); unsigned int umin(unsigned int, unsigned int); unsigned int umax(unsigned int, unsigned int);
// ---- fast math
float __expf(float); float __exp10f(float); float __logf(float); float __log2f(float); float __log10f(float);
float __sinf(float); float __cosf(float); float __tanf(float); float __tanhf(float); float __powf(float, float);
float __fdividef(float, float); void __sincosf(float, float*, float*); float __saturatef(float);
#define PORTER_ROUNDED(r)                                                                                          \
  float __fadd_##r(float, float); float __fsub_##r(float, float); float __fmul_##r(float, float);                  \
  float __fdiv_##r(float, float); float __fmaf_##r(float, float, float); float __frcp_##r(float);                  \
  float __fsqrt_##r(float); double __dadd_##r(double, double); double __dsub_##r(double, double);                  \
  double __dmul_##r(double, double); double __ddiv_##r(double, double); double __fma_##r(double, double, double);  \
  double __drcp_##r(double); double __dsqrt_##r(double);                                                           \
  int __float2int_##r(float); unsigned __float2uint_##r(float); long long __float2ll_##r(float);                   \
  unsigned long long __float2ull_##r(float); int __double2int_##r(double); unsigned __double2uint_##r(double);     \
  long long __double2ll_##r(double); unsigned long long __double2ull_##r(double); float __double2float_##r(double);\
  float __int2float_##r(int); float __uint2float_##r(unsigned); float __ll2float_##r(long long);                   \
  float __ull2float_##r(unsigned long long); double __ll2double_##r(long long); double __ull2double_##r(unsigned long long);
PORTER_ROUNDED(rn) PORTER_ROUNDED(rz) PORTER_ROUNDED(ru) PORTER_ROUNDED(rd)
#undef PORTER_ROUNDED
float __frsqrt_rn(float); double __int2double_rn(int); double __uint2double_rn(unsigned);
int __float_as_int(float); unsigned __float_as_uint(float); float __int_as_float(int); float __uint_as_float(unsigned);
long long __double_as_longlong(double); double __longlong_as_double(long long);
int __double2hiint(double); int __double2loint(double); double __hiloint2double(int, int);
// ---- integers
int __popc(unsigned); int __popcll(unsigned long long); int __clz(int); int __clzll(long long); int __ffs(int); int __ffsll(long long);
unsigned __brev(unsigned); unsigned long long __brevll(unsigned long long); unsigned __byte_perm(unsigned, unsigned, unsigned);
int __mul24(int, int); unsigned __umul24(unsigned, unsigned); int __mulhi(int, int); unsigned __umulhi(unsigned, unsigned);
long long __mul64hi(long long, long long); unsigned long long __umul64hi(unsigned long long, unsigned long long);
unsigned __sad(int, int, unsigned); unsigned __usad(unsigned, unsigned, unsigned); int __hadd(int, int); int __rhadd(int, int);
unsigned __uhadd(unsigned, unsigned); unsigned __urhadd(unsigned, unsigned);
unsigned __funnelshift_l(unsigned, unsigned, unsigned); unsigned __funnelshift_r(unsigned, unsigned, unsigned);
unsigned __funnelshift_lc(unsigned, unsigned, unsigned); unsigned __funnelshift_rc(unsigned, unsigned, unsigned);
unsigned __fns(unsigned, unsigned, int);
int __dp4a(int, int, int); unsigned __dp4a(unsigned, unsigned, unsigned); int __dp4a(char4, char4, int); int __dp2a_lo(int, int, int); int __dp2a_hi(int, int, int);
#define PORTER_SIMD2(name) unsigned name##2(unsigned, unsigned); unsigned name##4(unsigned, unsigned);
PORTER_SIMD2(__vadd) PORTER_SIMD2(__vsub) PORTER_SIMD2(__vaddss) PORTER_SIMD2(__vsubss) PORTER_SIMD2(__vaddus) PORTER_SIMD2(__vsubus)
PORTER_SIMD2(__vmaxs) PORTER_SIMD2(__vmins) PORTER_SIMD2(__vmaxu) PORTER_SIMD2(__vminu) PORTER_SIMD2(__vcmpeq) PORTER_SIMD2(__vcmpne)
PORTER_SIMD2(__vcmpgts) PORTER_SIMD2(__vcmpges) PORTER_SIMD2(__vcmpgtu) PORTER_SIMD2(__vcmpltu) PORTER_SIMD2(__vcmplts)
PORTER_SIMD2(__vsetne) PORTER_SIMD2(__vsetgts) PORTER_SIMD2(__vsetges) PORTER_SIMD2(__vsetgeu) PORTER_SIMD2(__vsetlts) PORTER_SIMD2(__vsetltu) PORTER_SIMD2(__vsetles) PORTER_SIMD2(__vsetleu)
PORTER_SIMD2(__vcmpgeu) PORTER_SIMD2(__vcmples) PORTER_SIMD2(__vcmpleu) PORTER_SIMD2(__vabsdiffs) PORTER_SIMD2(__vsads) PORTER_SIMD2(__vsadu) PORTER_SIMD2(__vavgs) PORTER_SIMD2(__vhaddu)
PORTER_SIMD2(__vabsdiffu) PORTER_SIMD2(__vavgu) PORTER_SIMD2(__vsetgtu) PORTER_SIMD2(__vseteq)
unsigned __vabs2(unsigned); unsigned __vabs4(unsigned); unsigned __vneg2(unsigned); unsigned __vneg4(unsigned);
int __vimax3_s32(int, int, int); int __vimin3_s32(int, int, int); unsigned __vimax3_u32(unsigned, unsigned, unsigned);
int __viaddmax_s32(int, int, int); int __viaddmin_s32(int, int, int); int __vimax_s32_relu(int, int);
namespace std {
#define PORTER_USING(name) using ::name; using ::name##f;
PORTER_EACH_F1(PORTER_USING)
PORTER_USING(pow) PORTER_USING(fmod) PORTER_USING(remainder) PORTER_USING(fmax) PORTER_USING(fmin) PORTER_USING(fdim)
PORTER_USING(hypot) PORTER_USING(atan2) PORTER_USING(copysign) PORTER_USING(nextafter) PORTER_USING(fma) PORTER_USING(ldexp)
PORTER_USING(scalbn) PORTER_USING(frexp) PORTER_USING(modf) PORTER_USING(ilogb) PORTER_USING(lround) PORTER_USING(lrint)
PORTER_USING(llround) PORTER_USING(llrint)
using ::isnan; using ::isinf; using ::isfinite; using ::signbit; using ::abs; using ::labs; using ::llabs;
#undef PORTER_USING
}  // namespace std
#undef PORTER_F1
#undef PORTER_F2
#undef PORTER_F3
#pragma clang force_cuda_host_device end
