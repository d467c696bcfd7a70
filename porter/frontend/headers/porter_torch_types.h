// PyTorch's scalar types (c10, at, torch, torch::headeronly) and the macros that dispatch over them.
#pragma once
#include "porter_half.h"
#include "porter_fp8.h"
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__((a))
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__((a), (b))
#define C10_LAUNCH_BOUNDS C10_LAUNCH_BOUNDS_2
#define C10_WARP_SIZE 32
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_UNUSED
#define C10_API
#define C10_EXPORT
#define C10_CUDA_API
#define TORCH_API
#define C10_LIKELY(e) (e)
#define C10_UNLIKELY(e) (e)
#define C10_RESTRICT __restrict
#define TORCH_HIP_VERSION 0
#define GPU_LAMBDA __host__ __device__
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 9
#pragma clang force_cuda_host_device begin
namespace c10 {
#define PORTER_C10_OPS(T)                                                                                            \
  T operator+(const T&, const T&); T operator-(const T&, const T&); T operator*(const T&, const T&); T operator/(const T&, const T&); T operator-(const T&); \
  T& operator+=(T&, const T&); T& operator-=(T&, const T&); T& operator*=(T&, const T&); T& operator/=(T&, const T&); \
  PORTER_C10_MIX(T, float, float) PORTER_C10_MIX(T, double, double) PORTER_C10_MIX(T, int, T) PORTER_C10_MIX(T, int64_t, T)  \
  float& operator+=(float&, const T&); float& operator-=(float&, const T&); float& operator*=(float&, const T&); float& operator/=(float&, const T&);
#define PORTER_C10_MIX(T, U, R) R operator+(T, U); R operator-(T, U); R operator*(T, U); R operator/(T, U); R operator+(U, T); R operator-(U, T); R operator*(U, T); R operator/(U, T);
struct alignas(2) Half { unsigned short x; struct from_bits_t {}; static constexpr from_bits_t from_bits() { return {}; } Half() = default; constexpr Half(unsigned short b, from_bits_t) : x(b) {} Half(float); operator float() const; Half(const __half&); operator __half() const; };
struct alignas(2) BFloat16 { unsigned short x; struct from_bits_t {}; static constexpr from_bits_t from_bits() { return {}; } BFloat16() = default; constexpr BFloat16(unsigned short b, from_bits_t) : x(b) {} BFloat16(float); operator float() const; BFloat16(const __nv_bfloat16&); explicit operator __nv_bfloat16() const; };
#define PORTER_C10_FP8(T) struct alignas(1) T { uint8_t x; struct from_bits_t {}; static constexpr from_bits_t from_bits() { return {}; } T() = default; constexpr T(uint8_t b, from_bits_t) : x(b) {} T(float); operator float() const; bool isnan() const; };
PORTER_C10_FP8(Float8_e4m3fn) PORTER_C10_FP8(Float8_e5m2) PORTER_C10_FP8(Float8_e4m3fnuz) PORTER_C10_FP8(Float8_e5m2fnuz) PORTER_C10_FP8(Float8_e8m0fnu)
struct alignas(1) Float4_e2m1fn_x2 { uint8_t val_; Float4_e2m1fn_x2() = default; explicit Float4_e2m1fn_x2(uint8_t v) : val_(v) {} };
PORTER_C10_OPS(Half) PORTER_C10_OPS(BFloat16) PORTER_C10_OPS(Float8_e4m3fn) PORTER_C10_OPS(Float8_e5m2) PORTER_C10_OPS(Float8_e4m3fnuz)
Half __ldg(const Half*); BFloat16 __ldg(const BFloat16*);
#undef PORTER_C10_OPS
#undef PORTER_C10_MIX
#undef PORTER_C10_FP8
template <class T> struct alignas(sizeof(T) * 2) complex { T real_, imag_; constexpr complex(T r = T(), T i = T()) : real_(r), imag_(i) {} constexpr T real() const { return real_; } constexpr T imag() const { return imag_; } };
struct qint8 { int8_t val_; }; struct quint8 { uint8_t val_; }; struct qint32 { int32_t val_; };
enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8, QInt32, BFloat16, QUInt4x2, QUInt2x4, Bits1x8, Bits2x4, Bits4x2, Bits8, Bits16, Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, UInt16, UInt32, UInt64, Float8_e8m0fnu = 44, Float4_e2m1fn_x2 = 45, Undefined = 46 };
#define PORTER_K(name) constexpr ScalarType k##name = ScalarType::name;
PORTER_K(Byte) PORTER_K(Char) PORTER_K(Short) PORTER_K(Int) PORTER_K(Long) PORTER_K(Half) PORTER_K(Float) PORTER_K(Double) PORTER_K(Bool) PORTER_K(BFloat16) PORTER_K(Float8_e5m2) PORTER_K(Float8_e4m3fn) PORTER_K(Float8_e4m3fnuz) PORTER_K(Float8_e5m2fnuz) PORTER_K(Float8_e8m0fnu) PORTER_K(UInt16) PORTER_K(UInt32) PORTER_K(UInt64) PORTER_K(ComplexFloat) PORTER_K(ComplexDouble)
#undef PORTER_K
constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char, kInt16 = ScalarType::Short, kInt32 = ScalarType::Int, kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half, kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double;
template <ScalarType> struct CppTypeOf; template <class T> struct CppTypeToScalarType;
#define PORTER_MAP_TYPE(name, T) template <> struct CppTypeOf<ScalarType::name> { using type = T; }; template <> struct CppTypeToScalarType<T> { static constexpr ScalarType value = ScalarType::name; constexpr operator ScalarType() const { return value; } };
PORTER_MAP_TYPE(Byte, uint8_t) PORTER_MAP_TYPE(Char, int8_t) PORTER_MAP_TYPE(Short, int16_t) PORTER_MAP_TYPE(Int, int) PORTER_MAP_TYPE(Long, int64_t) PORTER_MAP_TYPE(Half, Half) PORTER_MAP_TYPE(Float, float) PORTER_MAP_TYPE(Double, double) PORTER_MAP_TYPE(Bool, bool) PORTER_MAP_TYPE(BFloat16, BFloat16)
PORTER_MAP_TYPE(Float8_e5m2, Float8_e5m2) PORTER_MAP_TYPE(Float8_e4m3fn, Float8_e4m3fn) PORTER_MAP_TYPE(Float8_e4m3fnuz, Float8_e4m3fnuz) PORTER_MAP_TYPE(Float8_e5m2fnuz, Float8_e5m2fnuz) PORTER_MAP_TYPE(Float8_e8m0fnu, Float8_e8m0fnu) PORTER_MAP_TYPE(UInt16, uint16_t) PORTER_MAP_TYPE(UInt32, uint32_t) PORTER_MAP_TYPE(UInt64, uint64_t) PORTER_MAP_TYPE(ComplexFloat, complex<float>) PORTER_MAP_TYPE(ComplexDouble, complex<double>)
#undef PORTER_MAP_TYPE
namespace impl { template <ScalarType S> using ScalarTypeToCPPTypeT = typename CppTypeOf<S>::type; template <ScalarType S> struct ScalarTypeToCPPType { using type = typename CppTypeOf<S>::type; }; }
const char* toString(ScalarType); size_t elementSize(ScalarType); bool isFloatingType(ScalarType); bool isReducedFloatingType(ScalarType); bool isIntegralType(ScalarType, bool);
template <class To, class From> To convert(From); template <class T, size_t N> using Array = ::std::array<T, N>;
}  // namespace c10
namespace std {
#define PORTER_C10_LIMITS(T, lo, hi, low, eps, inf, nan) template <> struct numeric_limits<c10::T> { static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true, has_quiet_NaN = true; \
  static constexpr c10::T __of(unsigned b) { return c10::T(b, c10::T::from_bits()); } static constexpr c10::T min() { return __of(lo); } static constexpr c10::T max() { return __of(hi); } static constexpr c10::T lowest() { return __of(low); } \
  static constexpr c10::T epsilon() { return __of(eps); } static constexpr c10::T infinity() { return __of(inf); } static constexpr c10::T quiet_NaN() { return __of(nan); } };
PORTER_C10_LIMITS(Half, 0x0400, 0x7BFF, 0xFBFF, 0x1400, 0x7C00, 0x7E00) PORTER_C10_LIMITS(BFloat16, 0x0080, 0x7F7F, 0xFF7F, 0x3C00, 0x7F80, 0x7FC0)
PORTER_C10_LIMITS(Float8_e4m3fn, 0x08, 0x7E, 0xFE, 0x20, 0x7F, 0x7F) PORTER_C10_LIMITS(Float8_e5m2, 0x04, 0x7B, 0xFB, 0x34, 0x7C, 0x7F) PORTER_C10_LIMITS(Float8_e4m3fnuz, 0x08, 0x7F, 0xFF, 0x28, 0x80, 0x80)
#undef PORTER_C10_LIMITS
}  // namespace std
namespace at {
using c10::Half; using c10::BFloat16; using c10::Float8_e4m3fn; using c10::Float8_e5m2; using c10::ScalarType; using namespace c10;
namespace detail {}
template <class T> struct OpMathType { using type = T; }; template <> struct OpMathType<Half> { using type = float; }; template <> struct OpMathType<BFloat16> { using type = float; }; template <> struct OpMathType<Float8_e4m3fn> { using type = float; }; template <> struct OpMathType<Float8_e5m2> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool Cuda> struct AccumulateType { using type = typename OpMathType<T>::type; }; template <bool C> struct AccumulateType<int, C> { using type = int64_t; }; template <bool C> struct AccumulateType<int8_t, C> { using type = int64_t; }; template <bool C> struct AccumulateType<uint8_t, C> { using type = int64_t; }; template <bool C> struct AccumulateType<int16_t, C> { using type = int64_t; };
template <class T, bool Cuda> using acc_type = typename AccumulateType<T, Cuda>::type;
using ::std::optional; using ::std::nullopt;
}  // namespace at
namespace c10 { using ::std::optional; using ::std::nullopt; }
namespace torch { using namespace at; namespace headeronly { using namespace c10; using c10::Half; using c10::BFloat16; using c10::ScalarType; } }
#pragma clang force_cuda_host_device end

#define PORTER_SCALAR(enum_) typename c10::CppTypeOf<enum_>::type
#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, HINT, ...) case enum_type: { using HINT [[maybe_unused]] = PORTER_SCALAR(enum_type); return __VA_ARGS__(); }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...) [&] { const auto the_type = ::c10::as_scalar_type(TYPE); switch (the_type) { __VA_ARGS__ default: break; } }()
#define THO_DISPATCH_CASE AT_DISPATCH_CASE
#define THO_DISPATCH_SWITCH AT_DISPATCH_SWITCH
#define THO_PRIVATE_CASE_TYPE_USING_HINT AT_PRIVATE_CASE_TYPE_USING_HINT
#define THO_PRIVATE_CASE_TYPE_USING_HINT_TMPL(prelude, enum_type, HINT, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, HINT, __VA_ARGS__)
#define THO_DISPATCH_CASE_TMPL(case_, enum_type, ...) AT_DISPATCH_CASE(enum_type, __VA_ARGS__)
#define THO_DISPATCH_SWITCH_TMPL(prelude, check, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, __VA_ARGS__)
#define THO_EMPTY
#define AT_DISPATCH_INDEX_CASE(e, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(e, index_t, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) AT_DISPATCH_CASE(c10::ScalarType::Double, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) AT_DISPATCH_CASE(c10::ScalarType::Byte, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Char, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Int, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Long, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, ...) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, ...) AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) AT_DISPATCH_CASE(c10::ScalarType::Half, __VA_ARGS__) AT_DISPATCH_CASE(c10::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_INDEX_CASE(c10::ScalarType::Int, __VA_ARGS__) AT_DISPATCH_INDEX_CASE(c10::ScalarType::Long, __VA_ARGS__))
#define THO_DISPATCH_V2 AT_DISPATCH_V2
#define AT_EXPAND(X) X
#define AT_WRAP(...) __VA_ARGS__
