// What cub's block and warp collectives do, written out: bodies that porter lowers like the user's own functions.
#pragma once
#include "porter_device.h"
#include "porter_std.h"
#pragma clang force_cuda_host_device begin
template <class T> T __porter_shfl_sync(unsigned, T, int, int);
template <class T> T __porter_shfl_up_sync(unsigned, T, unsigned, int);
template <class T> T __porter_shfl_down_sync(unsigned, T, unsigned, int);
namespace cub {
namespace porter {
struct Sum { template <class T> PORTER_BODY T operator()(const T& a, const T& b) const { return T(a + b); } };
template <int X, int Y> PORTER_BODY int thread_index() { return threadIdx.x + X * (threadIdx.y + Y * threadIdx.z); }
template <int W> PORTER_BODY int lane_index() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % W;
}

// Inclusive scan of groups of W lanes, in lane order; `before` is the fold of the lanes before this one.
template <int W, class T, class Op> PORTER_BODY T warp_scan(T value, T& before, Op op) {
  int lane = lane_index<W>();
  T inclusive = value;
#pragma unroll
  for (int step = 1; step < W; step *= 2) {
    T other = __porter_shfl_up_sync(0xffffffffu, inclusive, step, W);
    if (lane >= step) inclusive = op(other, inclusive);
  }
  before = __porter_shfl_up_sync(0xffffffffu, inclusive, 1, W);
  return inclusive;
}

// Fold of groups of W lanes (the first `valid` of each), as shuffles down by 1, 2, 4, ... associate; whole in lane 0.
template <int W, class T, class Op> PORTER_BODY T warp_reduce(T value, int valid, Op op) {
  int lane = lane_index<W>();
  T result = value;
#pragma unroll
  for (int step = 1; step < W; step *= 2) {
    T other = __porter_shfl_down_sync(0xffffffffu, result, step, W);
    if (lane + step < valid) result = op(result, other);
  }
  return result;
}

// Inclusive scan of one value a thread, in thread order; `before` is the fold of the threads before this one (undefined in
// thread 0), `total` that of the block.
template <int X, int Y, int Z, class T, class Op> PORTER_BODY T block_scan(T value, T& before, T& total, Op op) {
  __shared__ T warps[(X * Y * Z + 31) / 32];
  int thread = thread_index<X, Y>();
  int lane = thread % 32;
  int warp = thread / 32;
  T inclusive = warp_scan<32>(value, before, op);
  if (lane == 31 || thread == X * Y * Z - 1) warps[warp] = inclusive;
  __syncthreads();
  total = warps[0];
  T prefix = total;
#pragma unroll
  for (int w = 1; w < (X * Y * Z + 31) / 32; ++w) {
    if (w == warp) prefix = total;
    total = op(total, warps[w]);
  }
  if (warp > 0) {
    if (lane > 0) before = op(prefix, before);
    else before = prefix;
    inclusive = op(prefix, inclusive);
  }
  __syncthreads();
  return inclusive;
}

// Fold of the first `valid` threads of the block, in every thread: inside each warp, then the warps in order.
template <int X, int Y, int Z, class T, class Op> PORTER_BODY T block_reduce(T value, int valid, Op op) {
  __shared__ T warps[(X * Y * Z + 31) / 32];
  int thread = thread_index<X, Y>();
  int warp = thread / 32;
  T result = warp_reduce<32>(value, valid - warp * 32, op);
  if (thread % 32 == 0) warps[warp] = result;
  __syncthreads();
  result = warps[0];
  for (int w = 1; w < (valid + 31) / 32; ++w) result = op(result, warps[w]);
  __syncthreads();
  return result;
}
// Classes of the user's own, whose operator+ only a call instantiates. Scalars (and half) are porter.patterns' business.
template <class T> constexpr bool is_record = __is_class(T) && sizeof(T) > 2;

// The value of thread 0 in every thread.
template <int X, int Y, class T> PORTER_BODY T from_first(T value) {
  __shared__ T first[1];
  if (thread_index<X, Y>() == 0) first[0] = value;
  __syncthreads();
  T result = first[0];
  __syncthreads();
  return result;
}

template <int N, class T, class Op> PORTER_BODY T fold(T (&items)[N], Op op) {
  T result = items[0];
#pragma unroll
  for (int i = 1; i < N; ++i) result = op(result, items[i]);
  return result;
}

// Inclusive scan of N items a thread; `first` says whether `prefix` holds something that comes before them.
template <int N, class T, class Op> PORTER_BODY void spread_inclusive(T (&in)[N], T (&out)[N], T prefix, bool first, Op op) {
  T running = in[0];
  if (!first) running = op(prefix, running);
  out[0] = running;
#pragma unroll
  for (int i = 1; i < N; ++i) {
    running = op(running, in[i]);
    out[i] = running;
  }
}
template <int N, class T, class Op> PORTER_BODY void spread_exclusive(T (&in)[N], T (&out)[N], T prefix, Op op) {
  T running = prefix;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    T item = in[i];
    out[i] = running;
    running = op(running, item);
  }
}

// The bits of a key in an order that unsigned comparison gives.
template <class T, class U> PORTER_BODY constexpr U ordered_bits(U bits) {
  constexpr U high = U(1) << (8 * sizeof(U) - 1);
  if constexpr (std::is_unsigned<T>::value) return bits;
  else if constexpr (std::is_integral<T>::value) return U(bits ^ high);
  else return U((bits & high) ? ~bits : bits ^ high);
}
template <class T, class U> PORTER_BODY constexpr U key_bits(U ordered) {
  constexpr U high = U(1) << (8 * sizeof(U) - 1);
  if constexpr (std::is_unsigned<T>::value) return ordered;
  else if constexpr (std::is_integral<T>::value) return U(ordered ^ high);
  else return U((ordered & high) ? ordered ^ high : ~ordered);
}
// What a key is sorted by: -0.0 and 0.0 of floating types are equal.
template <class T, class U> PORTER_BODY U sort_bits(T key) {
  U bits = ordered_bits<T, U>(std::bit_cast<U>(key));
  if constexpr (!std::is_integral<T>::value) {
    constexpr U high = U(1) << (8 * sizeof(U) - 1);
    if (bits == U(high - 1)) bits = high;
  }
  return bits;
}

// Ranks of a stable partition: items whose flag is not set come first, in order.
template <int X, int Y, int Z, int N> PORTER_BODY void split_ranks(bool (&flags)[N], int (&ranks)[N]) {
  int thread = thread_index<X, Y>();
  int zeros = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) zeros += flags[i] ? 0 : 1;
  int before, total;
  block_scan<X, Y, Z>(zeros, before, total, Sum());
  int low = thread == 0 ? 0 : before;
  int high = total + thread * N - low;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (flags[i]) ranks[i] = high++;
    else ranks[i] = low++;
  }
}

template <int X, int Y, int Z, int N, class T> PORTER_BODY void scatter(T (&items)[N], int (&ranks)[N], bool striped) {
  __shared__ T moved[X * Y * Z * N];
  int thread = thread_index<X, Y>();
#pragma unroll
  for (int i = 0; i < N; ++i) moved[ranks[i]] = items[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) items[i] = moved[striped ? thread + i * X * Y * Z : thread * N + i];
  __syncthreads();
}

// Stable sort of the block's keys by bits [begin, end), and of values with them when there are any.
template <int X, int Y, int Z, int N, class K, class V, bool Values, bool Descending>
PORTER_BODY void radix_sort(K (&keys)[N], V (&values)[N], int begin, int end, bool striped) {
  using U = std::conditional_t<sizeof(K) == 1, unsigned char, std::conditional_t<sizeof(K) == 2, unsigned short,
    std::conditional_t<sizeof(K) == 4, unsigned, unsigned long long>>>;
  for (int bit = begin; bit < end; ++bit) {
    bool flags[N];
    int ranks[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      bool set = (sort_bits<K, U>(keys[i]) >> bit) & 1;
      flags[i] = Descending ? !set : set;
    }
    split_ranks<X, Y, Z>(flags, ranks);
    scatter<X, Y, Z>(keys, ranks, false);
    if constexpr (Values) scatter<X, Y, Z>(values, ranks, false);
  }
  if (striped) {
    int ranks[N];
    int thread = thread_index<X, Y>();
#pragma unroll
    for (int i = 0; i < N; ++i) ranks[i] = thread * N + i;
    scatter<X, Y, Z>(keys, ranks, true);
    if constexpr (Values) scatter<X, Y, Z>(values, ranks, true);
  }
}

// The item before each thread's first (`at` 0) or after its last (`at` 1); undefined at the ends of the block.
template <int X, int Y, int Z, class T> PORTER_BODY T neighbour(T first, T last, bool next) {
  __shared__ T edge[X * Y * Z];
  int thread = thread_index<X, Y>();
  edge[thread] = next ? first : last;
  __syncthreads();
  int other = next ? (thread + 1 < X * Y * Z ? thread + 1 : thread) : (thread > 0 ? thread - 1 : 0);
  T result = edge[other];
  __syncthreads();
  return result;
}
}  // namespace porter
}  // namespace cub
#pragma clang force_cuda_host_device end
