// What C++20 adds to namespace std: <bit>, and under -std c++20 concepts and source_location.
#pragma once
#include "porter_std.h"
#pragma clang force_cuda_host_device begin
namespace std {
// ---- bit: of unsigned types; with bodies, since kernels call them with values that are not constant
enum class endian { little = 0, big = 1, native = 0 };
template <class T> PORTER_BODY constexpr bool has_single_bit(T v) noexcept { return v != 0 && (v & (v - 1)) == 0; }
template <class T> PORTER_BODY constexpr int countr_zero(T v) noexcept {
  int n = 0;
  while (n < int(8 * sizeof(T)) && (v >> n & 1) == 0) ++n;
  return n;
}
template <class T> PORTER_BODY constexpr int bit_width(T v) noexcept {
  int n = 0;
  while (n < int(8 * sizeof(T)) && v >> n != 0) ++n;
  return n;
}
template <class T> PORTER_BODY constexpr int countl_zero(T v) noexcept { return int(8 * sizeof(T)) - bit_width(v); }
template <class T> PORTER_BODY constexpr int countr_one(T v) noexcept { return countr_zero(T(~v)); }
template <class T> PORTER_BODY constexpr int countl_one(T v) noexcept { return countl_zero(T(~v)); }
template <class T> PORTER_BODY constexpr T bit_floor(T v) noexcept { return v == 0 ? T(0) : T(T(1) << (bit_width(v) - 1)); }
template <class T> PORTER_BODY constexpr T bit_ceil(T v) noexcept { return v <= 1 ? T(1) : T(T(1) << bit_width(T(v - 1))); }
template <class T> PORTER_BODY constexpr T rotl(T v, int by) noexcept {
  unsigned n = unsigned(by) % unsigned(8 * sizeof(T));
  return n == 0 ? v : T(T(v << n) | T(v >> (unsigned(8 * sizeof(T)) - n)));
}
template <class T> PORTER_BODY constexpr T rotr(T v, int by) noexcept { return rotl(v, -by); }

#if __cplusplus >= 202002L
// ---- concepts
template <class T, class U> concept same_as = is_same_v<T, U> && is_same_v<U, T>;
template <class D, class B> concept derived_from = is_base_of_v<B, D> && is_convertible_v<const volatile D*, const volatile B*>;
template <class F, class T> concept convertible_to = is_convertible_v<F, T> && requires { static_cast<T>(declval<F>()); };
template <class T> concept integral = is_integral_v<T>;
template <class T> concept signed_integral = is_integral_v<T> && is_signed_v<T>;
template <class T> concept unsigned_integral = is_integral_v<T> && !is_signed_v<T>;
template <class T> concept floating_point = is_floating_point_v<T>;
template <class T> concept destructible = requires(T& t) { t.~T(); };
template <class T, class... A> concept constructible_from = destructible<T> && is_constructible_v<T, A...>;
template <class T> concept default_initializable = constructible_from<T> && requires { T{}; };
template <class T> concept move_constructible = constructible_from<T, T>;
template <class T> concept copy_constructible = move_constructible<T> && constructible_from<T, const T&>;
template <class L, class R> concept assignable_from = is_lvalue_reference_v<L> && requires(L l, R&& r) { { l = static_cast<R&&>(r) } -> same_as<L>; };
template <class T> concept swappable = requires(T& a, T& b) { swap(a, b); };
template <class T> concept movable = move_constructible<T> && assignable_from<T&, T> && swappable<T>;
template <class T> concept copyable = copy_constructible<T> && movable<T> && assignable_from<T&, const T&>;
template <class T> concept equality_comparable = requires(const T& a, const T& b) { bool(a == b); bool(a != b); };
template <class T> concept totally_ordered = equality_comparable<T> && requires(const T& a, const T& b) { bool(a < b); bool(a > b); bool(a <= b); bool(a >= b); };
template <class T> concept semiregular = copyable<T> && default_initializable<T>;
template <class T> concept regular = semiregular<T> && equality_comparable<T>;
template <class F, class... A> concept invocable = is_invocable_v<F, A...>;
template <class F, class... A> concept regular_invocable = invocable<F, A...>;
template <class F, class... A> concept predicate = invocable<F, A...> && is_convertible_v<invoke_result_t<F, A...>, bool>;

struct source_location {
  static constexpr source_location current() noexcept { return {}; }
  constexpr unsigned line() const noexcept { return 0; }
  constexpr unsigned column() const noexcept { return 0; }
  constexpr const char* file_name() const noexcept { return ""; }
  constexpr const char* function_name() const noexcept { return ""; }
};
#endif
}  // namespace std
#if __cplusplus >= 202002L
#define __cpp_lib_bitops 201907L
#define __cpp_lib_bit_cast 201806L
#define __cpp_lib_int_pow2 202002L
#define __cpp_lib_endian 201907L
#define __cpp_lib_concepts 202002L
#define __cpp_lib_source_location 201907L
#define __cpp_lib_type_identity 201806L
#define __cpp_lib_remove_cvref 201711L
#define __cpp_lib_is_constant_evaluated 201811L
#endif
#pragma clang force_cuda_host_device end
