// cooperative_groups, warp matrix fragments (nvcuda::wmma), cuda:: barriers, pipelines and atomics.
#pragma once
#include "porter_device.h"
#pragma clang force_cuda_host_device begin
#define _CG_HAS_CLUSTER_GROUP 1
#define _CG_ASM_PTR_CONSTRAINT "l"
namespace cooperative_groups {
struct thread_group {
  void sync() const; unsigned long long size() const; unsigned long long num_threads() const; unsigned long long thread_rank() const;
  bool is_valid() const; unsigned get_type() const;
};
struct thread_block : thread_group {
  struct arrival_token {};
  static void sync(); static unsigned thread_rank(); static unsigned size(); static unsigned num_threads();
  static dim3 group_index(); static dim3 thread_index(); static dim3 group_dim(); static dim3 dim_threads();
  static arrival_token barrier_arrive(); static void barrier_wait(arrival_token&&);
};
struct grid_group : thread_group {
  struct arrival_token {};
  bool is_valid() const; void sync() const; unsigned long long size() const; unsigned long long num_threads() const;
  unsigned long long thread_rank() const; unsigned long long block_rank() const; unsigned long long num_blocks() const;
  dim3 group_dim() const; dim3 dim_blocks() const; dim3 block_index() const; static unsigned cluster_rank(); static unsigned num_clusters();
};
struct cluster_group : thread_group {
  struct arrival_token {};
  static void sync(); static arrival_token barrier_arrive(); static void barrier_wait(); static void barrier_wait(arrival_token&&);
  static unsigned thread_rank(); static unsigned size(); static unsigned num_threads(); static unsigned num_blocks(); static unsigned block_rank();
  static dim3 block_index(); static dim3 dim_blocks(); static dim3 dim_threads(); static dim3 thread_index();
  template <class T> static T* map_shared_rank(T*, int); template <class T> static T& map_shared_rank(T&, int); static unsigned query_shared_rank(const void*);
};
struct multi_grid_group : thread_group { void sync() const; };
struct coalesced_group : thread_group {
  void sync() const; unsigned size() const; unsigned num_threads() const; unsigned thread_rank() const; unsigned meta_group_size() const; unsigned meta_group_rank() const;
  template <class T> T shfl(T, int) const; template <class T> T shfl_up(T, unsigned) const; template <class T> T shfl_down(T, unsigned) const;
  int any(int) const; int all(int) const; unsigned ballot(int) const; template <class T> unsigned match_any(T) const; template <class T> unsigned match_all(T, int&) const;
};
template <unsigned Size, class Parent = void> struct thread_block_tile;
template <unsigned Size> struct thread_block_tile<Size, void> : thread_group {
  static void sync(); static unsigned thread_rank(); static constexpr unsigned size() { return Size; } static constexpr unsigned num_threads() { return Size; }
  unsigned meta_group_rank() const; unsigned meta_group_size() const;
  template <class T> T shfl(T, int) const; template <class T> T shfl_up(T, int) const; template <class T> T shfl_down(T, int) const; template <class T> T shfl_xor(T, int) const;
  int any(int) const; int all(int) const; unsigned ballot(int) const; template <class T> unsigned match_any(T) const; template <class T> unsigned match_all(T, int&) const;
};
template <unsigned Size, class Parent> struct thread_block_tile : thread_block_tile<Size, void> {};
template <unsigned Size> struct block_tile_memory { alignas(16) unsigned char bytes[Size]; };
thread_block this_thread_block(); template <unsigned N> thread_block this_thread_block(block_tile_memory<N>&); grid_group this_grid(); cluster_group this_cluster(); coalesced_group coalesced_threads(); multi_grid_group this_multi_grid();
template <unsigned Size, class G> thread_block_tile<Size, G> tiled_partition(const G&);
thread_group tiled_partition(const thread_group&, unsigned); coalesced_group tiled_partition(const coalesced_group&, unsigned);
template <class G> coalesced_group binary_partition(const G&, bool); template <class T, class G> coalesced_group labeled_partition(const G&, T);
template <class G> void sync(const G&); template <class G> unsigned thread_rank(const G&); template <class G> unsigned group_size(const G&);
template <class G, class F> void invoke_one(const G&, F&&); template <class G, class F> auto invoke_one_broadcast(const G&, F&& f) -> decltype(f());
#define PORTER_CG_OP(name, expr) template <class T = void> struct name { T operator()(T a, T b) const { return expr; } }; template <> struct name<void> { template <class T> T operator()(T a, T b) const { return expr; } };
PORTER_CG_OP(plus, a + b) PORTER_CG_OP(less, b < a ? b : a) PORTER_CG_OP(greater, a < b ? b : a) PORTER_CG_OP(bit_and, a & b) PORTER_CG_OP(bit_or, a | b) PORTER_CG_OP(bit_xor, a ^ b)
#undef PORTER_CG_OP
template <class Op> constexpr bool __porter_known_op = false; template <class T> constexpr bool __porter_known_op<plus<T>> = true;
template <class T> constexpr bool __porter_known_op<less<T>> = true; template <class T> constexpr bool __porter_known_op<greater<T>> = true;
template <class T, class Op> constexpr bool __porter_fold = __is_class(std::remove_reference_t<Op>) && ((__is_class(T) && sizeof(T) > 2) || !__porter_known_op<std::remove_cv_t<std::remove_reference_t<Op>>>);
template <class G, class T, class Op, std::enable_if_t<!__porter_fold<T, Op>, int> = 0> T reduce(const G&, const T&, Op&&);
template <class G, class T, class Op, std::enable_if_t<__porter_fold<T, Op>, int> = 0> PORTER_BODY T reduce(const G& group, const T& value, Op&& op) {
  T out = value;
#pragma unroll
  for (int mask = G::num_threads() / 2; mask > 0; mask /= 2) out = op(out, group.shfl_xor(out, mask));
  return out;
}
template <class G, class T, class Op> T inclusive_scan(const G&, const T&, Op&&); template <class G, class T> T inclusive_scan(const G&, const T&);
template <class G, class T, class Op> T exclusive_scan(const G&, const T&, Op&&); template <class G, class T> T exclusive_scan(const G&, const T&);
template <class G, class T> void reduce_update_async(const G&, T&, T); template <class G, class T> void memcpy_async(const G&, T*, const T*, size_t);
template <class G> void memcpy_async(const G&, void*, const void*, size_t); template <class G> void wait(const G&); template <unsigned N, class G> void wait_prior(const G&);
}  // namespace cooperative_groups

namespace nvcuda { namespace wmma {
struct row_major {}; struct col_major {}; struct matrix_a {}; struct matrix_b {}; struct accumulator {};
namespace precision { struct tf32 {}; struct u4 {}; struct s4 {}; struct b1 {}; }
enum layout_t { mem_row_major, mem_col_major };
template <class T> struct __storage { using type = T; };
template <> struct __storage<precision::tf32> { using type = float; };
template <class Use, int M, int N, int K> struct __elements { static constexpr int value = 16; };
template <int M, int N, int K> struct __elements<accumulator, M, N, K> { static constexpr int value = M * N / 32; };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  using element_type = typename __storage<T>::type; using storage_element_type = element_type;
  static constexpr int num_elements = __elements<Use, M, N, K>::value; static constexpr int num_storage_elements = num_elements;
  element_type x[num_elements];
};
template <class F, class T> void fill_fragment(F&, const T&); template <class F, class T> void load_matrix_sync(F&, const T*, unsigned); template <class F, class T> void load_matrix_sync(F&, const T*, unsigned, layout_t);
template <class T, class F> void store_matrix_sync(T*, const F&, unsigned, layout_t); template <class D, class A, class B, class C> void mma_sync(D&, const A&, const B&, const C&); template <class D, class A, class B, class C> void mma_sync(D&, const A&, const B&, const C&, bool);
float __float_to_tf32(float);
} }  // namespace nvcuda::wmma

namespace std {
enum class memory_order : int { relaxed, consume, acquire, release, acq_rel, seq_cst };
inline constexpr memory_order memory_order_relaxed = memory_order::relaxed, memory_order_consume = memory_order::consume, memory_order_acquire = memory_order::acquire;
inline constexpr memory_order memory_order_release = memory_order::release, memory_order_acq_rel = memory_order::acq_rel, memory_order_seq_cst = memory_order::seq_cst;
}
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
using ::std::memory_order; using ::std::memory_order_relaxed; using ::std::memory_order_acquire; using ::std::memory_order_release; using ::std::memory_order_acq_rel; using ::std::memory_order_seq_cst;
#define PORTER_ATOMIC_MEMBERS(T)                                                                                                   \
  T load(memory_order = memory_order_seq_cst) const; void store(T, memory_order = memory_order_seq_cst); T exchange(T, memory_order = memory_order_seq_cst); \
  bool compare_exchange_strong(T&, T, memory_order = memory_order_seq_cst); bool compare_exchange_weak(T&, T, memory_order = memory_order_seq_cst); \
  bool compare_exchange_strong(T&, T, memory_order, memory_order); bool compare_exchange_weak(T&, T, memory_order, memory_order);  \
  T fetch_add(T, memory_order = memory_order_seq_cst); T fetch_sub(T, memory_order = memory_order_seq_cst); T fetch_and(T, memory_order = memory_order_seq_cst); \
  T fetch_or(T, memory_order = memory_order_seq_cst); T fetch_xor(T, memory_order = memory_order_seq_cst); T fetch_max(T, memory_order = memory_order_seq_cst); \
  T fetch_min(T, memory_order = memory_order_seq_cst); operator T() const; T operator++(); T operator++(int); T operator+=(T); T operator-=(T);
template <class T, thread_scope S = thread_scope_system> struct atomic { T __v; atomic() = default; constexpr atomic(T v) : __v(v) {} PORTER_ATOMIC_MEMBERS(T) T operator=(T); };
template <class T, thread_scope S = thread_scope_system> struct atomic_ref { T* __p; explicit atomic_ref(T&); PORTER_ATOMIC_MEMBERS(T) T operator=(T); };
void atomic_thread_fence(memory_order, thread_scope = thread_scope_system);
struct __empty_completion {};
template <thread_scope S, class F = __empty_completion> struct barrier {
  using arrival_token = unsigned long long;
  unsigned long long __b; barrier() = default; barrier(ptrdiff_t); arrival_token arrive(ptrdiff_t = 1); void wait(arrival_token&&) const; void arrive_and_wait(); void arrive_and_drop(); void wait_parity(bool) const; bool try_wait(arrival_token&&) const;
};
template <thread_scope S, class F> void init(barrier<S, F>*, ptrdiff_t);
template <thread_scope S, unsigned N> struct pipeline_shared_state { alignas(16) unsigned char bytes[64]; };
template <thread_scope S> struct pipeline { void producer_acquire(); void producer_commit(); void consumer_wait(); void consumer_release(); };
pipeline<thread_scope_thread> make_pipeline(); template <class G, thread_scope S, unsigned N> pipeline<S> make_pipeline(const G&, pipeline_shared_state<S, N>*);
template <unsigned N, thread_scope S> void pipeline_consumer_wait_prior(pipeline<S>&); template <class T, class S, class P> void memcpy_async(T*, const T*, S, P&);
template <class G, class T, class S, class P> void memcpy_async(const G&, T*, const T*, S, P&); template <class P> void memcpy_async(void*, const void*, size_t, P&);
template <size_t A> struct aligned_size_t { size_t value; constexpr explicit aligned_size_t(size_t v) : value(v) {} constexpr operator size_t() const { return value; } };
template <class T, class U> constexpr auto ceil_div(T a, U b) { return (a + b - 1) / b; }
template <class T> constexpr T round_up(T a, T b) { return (a + b - 1) / b * b; } template <class T> constexpr T round_down(T a, T b) { return a / b * b; }
// The members are libcu++'s: kernels get such objects from the host. Dividing by the divisor kept there is what they do.
template <class T, bool NotOne = false> struct fast_mod_div {
  T __divisor; std::make_unsigned_t<T> __multiplier; unsigned __add; int __shift;
  explicit fast_mod_div(T); PORTER_BODY operator T() const { return __divisor; }
};
template <class T, class U, bool B> PORTER_BODY std::common_type_t<T, U> operator/(T n, fast_mod_div<U, B> d) { return (std::common_type_t<T, U>)n / (std::common_type_t<T, U>)d.__divisor; }
template <class T, class U, bool B> PORTER_BODY std::common_type_t<T, U> operator%(T n, fast_mod_div<U, B> d) { return (std::common_type_t<T, U>)n % (std::common_type_t<T, U>)d.__divisor; }
template <class T, class U, bool B> PORTER_BODY std::pair<std::common_type_t<T, U>, std::common_type_t<T, U>> div(T n, fast_mod_div<U, B> d) { return {n / d, n % d}; }
template <class T = void> struct maximum { constexpr T operator()(T a, T b) const { return a < b ? b : a; } };
template <> struct maximum<void> { template <class T, class U> constexpr auto operator()(const T& a, const U& b) const { return a < b ? b : a; } };
template <class T = void> struct minimum { constexpr T operator()(T a, T b) const { return b < a ? b : a; } };
template <> struct minimum<void> { template <class T, class U> constexpr auto operator()(const T& a, const U& b) const { return b < a ? b : a; } };
namespace device { bool barrier_try_wait(void*); template <class B> unsigned long long* barrier_native_handle(B&); }
namespace std {
template <class T> using atomic = ::cuda::atomic<T>;
using ::std::memory_order;
}
namespace ptx { unsigned get_sreg_laneid(); unsigned get_sreg_warpid(); unsigned get_sreg_smid(); }
}  // namespace cuda
#pragma clang force_cuda_host_device end
