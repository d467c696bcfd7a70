// The part of namespace std (and cuda::std) that device code uses, with bodies only where constant evaluation needs them.
#pragma once
#include "porter_attributes.h"
#pragma clang force_cuda_host_device begin

inline void* operator new(size_t, void* p) noexcept { return p; }
inline void* operator new[](size_t, void* p) noexcept { return p; }
void __assert_porter(bool);

namespace std {
using ::size_t; using ::ptrdiff_t; using ::nullptr_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::int_least8_t; using ::int_least16_t; using ::int_least32_t; using ::int_least64_t;
using ::uint_least8_t; using ::uint_least16_t; using ::uint_least32_t; using ::uint_least64_t;
using ::int_fast8_t; using ::int_fast16_t; using ::int_fast32_t; using ::int_fast64_t;
using ::uint_fast8_t; using ::uint_fast16_t; using ::uint_fast32_t; using ::uint_fast64_t;
using ::intptr_t; using ::uintptr_t;
using ::max_align_t; using ::time_t; using ::intmax_t; using ::uintmax_t;
enum class byte : unsigned char {};

// ---- traits
template <class T, T V> struct integral_constant {
  static constexpr T value = V;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const noexcept { return V; }
  constexpr T operator()() const noexcept { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class T, class U> struct is_same : bool_constant<__is_same(T, U)> {};
template <class T, class U> inline constexpr bool is_same_v = __is_same(T, U);
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <class...> using void_t = void;
template <class T> struct type_identity { using type = T; };
template <class T> using type_identity_t = T;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> struct remove_volatile { using type = T; };
template <class T> struct remove_volatile<volatile T> { using type = T; };
template <class T> struct remove_cv { using type = typename remove_const<typename remove_volatile<T>::type>::type; };
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T*> { using type = T; };
template <class T> struct remove_pointer<T* const> { using type = T; };
template <class T> struct remove_pointer<T* volatile> { using type = T; };
template <class T> struct remove_extent { using type = T; };
template <class T> struct remove_extent<T[]> { using type = T; };
template <class T, size_t N> struct remove_extent<T[N]> { using type = T; };
template <class T> struct add_const { using type = const T; };
template <class T> struct add_pointer { using type = typename remove_reference<T>::type*; };
template <class T> struct add_lvalue_reference { using type = T&; };
template <> struct add_lvalue_reference<void> { using type = void; };
template <class T> struct add_rvalue_reference { using type = T&&; };
template <> struct add_rvalue_reference<void> { using type = void; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> using add_const_t = const T;
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> struct remove_cvref { using type = remove_cv_t<remove_reference_t<T>>; };
template <class T> using remove_cvref_t = typename remove_cvref<T>::type;
template <class T> struct decay { using type = __decay(T); };
template <class T> using decay_t = __decay(T);
template <class T> typename add_rvalue_reference<T>::type declval() noexcept;
#define PORTER_TRAIT(name, builtin)                               \
  template <class T> struct name : bool_constant<builtin(T)> {}; \
  template <class T> inline constexpr bool name##_v = builtin(T);
PORTER_TRAIT(is_integral, __is_integral)
PORTER_TRAIT(is_floating_point, __is_floating_point)
PORTER_TRAIT(is_arithmetic, __is_arithmetic)
PORTER_TRAIT(is_fundamental, __is_fundamental)
PORTER_TRAIT(is_signed, __is_signed)
PORTER_TRAIT(is_unsigned, __is_unsigned)
PORTER_TRAIT(is_void, __is_void)
PORTER_TRAIT(is_enum, __is_enum)
PORTER_TRAIT(is_class, __is_class)
PORTER_TRAIT(is_union, __is_union)
PORTER_TRAIT(is_pointer, __is_pointer)
PORTER_TRAIT(is_array, __is_array)
PORTER_TRAIT(is_const, __is_const)
PORTER_TRAIT(is_volatile, __is_volatile)
PORTER_TRAIT(is_reference, __is_reference)
PORTER_TRAIT(is_lvalue_reference, __is_lvalue_reference)
PORTER_TRAIT(is_rvalue_reference, __is_rvalue_reference)
PORTER_TRAIT(is_function, __is_function)
PORTER_TRAIT(is_scalar, __is_scalar)
PORTER_TRAIT(is_empty, __is_empty)
PORTER_TRAIT(is_pod, __is_pod)
PORTER_TRAIT(is_trivial, __is_trivial)
PORTER_TRAIT(is_standard_layout, __is_standard_layout)
PORTER_TRAIT(is_trivially_copyable, __is_trivially_copyable)
PORTER_TRAIT(is_trivially_destructible, __is_trivially_destructible)
PORTER_TRAIT(is_aggregate, __is_aggregate)
#undef PORTER_TRAIT
template <class T> struct is_null_pointer : is_same<remove_cv_t<T>, nullptr_t> {};
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class A, class B> inline constexpr bool is_base_of_v = __is_base_of(A, B);
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class A, class B> inline constexpr bool is_convertible_v = __is_convertible(A, B);
template <class T, class... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class... A> inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class T> struct is_default_constructible : bool_constant<__is_constructible(T)> {};
template <class T> struct is_trivially_default_constructible : bool_constant<__is_trivially_constructible(T)> {};
template <class T> struct is_copy_constructible : bool_constant<__is_constructible(T, const T&)> {};
template <class T> inline constexpr bool is_copy_constructible_v = __is_constructible(T, const T&);
template <class T> inline constexpr bool is_default_constructible_v = __is_constructible(T);
template <class T> struct is_move_constructible : bool_constant<__is_constructible(T, T&&)> {};
template <class F, class... A> constexpr auto __porter_invocable(int) -> decltype(declval<F>()(declval<A>()...), true) { return true; }
template <class F, class... A> constexpr bool __porter_invocable(long) { return false; }
template <class F, class... A> inline constexpr bool is_invocable_v = __porter_invocable<F, A...>(0);
template <class F, class... A> struct is_invocable : bool_constant<is_invocable_v<F, A...>> {};
template <class A, class B> struct is_assignable : bool_constant<__is_assignable(A, B)> {};
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = __underlying_type(T);
template <class T> struct make_unsigned { using type = __make_unsigned(T); };
template <class T> using make_unsigned_t = __make_unsigned(T);
template <class T> struct make_signed { using type = __make_signed(T); };
template <class T> using make_signed_t = __make_signed(T);
template <class T> struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T> struct rank : integral_constant<size_t, __array_rank(T)> {};
template <class T, unsigned I = 0> struct extent : integral_constant<size_t, 0> {};
template <class T, size_t N> struct extent<T[N], 0> : integral_constant<size_t, N> {};
template <class... T> struct common_type {};
template <class T> struct common_type<T> { using type = decay_t<T>; };
template <class T, class U> struct common_type<T, U> { using type = decay_t<decltype(false ? declval<T>() : declval<U>())>; };
template <class T, class U, class... R> struct common_type<T, U, R...> : common_type<typename common_type<T, U>::type, R...> {};
template <class... T> using common_type_t = typename common_type<T...>::type;
template <class F, class... A> struct invoke_result { using type = decltype(declval<F>()(declval<A>()...)); };
template <class F, class... A> using invoke_result_t = typename invoke_result<F, A...>::type;
template <class F> struct result_of;
template <class F, class... A> struct result_of<F(A...)> { using type = decltype(declval<F>()(declval<A>()...)); };
template <class...> struct conjunction : true_type {};
template <class B, class... R> struct conjunction<B, R...> : bool_constant<(bool(B::value) && ... && bool(R::value))> {};
template <class... B> inline constexpr bool conjunction_v = conjunction<B...>::value;
template <class... B> struct disjunction : bool_constant<(bool(B::value) || ... || false)> {};
template <class... B> inline constexpr bool disjunction_v = disjunction<B...>::value;
template <class B> struct negation : bool_constant<!bool(B::value)> {};
template <class B> inline constexpr bool negation_v = !bool(B::value);
template <size_t Len, size_t Align = 8> struct aligned_storage { struct type { alignas(Align) unsigned char data[Len]; }; };
template <size_t Len, size_t Align = 8> using aligned_storage_t = typename aligned_storage<Len, Align>::type;
constexpr bool is_constant_evaluated() noexcept { return __builtin_is_constant_evaluated(); }
template <class T> struct hash { size_t operator()(const T&) const; };

// ---- value functions
template <class T> constexpr remove_reference_t<T>&& move(T&& v) noexcept { return static_cast<remove_reference_t<T>&&>(v); }
template <class T> constexpr T&& forward(remove_reference_t<T>& v) noexcept { return static_cast<T&&>(v); }
template <class T> constexpr T&& forward(remove_reference_t<T>&& v) noexcept { return static_cast<T&&>(v); }
template <class T> constexpr const T& as_const(T& v) noexcept { return v; }
template <class T> constexpr T* addressof(T& v) noexcept { return __builtin_addressof(v); }
template <class T> constexpr void swap(T& a, T& b) { T t = static_cast<T&&>(a); a = static_cast<T&&>(b); b = static_cast<T&&>(t); }
template <class T, size_t N> constexpr void swap(T (&a)[N], T (&b)[N]) { for (size_t i = 0; i < N; ++i) swap(a[i], b[i]); }
template <class T, class U = T> constexpr T exchange(T& a, U&& b) { T t = a; a = static_cast<U&&>(b); return t; }
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T, class C> constexpr const T& min(const T& a, const T& b, C less) { return less(b, a) ? b : a; }
template <class T, class C> constexpr const T& max(const T& a, const T& b, C less) { return less(a, b) ? b : a; }
template <class T> constexpr const T& clamp(const T& v, const T& lo, const T& hi) { return v < lo ? lo : (hi < v ? hi : v); }
template <class T, size_t N> constexpr size_t size(const T (&)[N]) noexcept { return N; }
template <class C> constexpr auto size(const C& c) -> decltype(c.size()) { return c.size(); }
template <class T, size_t N> constexpr T* begin(T (&a)[N]) noexcept { return a; }
template <class T, size_t N> constexpr T* end(T (&a)[N]) noexcept { return a + N; }
template <class C> constexpr auto begin(C& c) -> decltype(c.begin()) { return c.begin(); }
template <class C> constexpr auto end(C& c) -> decltype(c.end()) { return c.end(); }
template <class C> constexpr auto data(C& c) -> decltype(c.data()) { return c.data(); }
template <class To, class From> constexpr To bit_cast(const From& v) noexcept { return __builtin_bit_cast(To, v); }
template <class T> constexpr int popcount(T v) noexcept { return __builtin_popcountll(v); }
template <class T> constexpr T* launder(T* p) noexcept { return p; }
void* memcpy(void*, const void*, size_t);
template <class I, class O> O copy(I, I, O);
template <class I, class N, class O> O copy_n(I, N, O);
template <class I, class T> void fill(I, I, const T&);
template <class I, class N, class T> I fill_n(I, N, const T&);
template <class I> void sort(I, I);
template <class I, class C> void sort(I, I, C);
template <class I, class T> T accumulate(I, I, T);
template <class I, class T, class F> T accumulate(I, I, T, F);
template <class I, class T> void iota(I, I, T);
template <class I, class T> I find(I, I, const T&);
template <class I, class F> bool any_of(I, I, F);
template <class I, class F> bool all_of(I, I, F);
template <class I> I max_element(I, I);
template <class I> I min_element(I, I);
template <class I, class T> I lower_bound(I, I, const T&);
template <class I, class T> I upper_bound(I, I, const T&);
template <class I> void reverse(I, I);
template <class T, class U> constexpr common_type_t<T, U> gcd(T a, U b) { return b == 0 ? a : gcd<common_type_t<T, U>, common_type_t<T, U>>(b, a % b); }
template <class T, class U> constexpr common_type_t<T, U> lcm(T a, U b) { return a / gcd(a, b) * b; }
[[noreturn]] inline void unreachable() { __builtin_unreachable(); }

// ---- function objects
#define PORTER_FUNCTOR(name, expr)                                                                  \
  template <class T = void> struct name { constexpr auto operator()(const T& a, const T& b) const { return expr; } }; \
  template <> struct name<void> { template <class T, class U> constexpr auto operator()(const T& a, const U& b) const { return expr; } };
PORTER_FUNCTOR(plus, a + b) PORTER_FUNCTOR(minus, a - b) PORTER_FUNCTOR(multiplies, a * b) PORTER_FUNCTOR(divides, a / b)
PORTER_FUNCTOR(less, a < b) PORTER_FUNCTOR(greater, a > b) PORTER_FUNCTOR(less_equal, a <= b)
PORTER_FUNCTOR(greater_equal, a >= b) PORTER_FUNCTOR(equal_to, a == b) PORTER_FUNCTOR(not_equal_to, a != b)
PORTER_FUNCTOR(bit_and, a & b) PORTER_FUNCTOR(bit_or, a | b) PORTER_FUNCTOR(bit_xor, a ^ b)
PORTER_FUNCTOR(logical_and, a && b) PORTER_FUNCTOR(logical_or, a || b)
#undef PORTER_FUNCTOR
// Gone from C++17 and still in libstdc++; no members but types.
template <class A, class R> struct unary_function { using argument_type = A; using result_type = R; };
template <class A, class B, class R> struct binary_function { using first_argument_type = A; using second_argument_type = B; using result_type = R; };
template <class T = void> struct negate { constexpr auto operator()(const T& v) const { return -v; } };
template <class T = void> struct logical_not { constexpr bool operator()(const T& v) const { return !v; } };
struct identity { template <class T> constexpr T&& operator()(T&& v) const { return static_cast<T&&>(v); } };

// ---- sequences, pair, tuple, array
template <class T, T... I> struct integer_sequence { using value_type = T; static constexpr size_t size() { return sizeof...(I); } };
template <size_t... I> using index_sequence = integer_sequence<size_t, I...>;
template <class T, T N> using make_integer_sequence = __make_integer_seq<integer_sequence, T, N>;
template <size_t N> using make_index_sequence = make_integer_sequence<size_t, N>;
template <class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;
template <class T> struct tuple_size;
template <size_t I, class T> struct tuple_element;
template <size_t I, class T> using tuple_element_t = typename tuple_element<I, T>::type;
template <class T> inline constexpr size_t tuple_size_v = tuple_size<T>::value;
template <class A, class B> struct pair {
  using first_type = A;
  using second_type = B;
  A first; B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const A& a, const B& b) : first(a), second(b) {}
  template <class C, class D> constexpr pair(C&& a, D&& b) : first(static_cast<C&&>(a)), second(static_cast<D&&>(b)) {}
  template <class C, class D> constexpr pair(const pair<C, D>& o) : first(o.first), second(o.second) {}
};
template <class A, class B> pair(A, B) -> pair<A, B>;
template <class A, class B> constexpr pair<decay_t<A>, decay_t<B>> make_pair(A&& a, B&& b) { return pair<decay_t<A>, decay_t<B>>(a, b); }
// No tuple_size for pair: `auto [a, b] = pair` then names its two members, as it does in effect.
template <size_t I, class A, class B> constexpr auto& get(pair<A, B>& p) { if constexpr (I == 0) return p.first; else return p.second; }
template <size_t I, class A, class B> constexpr const auto& get(const pair<A, B>& p) { if constexpr (I == 0) return p.first; else return p.second; }
template <class... T> struct tuple;
template <> struct tuple<> {};
template <class H, class... T> struct tuple<H, T...> {
  H head; tuple<T...> tail;
  constexpr tuple() : head(), tail() {}
  constexpr tuple(const H& h, const T&... t) : head(h), tail(t...) {}
  template <class G, class... U, class = enable_if_t<sizeof...(U) == sizeof...(T)>, class = enable_if_t<is_constructible_v<H, G&&>>>
  constexpr tuple(G&& h, U&&... t) : head(static_cast<G&&>(h)), tail(static_cast<U&&>(t)...) {}
  template <class G, class... U> constexpr tuple& operator=(const tuple<G, U...>& o) { head = o.head; tail = o.tail; return *this; }
  template <class A, class B> constexpr tuple& operator=(const pair<A, B>& o) { head = o.first; tail.head = o.second; return *this; }
};
template <class... T> tuple(T...) -> tuple<T...>;
template <class... T> struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
// Only for types with a size: asking for that of another class (a structured binding does) is no error.
template <class T, size_t = tuple_size<T>::value> using __porter_sized = T;
template <class T> struct tuple_size<const __porter_sized<T>> : tuple_size<T> {};
template <size_t I, class H, class... T> struct tuple_element<I, tuple<H, T...>> : tuple_element<I - 1, tuple<T...>> {};
template <class H, class... T> struct tuple_element<0, tuple<H, T...>> { using type = H; };
template <size_t I, class T> struct tuple_element<I, const T> { using type = const tuple_element_t<I, T>; };
template <size_t I, class... T> constexpr auto& get(tuple<T...>& t) { if constexpr (I == 0) return t.head; else return get<I - 1>(t.tail); }
template <size_t I, class... T> constexpr const auto& get(const tuple<T...>& t) { if constexpr (I == 0) return t.head; else return get<I - 1>(t.tail); }
template <size_t I, class... T> constexpr auto get(tuple<T...>&& t) { if constexpr (I == 0) return t.head; else return get<I - 1>(static_cast<decltype(t.tail)&&>(t.tail)); }
template <class... T> constexpr tuple<decay_t<T>...> make_tuple(T&&... v) { return tuple<decay_t<T>...>(v...); }
template <class... T> constexpr tuple<T&...> tie(T&... v) { return tuple<T&...>(v...); }
template <class... T> constexpr tuple<T&&...> forward_as_tuple(T&&... v) { return tuple<T&&...>(static_cast<T&&>(v)...); }
struct __porter_ignore { template <class T> constexpr const __porter_ignore& operator=(const T&) const { return *this; } };
inline constexpr __porter_ignore ignore{};
template <class F, class T, size_t... I> constexpr decltype(auto) __porter_apply(F&& f, T&& t, index_sequence<I...>) { return f(get<I>(t)...); }
template <class F, class T> constexpr decltype(auto) apply(F&& f, T&& t) { return __porter_apply(f, t, make_index_sequence<tuple_size<decay_t<T>>::value>{}); }
template <class F, class... A> constexpr decltype(auto) invoke(F&& f, A&&... a) { return f(static_cast<A&&>(a)...); }
template <class T, size_t N> struct array {
  using value_type = T;
  using size_type = size_t;
  using iterator = T*;
  using const_iterator = const T*;
  T _elems[N ? N : 1];
  constexpr T& operator[](size_t i) { return _elems[i]; }
  constexpr const T& operator[](size_t i) const { return _elems[i]; }
  constexpr T& at(size_t i) { return _elems[i]; }
  constexpr const T& at(size_t i) const { return _elems[i]; }
  constexpr T& front() { return _elems[0]; }
  constexpr T& back() { return _elems[N - 1]; }
  constexpr T* data() { return _elems; }
  constexpr const T* data() const { return _elems; }
  constexpr T* begin() { return _elems; }
  constexpr T* end() { return _elems + N; }
  constexpr const T* begin() const { return _elems; }
  constexpr const T* end() const { return _elems + N; }
  static constexpr size_t size() { return N; }
  static constexpr bool empty() { return N == 0; }
  constexpr void fill(const T& v) { for (size_t i = 0; i < N; ++i) _elems[i] = v; }
};
template <class T, class... U> array(T, U...) -> array<T, 1 + sizeof...(U)>;
template <class T, size_t N> struct tuple_size<array<T, N>> : integral_constant<size_t, N> {};
template <size_t I, class T, size_t N> struct tuple_element<I, array<T, N>> { using type = T; };
template <size_t I, class T, size_t N> constexpr T& get(array<T, N>& a) { return a._elems[I]; }
template <size_t I, class T, size_t N> constexpr T&& get(array<T, N>&& a) { return static_cast<T&&>(a._elems[I]); }
template <size_t I, class T, size_t N> constexpr const T& get(const array<T, N>& a) { return a._elems[I]; }
template <class E> class initializer_list {
  const E* _begin; size_t _size;
 public:
  constexpr initializer_list() noexcept : _begin(nullptr), _size(0) {}
  constexpr size_t size() const noexcept { return _size; }
  constexpr const E* begin() const noexcept { return _begin; }
  constexpr const E* end() const noexcept { return _begin + _size; }
};
template <class T> constexpr T min(initializer_list<T> l) { T m = *l.begin(); for (const T& v : l) if (v < m) m = v; return m; }
template <class T> constexpr T max(initializer_list<T> l) { T m = *l.begin(); for (const T& v : l) if (m < v) m = v; return m; }

// ---- numeric_limits
enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest, round_toward_infinity, round_toward_neg_infinity };
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };
template <class T> struct numeric_limits {
  static constexpr bool is_specialized = false, is_bounded = false, is_modulo = false;
  static constexpr float_round_style round_style = round_toward_zero;
  static constexpr float_denorm_style has_denorm = denorm_absent;
  static constexpr bool is_integer = false, is_signed = false, is_exact = false, has_infinity = false, has_quiet_NaN = false;
  static constexpr int digits = 0, digits10 = 0, max_exponent = 0, min_exponent = 0, radix = 0;
  static constexpr T min() noexcept { return T(); }
  static constexpr T max() noexcept { return T(); }
  static constexpr T lowest() noexcept { return T(); }
  static constexpr T epsilon() noexcept { return T(); }
  static constexpr T infinity() noexcept { return T(); }
  static constexpr T quiet_NaN() noexcept { return T(); }
};
template <class T> struct numeric_limits<const T> : numeric_limits<T> {};
#define PORTER_INT_LIMITS(T, lo, hi, sgn, dig)                                                              \
  template <> struct numeric_limits<T> {                                                                    \
    static constexpr bool is_specialized = true, is_integer = true, is_signed = sgn, is_exact = true;       \
    static constexpr bool has_infinity = false, has_quiet_NaN = false, is_iec559 = false, is_bounded = true; \
    static constexpr bool is_modulo = !sgn;                                                                 \
    static constexpr float_round_style round_style = round_toward_zero;                                     \
    static constexpr float_denorm_style has_denorm = denorm_absent;                                         \
    static constexpr int digits = dig, digits10 = dig * 30103 / 100000, radix = 2;                          \
    static constexpr T min() noexcept { return lo; }                                                        \
    static constexpr T max() noexcept { return hi; }                                                        \
    static constexpr T lowest() noexcept { return lo; }                                                     \
    static constexpr T epsilon() noexcept { return 0; }                                                     \
    static constexpr T infinity() noexcept { return 0; }                                                    \
    static constexpr T quiet_NaN() noexcept { return 0; }                                                   \
  };
PORTER_INT_LIMITS(bool, false, true, false, 1)
PORTER_INT_LIMITS(char, -128, 127, true, 7)
PORTER_INT_LIMITS(signed char, -128, 127, true, 7)
PORTER_INT_LIMITS(unsigned char, 0, 255, false, 8)
PORTER_INT_LIMITS(short, -32768, 32767, true, 15)
PORTER_INT_LIMITS(unsigned short, 0, 65535, false, 16)
PORTER_INT_LIMITS(int, INT_MIN, INT_MAX, true, 31)
PORTER_INT_LIMITS(unsigned int, 0, UINT_MAX, false, 32)
PORTER_INT_LIMITS(long, LONG_MIN, LONG_MAX, true, 63)
PORTER_INT_LIMITS(unsigned long, 0, ULONG_MAX, false, 64)
PORTER_INT_LIMITS(long long, LLONG_MIN, LLONG_MAX, true, 63)
PORTER_INT_LIMITS(unsigned long long, 0, ULLONG_MAX, false, 64)
#undef PORTER_INT_LIMITS
#define PORTER_FLOAT_LIMITS(T, lo, hi, eps, inf, nan, dig, d10, emax, emin, sub)                            \
  template <> struct numeric_limits<T> {                                                                    \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true, is_exact = false;    \
    static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = true, is_bounded = true;   \
    static constexpr bool is_modulo = false;                                                                \
    static constexpr float_round_style round_style = round_to_nearest;                                      \
    static constexpr float_denorm_style has_denorm = denorm_present;                                        \
    static constexpr int digits = dig, digits10 = d10, radix = 2, max_exponent = emax, min_exponent = emin; \
    static constexpr T min() noexcept { return lo; }                                                        \
    static constexpr T max() noexcept { return hi; }                                                        \
    static constexpr T lowest() noexcept { return -(hi); }                                                  \
    static constexpr T epsilon() noexcept { return eps; }                                                   \
    static constexpr T infinity() noexcept { return inf; }                                                  \
    static constexpr T quiet_NaN() noexcept { return nan; }                                                 \
    static constexpr T denorm_min() noexcept { return sub; }                                                \
    static constexpr T round_error() noexcept { return T(0.5); }                                            \
  };
PORTER_FLOAT_LIMITS(float, FLT_MIN, FLT_MAX, FLT_EPSILON, __builtin_inff(), __builtin_nanf(""), 24, 6, 128, -125, FLT_TRUE_MIN)
PORTER_FLOAT_LIMITS(double, DBL_MIN, DBL_MAX, DBL_EPSILON, __builtin_inf(), __builtin_nan(""), 53, 15, 1024, -1021, DBL_TRUE_MIN)
#undef PORTER_FLOAT_LIMITS
}  // namespace std

namespace cuda {
namespace std { using namespace ::std; }
}  // namespace cuda
#pragma clang force_cuda_host_device end
