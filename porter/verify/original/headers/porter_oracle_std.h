// The part of namespace std that kernels use most, small enough to cost nothing. Device code only.
// What is not here comes from cuda::std instead (porter_oracle_cudastd.h), which takes NVRTC a second.
#pragma once
#include "porter_oracle.h"
#define PORTER_ORACLE_STD 1
#define PORTER_HD __host__ __device__ __forceinline__
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::int_least8_t; using ::int_least16_t; using ::int_least32_t; using ::int_least64_t;
using ::uint_least8_t; using ::uint_least16_t; using ::uint_least32_t; using ::uint_least64_t;
using ::int_fast8_t; using ::int_fast16_t; using ::int_fast32_t; using ::int_fast64_t;
using ::uint_fast8_t; using ::uint_fast16_t; using ::uint_fast32_t; using ::uint_fast64_t;
using ::intptr_t; using ::uintptr_t;
using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)0 - (char*)0);
using nullptr_t = decltype(nullptr);
enum class byte : unsigned char {};

// ---- type traits
template <class T, T V> struct integral_constant {
  static constexpr T value = V;
  using value_type = T;
  using type = integral_constant;
  PORTER_HD constexpr operator T() const noexcept { return V; }
  PORTER_HD constexpr T operator()() const noexcept { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class... Ts> using void_t = void;
template <class T> struct type_identity { using type = T; };
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_volatile { using type = T; };
template <class T> struct remove_volatile<volatile T> { using type = T; };
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> struct remove_cv { using type = remove_const_t<remove_volatile_t<T>>; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_cvref { using type = remove_cv_t<remove_reference_t<T>>; };
template <class T> using remove_cvref_t = typename remove_cvref<T>::type;
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T*> { using type = T; };
template <class T> struct remove_pointer<T* const> { using type = T; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct add_const { using type = const T; };
template <class T> using add_const_t = const T;
template <class T> struct add_pointer { using type = remove_reference_t<T>*; };
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> struct decay { using type = remove_cvref_t<T>; };
template <class T, size_t N> struct decay<T[N]> { using type = T*; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = typename underlying_type<T>::type;
template <class T> struct make_unsigned;
template <> struct make_unsigned<signed char> { using type = unsigned char; };
template <> struct make_unsigned<char> { using type = unsigned char; };
template <> struct make_unsigned<unsigned char> { using type = unsigned char; };
template <> struct make_unsigned<short> { using type = unsigned short; };
template <> struct make_unsigned<unsigned short> { using type = unsigned short; };
template <> struct make_unsigned<int> { using type = unsigned int; };
template <> struct make_unsigned<unsigned int> { using type = unsigned int; };
template <> struct make_unsigned<long> { using type = unsigned long; };
template <> struct make_unsigned<unsigned long> { using type = unsigned long; };
template <> struct make_unsigned<long long> { using type = unsigned long long; };
template <> struct make_unsigned<unsigned long long> { using type = unsigned long long; };
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T*> : true_type {};
template <class T> inline constexpr bool is_pointer_v = is_pointer<remove_cv_t<T>>::value;
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> inline constexpr bool is_const_v = is_const<T>::value;
template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T> inline constexpr bool is_void_v = is_void<T>::value;
template <class T, class... Us> inline constexpr bool __porter_any = (is_same_v<T, Us> || ...);
template <class T> struct is_integral : bool_constant<__porter_any<remove_cv_t<T>, bool, char, signed char,
    unsigned char, short, unsigned short, int, unsigned int, long, unsigned long, long long, unsigned long long>> {};
template <class T> inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T> struct is_floating_point : bool_constant<__porter_any<remove_cv_t<T>, float, double>> {};
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> struct is_arithmetic : bool_constant<is_integral_v<T> || is_floating_point_v<T>> {};
template <class T> inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> struct is_signed : bool_constant<is_arithmetic_v<T> && (T(-1) < T(0))> {};
template <class T> inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T> struct is_unsigned : bool_constant<is_integral_v<T> && !(T(-1) < T(0))> {};
template <class T> inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> inline constexpr bool is_enum_v = is_enum<T>::value;
template <class B, class D> struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class B, class D> inline constexpr bool is_base_of_v = is_base_of<B, D>::value;
template <class A, class B> struct is_convertible : bool_constant<__is_convertible_to(A, B)> {};
template <class A, class B> inline constexpr bool is_convertible_v = is_convertible<A, B>::value;
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T> inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
template <class T> struct negation : bool_constant<!bool(T::value)> {};
template <class T> inline constexpr bool negation_v = negation<T>::value;
template <class... Ts> struct conjunction : bool_constant<(bool(Ts::value) && ...)> {};
template <class... Ts> inline constexpr bool conjunction_v = conjunction<Ts...>::value;
template <class... Ts> struct disjunction : bool_constant<(bool(Ts::value) || ...)> {};
template <class... Ts> inline constexpr bool disjunction_v = disjunction<Ts...>::value;
template <class T> T&& declval() noexcept;
template <class F, class... As> struct invoke_result { using type = decltype(declval<F>()(declval<As>()...)); };
template <class F, class... As> using invoke_result_t = typename invoke_result<F, As...>::type;

// ---- utility
// NVRTC declares std::forward and std::move itself.
template <class T> PORTER_HD constexpr void swap(T& a, T& b) { T t = move(a); a = move(b); b = move(t); }
template <class T, class U = T> PORTER_HD constexpr T exchange(T& object, U&& value) {
  T old = move(object);
  object = forward<U>(value);
  return old;
}
template <class A, class B> struct pair { A first; B second; };
template <class A, class B> PORTER_HD constexpr pair<decay_t<A>, decay_t<B>> make_pair(A&& a, B&& b) {
  return {forward<A>(a), forward<B>(b)};
}
template <class T, T... Is> struct integer_sequence {
  using value_type = T;
  PORTER_HD static constexpr size_t size() noexcept { return sizeof...(Is); }
};
template <size_t... Is> using index_sequence = integer_sequence<size_t, Is...>;
template <class T, size_t N, size_t... Is> struct __porter_sequence : __porter_sequence<T, N - 1, N - 1, Is...> {};
template <class T, size_t... Is> struct __porter_sequence<T, 0, Is...> { using type = integer_sequence<T, T(Is)...>; };
template <class T, T N> using make_integer_sequence = typename __porter_sequence<T, N>::type;
template <size_t N> using make_index_sequence = make_integer_sequence<size_t, N>;
template <class... Ts> using index_sequence_for = make_index_sequence<sizeof...(Ts)>;

// ---- algorithm
template <class T> PORTER_HD constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> PORTER_HD constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T, class C> PORTER_HD constexpr const T& min(const T& a, const T& b, C less) { return less(b, a) ? b : a; }
template <class T, class C> PORTER_HD constexpr const T& max(const T& a, const T& b, C less) { return less(a, b) ? b : a; }
template <class T> PORTER_HD constexpr const T& clamp(const T& v, const T& lo, const T& hi) {
  return v < lo ? lo : hi < v ? hi : v;
}

// ---- array
template <class T, size_t N> struct array {
  T __items[N];
  using value_type = T;
  PORTER_HD constexpr T& operator[](size_t i) { return __items[i]; }
  PORTER_HD constexpr const T& operator[](size_t i) const { return __items[i]; }
  PORTER_HD constexpr T* data() { return __items; }
  PORTER_HD constexpr const T* data() const { return __items; }
  PORTER_HD constexpr T* begin() { return __items; }
  PORTER_HD constexpr const T* begin() const { return __items; }
  PORTER_HD constexpr T* end() { return __items + N; }
  PORTER_HD constexpr const T* end() const { return __items + N; }
  PORTER_HD static constexpr size_t size() { return N; }
};

// ---- functional
template <class T = void> struct plus { PORTER_HD constexpr T operator()(const T& a, const T& b) const { return a + b; } };
template <class T = void> struct minus { PORTER_HD constexpr T operator()(const T& a, const T& b) const { return a - b; } };
template <class T = void> struct multiplies { PORTER_HD constexpr T operator()(const T& a, const T& b) const { return a * b; } };
template <class T = void> struct less { PORTER_HD constexpr bool operator()(const T& a, const T& b) const { return a < b; } };
template <class T = void> struct greater { PORTER_HD constexpr bool operator()(const T& a, const T& b) const { return a > b; } };

// Gone from C++17, and still in libstdc++.
template <class A, class R> struct unary_function { using argument_type = A; using result_type = R; };
template <class A, class B, class R> struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};

// ---- limits
template <class T> struct numeric_limits { static constexpr bool is_specialized = false; };
#define PORTER_INTEGER_LIMITS(T, LO, HI, SIGNED, DIGITS)                                                  \
  template <> struct numeric_limits<T> {                                                                   \
    static constexpr bool is_specialized = true, is_integer = true, is_signed = SIGNED, is_exact = true;   \
    static constexpr bool has_infinity = false, has_quiet_NaN = false;                                     \
    static constexpr int digits = DIGITS, radix = 2, digits10 = DIGITS * 301 / 1000;                       \
    PORTER_HD static constexpr T min() noexcept { return LO; }                                             \
    PORTER_HD static constexpr T lowest() noexcept { return LO; }                                          \
    PORTER_HD static constexpr T max() noexcept { return HI; }                                             \
    PORTER_HD static constexpr T epsilon() noexcept { return 0; }                                          \
    PORTER_HD static constexpr T infinity() noexcept { return 0; }                                         \
    PORTER_HD static constexpr T quiet_NaN() noexcept { return 0; }                                        \
  };
PORTER_INTEGER_LIMITS(bool, false, true, false, 1)
PORTER_INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX, true, 7)
PORTER_INTEGER_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX, true, 7)
PORTER_INTEGER_LIMITS(unsigned char, 0, UCHAR_MAX, false, 8)
PORTER_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, true, 15)
PORTER_INTEGER_LIMITS(unsigned short, 0, USHRT_MAX, false, 16)
PORTER_INTEGER_LIMITS(int, INT_MIN, INT_MAX, true, 31)
PORTER_INTEGER_LIMITS(unsigned int, 0, UINT_MAX, false, 32)
PORTER_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, true, 63)
PORTER_INTEGER_LIMITS(unsigned long, 0, ULONG_MAX, false, 64)
PORTER_INTEGER_LIMITS(long long, LLONG_MIN, LLONG_MAX, true, 63)
PORTER_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX, false, 64)
#define PORTER_FLOAT_LIMITS(T, MIN, MAX, EPS, INF, QNAN, DIGITS)                                          \
  template <> struct numeric_limits<T> {                                                                   \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true, is_exact = false;   \
    static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = true;                     \
    static constexpr int digits = DIGITS, radix = 2;                                                       \
    PORTER_HD static constexpr T min() noexcept { return MIN; }                                            \
    PORTER_HD static constexpr T lowest() noexcept { return -(MAX); }                                      \
    PORTER_HD static constexpr T max() noexcept { return MAX; }                                            \
    PORTER_HD static constexpr T epsilon() noexcept { return EPS; }                                        \
    PORTER_HD static constexpr T infinity() noexcept { return INF; }                                       \
    PORTER_HD static constexpr T quiet_NaN() noexcept { return QNAN; }                                     \
  };
PORTER_FLOAT_LIMITS(float, FLT_MIN, FLT_MAX, FLT_EPSILON, __builtin_bit_cast(float, 0x7f800000),
                    __builtin_bit_cast(float, 0x7fc00000), 24)
PORTER_FLOAT_LIMITS(double, DBL_MIN, DBL_MAX, DBL_EPSILON, __builtin_bit_cast(double, 0x7ff0000000000000ll),
                    __builtin_bit_cast(double, 0x7ff8000000000000ll), 53)
#undef PORTER_INTEGER_LIMITS
#undef PORTER_FLOAT_LIMITS

// ---- cmath: the float overload of a name is the device function that nvcc picks
#define PORTER_UNARY(name)                                                                                \
  PORTER_HD float name(float x) { return ::name##f(x); }                                                  \
  PORTER_HD double name(double x) { return ::name(x); }
#define PORTER_BINARY(name)                                                                               \
  PORTER_HD float name(float a, float b) { return ::name##f(a, b); }                                      \
  PORTER_HD double name(double a, double b) { return ::name(a, b); }
PORTER_UNARY(exp) PORTER_UNARY(exp2) PORTER_UNARY(expm1) PORTER_UNARY(log) PORTER_UNARY(log2) PORTER_UNARY(log10)
PORTER_UNARY(log1p) PORTER_UNARY(sqrt) PORTER_UNARY(cbrt) PORTER_UNARY(sin) PORTER_UNARY(cos) PORTER_UNARY(tan)
PORTER_UNARY(asin) PORTER_UNARY(acos) PORTER_UNARY(atan) PORTER_UNARY(sinh) PORTER_UNARY(cosh) PORTER_UNARY(tanh)
PORTER_UNARY(erf) PORTER_UNARY(erfc) PORTER_UNARY(floor) PORTER_UNARY(ceil) PORTER_UNARY(round) PORTER_UNARY(trunc)
PORTER_UNARY(rint) PORTER_UNARY(nearbyint)
PORTER_BINARY(pow) PORTER_BINARY(fmod) PORTER_BINARY(fmax) PORTER_BINARY(fmin) PORTER_BINARY(atan2) PORTER_BINARY(hypot)
PORTER_BINARY(copysign)
#undef PORTER_UNARY
#undef PORTER_BINARY
PORTER_HD float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
PORTER_HD double fma(double a, double b, double c) { return ::fma(a, b, c); }
PORTER_HD float abs(float x) { return ::fabsf(x); }
PORTER_HD double abs(double x) { return ::fabs(x); }
PORTER_HD int abs(int x) { return ::abs(x); }
PORTER_HD long abs(long x) { return ::labs(x); }
PORTER_HD long long abs(long long x) { return ::llabs(x); }
PORTER_HD float fabs(float x) { return ::fabsf(x); }
PORTER_HD double fabs(double x) { return ::fabs(x); }
PORTER_HD bool isnan(float x) { return ::isnan(x); }
PORTER_HD bool isnan(double x) { return ::isnan(x); }
PORTER_HD bool isinf(float x) { return ::isinf(x); }
PORTER_HD bool isinf(double x) { return ::isinf(x); }
PORTER_HD bool isfinite(float x) { return ::isfinite(x); }
PORTER_HD bool isfinite(double x) { return ::isfinite(x); }
}  // namespace std
#undef PORTER_HD
