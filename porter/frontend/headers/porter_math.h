// Math, fast-math, integer and conversion functions of the CUDA math API.
#pragma once
#include "porter_attributes.h"
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
#define PORTER_LONG_TO_INT(n) ((n) > 2147483647L ? 2147483647 : (n) < -2147483647L ? -2147483647 : (int)(n))
PORTER_BODY inline float scalblnf(float x, long n) { return scalbnf(x, PORTER_LONG_TO_INT(n)); }
PORTER_BODY inline float scalbln(float x, long n) { return scalbnf(x, PORTER_LONG_TO_INT(n)); }
PORTER_BODY inline double scalbln(double x, long n) { return scalbn(x, PORTER_LONG_TO_INT(n)); }
#undef PORTER_LONG_TO_INT
// The results of functions that store one: `name.first` and `name.second` are rows of porter's table.
#define PORTER_STORES(R, name, T, A, a)                                                                              \
  R __porter_##name##_first A; T __porter_##name##_second A;
PORTER_STORES(float, frexpf, int, (float), x) PORTER_STORES(double, frexp, int, (double), x)
PORTER_STORES(float, modff, float, (float), x) PORTER_STORES(double, modf, double, (double), x)
PORTER_STORES(float, sincospif, float, (float), x) PORTER_STORES(double, sincospi, double, (double), x)
PORTER_STORES(float, remquof, int, (float, float), x) PORTER_STORES(double, remquo, int, (double, double), x)
#undef PORTER_STORES
#define PORTER_STORE1(R, name, call, T)                                                                              \
  PORTER_BODY inline R name(R x, T* p) { const R v = x; *p = __porter_##call##_second(v); return __porter_##call##_first(v); }
PORTER_STORE1(float, frexpf, frexpf, int) PORTER_STORE1(double, frexp, frexp, int) PORTER_STORE1(float, frexp, frexpf, int)
PORTER_STORE1(float, modff, modff, float) PORTER_STORE1(double, modf, modf, double) PORTER_STORE1(float, modf, modff, float)
#undef PORTER_STORE1
#define PORTER_STORE2(R, name, call)                                                                                 \
  PORTER_BODY inline R name(R x, R y, int* p) { const R v = x, w = y; *p = __porter_##call##_second(v, w); return __porter_##call##_first(v, w); }
PORTER_STORE2(float, remquof, remquof) PORTER_STORE2(double, remquo, remquo) PORTER_STORE2(float, remquo, remquof)
#undef PORTER_STORE2
void sincosf(float, float*, float*); void sincos(double, double*, double*); void sincos(float, float*, float*);
PORTER_BODY inline void sincospif(float x, float* s, float* c) { const float v = x; *s = __porter_sincospif_first(v); *c = __porter_sincospif_second(v); }
PORTER_BODY inline void sincospi(double x, double* s, double* c) { const double v = x; *s = __porter_sincospi_first(v); *c = __porter_sincospi_second(v); }
int ilogbf(float); int ilogb(double);
long lroundf(float); long lround(double); long lround(float); long lrintf(float); long lrint(double); long lrint(float);
long long llroundf(float); long long llround(double); long long llrintf(float); long long llrint(double);
float norm3df(float, float, float); float rnorm3df(float, float, float); float norm4df(float, float, float, float);
float rnorm4df(float, float, float, float); double norm3d(double, double, double); double rnorm3d(double, double, double);
double norm4d(double, double, double, double); double rnorm4d(double, double, double, double);
float cyl_bessel_i0f(float); float cyl_bessel_i1f(float); double cyl_bessel_i0(double); double cyl_bessel_i1(double);
float jnf(int, float); double jn(int, double); float ynf(int, float); double yn(int, double);
long long llmin(long long, long long); long long llmax(long long, long long);
unsigned long long ullmin(unsigned long long, unsigned long long); unsigned long long ullmax(unsigned long long, unsigned long long);
double fdivide(double, double); bool isnan(float); bool isnan(double); bool isinf(float); bool isinf(double); bool isfinite(float); bool isfinite(double);
bool signbit(float); bool signbit(double);
PORTER_BODY inline int __isnanf(float x) { return isnan(x); } PORTER_BODY inline int __isnand(double x) { return isnan(x); }
PORTER_BODY inline int __isinff(float x) { return isinf(x); } PORTER_BODY inline int __isinfd(double x) { return isinf(x); }
PORTER_BODY inline int __isnan(double x) { return isnan(x); } PORTER_BODY inline int __isinf(double x) { return isinf(x); }
PORTER_BODY inline int __finitef(float x) { return isfinite(x); } PORTER_BODY inline int __finite(double x) { return isfinite(x); }
PORTER_BODY inline int __isfinitef(float x) { return isfinite(x); } PORTER_BODY inline int __isfinited(double x) { return isfinite(x); }
PORTER_BODY inline int __signbitf(float x) { return signbit(x); } PORTER_BODY inline int __signbitd(double x) { return signbit(x); }
PORTER_BODY inline int __signbit(double x) { return signbit(x); }
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
