// Block and warp collectives of cub, with the shape of their interface only: bodies are porter's business.
#pragma once
#include "porter_collectives.h"
#pragma clang force_cuda_host_device begin
#define CUB_NS_QUALIFIER ::cub
#define CUB_QUOTIENT_CEILING(x, y) (((x) + (y) - 1) / (y))
#define CUB_ROUND_UP_NEAREST(x, y) ((((x) + (y) - 1) / (y)) * (y))
#define CUB_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define CUB_MIN(a, b) (((a) < (b)) ? (a) : (b))
#define CUB_PTX_WARP_THREADS 32
#define CubDebugExit(e) (e)
namespace cub {
template <class T> struct Uninitialized { alignas(T) unsigned char storage[sizeof(T)]; T& Alias() { return *reinterpret_cast<T*>(storage); } };
struct NullType {};
template <class T> struct __storage_of { alignas(16) unsigned char bytes[sizeof(T)]; };
enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };
template <int N> struct __bits;
template <> struct __bits<1> { using type = unsigned char; };
template <> struct __bits<2> { using type = unsigned short; };
template <> struct __bits<4> { using type = unsigned int; };
template <> struct __bits<8> { using type = unsigned long long; };
template <class T> struct Traits {
  using UnsignedBits = typename __bits<sizeof(T)>::type;
  static constexpr bool PRIMITIVE = true;
  PORTER_BODY static constexpr UnsignedBits TwiddleIn(UnsignedBits key) { return porter::ordered_bits<T>(key); }
  PORTER_BODY static constexpr UnsignedBits TwiddleOut(UnsignedBits key) { return porter::key_bits<T>(key); }
  PORTER_BODY static T Lowest() { return std::numeric_limits<T>::lowest(); } PORTER_BODY static T Max() { return std::numeric_limits<T>::max(); }
};
template <class T> struct NumericTraits : Traits<T> {};
template <class T> struct FpLimits {
  PORTER_BODY static T Max() { return std::numeric_limits<T>::max(); } PORTER_BODY static T Lowest() { return std::numeric_limits<T>::lowest(); }
};
template <class K, class V> struct KeyValuePair { using Key = K; using Value = V; K key; V value; KeyValuePair() = default; KeyValuePair(const K& k, const V& v) : key(k), value(v) {} };
#define PORTER_CUB_OP(name, expr) struct name { template <class T, class U> constexpr auto operator()(const T& a, const U& b) const { return expr; } };
PORTER_CUB_OP(Sum, a + b) PORTER_CUB_OP(Max, a < b ? b : a) PORTER_CUB_OP(Min, b < a ? b : a) PORTER_CUB_OP(Equality, a == b)
PORTER_CUB_OP(Inequality, a != b) PORTER_CUB_OP(Difference, a - b) PORTER_CUB_OP(ArgMax, b.value > a.value ? b : a) PORTER_CUB_OP(ArgMin, b.value < a.value ? b : a)
#undef PORTER_CUB_OP
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS, BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED };
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

#define PORTER_CUB_STORAGE(name, bytes_)                          \
  struct TempStorage { alignas(16) unsigned char bytes[bytes_]; }; \
  name(); name(TempStorage&);                                      \
  name(TempStorage&, int);
template <class T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int Arch = 0> struct BlockReduce {
  PORTER_CUB_STORAGE(BlockReduce, sizeof(T) * ((X * Y * Z + 31) / 32 + 1))
  template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> T Sum(T); template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> T Sum(T, int);
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY T Sum(T in) { return porter::block_reduce<X, Y, Z>(in, X * Y * Z, porter::Sum()); }
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY T Sum(T in, int valid) { return porter::block_reduce<X, Y, Z>(in, valid, porter::Sum()); }
  // The bodies call a generic operator, which makes clang instantiate it.
  template <class Op> T Reduce(T in, Op op) { return op(in, in); }
  template <class Op> T Reduce(T in, Op op, int) { return op(in, in); }
  template <int N> PORTER_BODY T Sum(T (&in)[N]) { T part = porter::fold(in, porter::Sum()); return Sum(part); }
  template <class Op, int N> PORTER_BODY T Reduce(T (&in)[N], Op op) { T part = porter::fold(in, op); return Reduce(part, op); }
};
template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 0> struct BlockScan {
  PORTER_CUB_STORAGE(BlockScan, sizeof(T) * (X * Y * Z + 64))
  template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> void ExclusiveSum(T, T&); template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> void ExclusiveSum(T, T&, T&);
  template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> void InclusiveSum(T, T&); template <class U = T, std::enable_if_t<!porter::is_record<U>, int> = 0> void InclusiveSum(T, T&, T&);
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T(), porter::Sum()); }
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY void ExclusiveSum(T in, T& out, T& total) { ExclusiveScan(in, out, T(), porter::Sum(), total); }
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY void InclusiveSum(T in, T& out) { InclusiveScan(in, out, porter::Sum()); }
  template <class U = T, std::enable_if_t<porter::is_record<U>, int> = 0> PORTER_BODY void InclusiveSum(T in, T& out, T& total) { InclusiveScan(in, out, porter::Sum(), total); }
  template <class F, std::enable_if_t<!std::is_same<F, T>::value, int> = 0> PORTER_BODY void ExclusiveSum(T in, T& out, F& prefix) { ExclusiveScan(in, out, porter::Sum(), prefix); }
  template <class F, std::enable_if_t<!std::is_same<F, T>::value, int> = 0> PORTER_BODY void InclusiveSum(T in, T& out, F& prefix) { InclusiveScan(in, out, porter::Sum(), prefix); }
  template <int N> PORTER_BODY void ExclusiveSum(T (&in)[N], T (&out)[N]) { ExclusiveScan(in, out, T(), porter::Sum()); }
  template <int N> PORTER_BODY void ExclusiveSum(T (&in)[N], T (&out)[N], T& total) { ExclusiveScan(in, out, T(), porter::Sum(), total); }
  template <int N, class F> PORTER_BODY void ExclusiveSum(T (&in)[N], T (&out)[N], F& prefix) { ExclusiveScan(in, out, porter::Sum(), prefix); }
  template <int N> PORTER_BODY void InclusiveSum(T (&in)[N], T (&out)[N]) { InclusiveScan(in, out, porter::Sum()); }
  template <int N> PORTER_BODY void InclusiveSum(T (&in)[N], T (&out)[N], T& total) { InclusiveScan(in, out, porter::Sum(), total); }
  template <int N, class F> PORTER_BODY void InclusiveSum(T (&in)[N], T (&out)[N], F& prefix) { InclusiveScan(in, out, porter::Sum(), prefix); }
  // one value a thread
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, Op op) { T total; ExclusiveScan(in, out, op, total); }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, Op op, T& total) { T before; porter::block_scan<X, Y, Z>(in, before, total, op); out = before; }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, T init, Op op) { T total; ExclusiveScan(in, out, init, op, total); }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, T init, Op op, T& total) {
    T before;
    porter::block_scan<X, Y, Z>(in, before, total, op);
    if (porter::thread_index<X, Y>() == 0) out = init;
    else out = op(init, before);
  }
  template <class Op, class F> PORTER_BODY void ExclusiveScan(T in, T& out, Op op, F& prefix) {
    T before, total;
    porter::block_scan<X, Y, Z>(in, before, total, op);
    T start = total;
    if (porter::thread_index<X, Y>() < 32) start = prefix(total);
    start = porter::from_first<X, Y>(start);
    if (porter::thread_index<X, Y>() == 0) out = start;
    else out = op(start, before);
  }
  template <class Op> PORTER_BODY void InclusiveScan(T in, T& out, Op op) { T before, total; out = porter::block_scan<X, Y, Z>(in, before, total, op); }
  template <class Op> PORTER_BODY void InclusiveScan(T in, T& out, Op op, T& total) { T before; out = porter::block_scan<X, Y, Z>(in, before, total, op); }
  template <class Op, class F> PORTER_BODY void InclusiveScan(T in, T& out, Op op, F& prefix) {
    T before, total;
    T inclusive = porter::block_scan<X, Y, Z>(in, before, total, op);
    T start = total;
    if (porter::thread_index<X, Y>() < 32) start = prefix(total);
    start = porter::from_first<X, Y>(start);
    out = op(start, inclusive);
  }
  // several values a thread
  template <int N, class Op> PORTER_BODY void ExclusiveScan(T (&in)[N], T (&out)[N], T init, Op op) { T total; ExclusiveScan(in, out, init, op, total); }
  template <int N, class Op> PORTER_BODY void ExclusiveScan(T (&in)[N], T (&out)[N], T init, Op op, T& total) {
    T before;
    T part = porter::fold(in, op);
    porter::block_scan<X, Y, Z>(part, before, total, op);
    T start = init;
    if (porter::thread_index<X, Y>() > 0) start = op(init, before);
    porter::spread_exclusive(in, out, start, op);
  }
  template <int N, class Op, class F> PORTER_BODY void ExclusiveScan(T (&in)[N], T (&out)[N], Op op, F& prefix) {
    T before, total;
    T part = porter::fold(in, op);
    porter::block_scan<X, Y, Z>(part, before, total, op);
    T start = total;
    if (porter::thread_index<X, Y>() < 32) start = prefix(total);
    start = porter::from_first<X, Y>(start);
    if (porter::thread_index<X, Y>() > 0) start = op(start, before);
    porter::spread_exclusive(in, out, start, op);
  }
  template <int N, class Op> PORTER_BODY void InclusiveScan(T (&in)[N], T (&out)[N], Op op) { T total; InclusiveScan(in, out, op, total); }
  template <int N, class Op> PORTER_BODY void InclusiveScan(T (&in)[N], T (&out)[N], Op op, T& total) {
    T before;
    T part = porter::fold(in, op);
    porter::block_scan<X, Y, Z>(part, before, total, op);
    porter::spread_inclusive(in, out, before, porter::thread_index<X, Y>() == 0, op);
  }
  template <int N, class Op, class F> PORTER_BODY void InclusiveScan(T (&in)[N], T (&out)[N], Op op, F& prefix) {
    T before, total;
    T part = porter::fold(in, op);
    porter::block_scan<X, Y, Z>(part, before, total, op);
    T start = total;
    if (porter::thread_index<X, Y>() < 32) start = prefix(total);
    start = porter::from_first<X, Y>(start);
    if (porter::thread_index<X, Y>() > 0) start = op(start, before);
    porter::spread_inclusive(in, out, start, false, op);
  }
};
template <class T, int W = 32, int Arch = 0> struct WarpReduce {
  PORTER_CUB_STORAGE(WarpReduce, sizeof(T) * 2 * W)
  PORTER_BODY T Sum(T in) { return porter::warp_reduce<W>(in, W, porter::Sum()); } PORTER_BODY T Sum(T in, int valid) { return porter::warp_reduce<W>(in, valid, porter::Sum()); }
  template <class Op> PORTER_BODY T Reduce(T in, Op op) { return porter::warp_reduce<W>(in, W, op); } template <class Op> PORTER_BODY T Reduce(T in, Op op, int valid) { return porter::warp_reduce<W>(in, valid, op); }
  template <class F> T HeadSegmentedSum(T, F); template <class F> T TailSegmentedSum(T, F);
  template <class Op, class F> T HeadSegmentedReduce(T, F, Op); template <class Op, class F> T TailSegmentedReduce(T, F, Op);
};
template <class T, int W = 32, int Arch = 0> struct WarpScan {
  PORTER_CUB_STORAGE(WarpScan, sizeof(T) * 2 * W)
  PORTER_BODY void InclusiveSum(T in, T& out) { InclusiveScan(in, out, porter::Sum()); } PORTER_BODY void InclusiveSum(T in, T& out, T& total) { InclusiveScan(in, out, porter::Sum(), total); }
  PORTER_BODY void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T(), porter::Sum()); } PORTER_BODY void ExclusiveSum(T in, T& out, T& total) { ExclusiveScan(in, out, T(), porter::Sum(), total); }
  template <class Op> PORTER_BODY void InclusiveScan(T in, T& out, Op op) { T before; out = porter::warp_scan<W>(in, before, op); }
  template <class Op> PORTER_BODY void InclusiveScan(T in, T& out, Op op, T& total) { T before; T inclusive = porter::warp_scan<W>(in, before, op); total = Broadcast(inclusive, W - 1); out = inclusive; }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, Op op) { T before; porter::warp_scan<W>(in, before, op); out = before; }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, T init, Op op) { T total; ExclusiveScan(in, out, init, op, total); }
  template <class Op> PORTER_BODY void ExclusiveScan(T in, T& out, T init, Op op, T& total) {
    T before;
    T inclusive = porter::warp_scan<W>(in, before, op);
    total = Broadcast(inclusive, W - 1);
    if (porter::lane_index<W>() == 0) out = init;
    else out = op(init, before);
  }
  PORTER_BODY T Broadcast(T in, unsigned lane) { return __porter_shfl_sync(0xffffffffu, in, lane, W); }
};
template <class K, int X, int N, class V = NullType, int Bits = 4, bool M = true, BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int C = 0, int Y = 1, int Z = 1, int Arch = 0> struct BlockRadixSort {
  PORTER_CUB_STORAGE(BlockRadixSort, (sizeof(K) + sizeof(V)) * X * N + 1024)
PORTER_BODY void Sort(K (&keys)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, K, false, false>(keys, keys, begin, end, false); }
  PORTER_BODY void Sort(K (&keys)[N], V (&values)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, V, true, false>(keys, values, begin, end, false); }
  PORTER_BODY void SortDescending(K (&keys)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, K, false, true>(keys, keys, begin, end, false); }
  PORTER_BODY void SortDescending(K (&keys)[N], V (&values)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, V, true, true>(keys, values, begin, end, false); }
  PORTER_BODY void SortBlockedToStriped(K (&keys)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, K, false, false>(keys, keys, begin, end, true); }
  PORTER_BODY void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, V, true, false>(keys, values, begin, end, true); }
  PORTER_BODY void SortDescendingBlockedToStriped(K (&keys)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, K, false, true>(keys, keys, begin, end, true); }
  PORTER_BODY void SortDescendingBlockedToStriped(K (&keys)[N], V (&values)[N], int begin = 0, int end = sizeof(K) * 8) { porter::radix_sort<X, Y, Z, N, K, V, true, true>(keys, values, begin, end, true); }
};
template <class T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int Arch = 0> struct BlockLoad {
  PORTER_CUB_STORAGE(BlockLoad, sizeof(T) * X * N)
  template <class I> void Load(I, T (&)[N]); template <class I> void Load(I, T (&)[N], int); template <class I, class D> void Load(I, T (&)[N], int, D);
};
template <class T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int Arch = 0> struct BlockStore {
  PORTER_CUB_STORAGE(BlockStore, sizeof(T) * X * N)
  template <class I> void Store(I, T (&)[N]); template <class I> void Store(I, T (&)[N], int);
};
template <class T, int X, int N, bool Slice = false, int Y = 1, int Z = 1, int Arch = 0> struct BlockExchange {
  PORTER_CUB_STORAGE(BlockExchange, sizeof(T) * X * N)
  PORTER_BODY void StripedToBlocked(T (&in)[N], T (&out)[N]) { exchange(in, out, true); }
  PORTER_BODY void StripedToBlocked(T (&items)[N]) { exchange(items, items, true); }
  PORTER_BODY void BlockedToStriped(T (&in)[N], T (&out)[N]) { exchange(in, out, false); }
  PORTER_BODY void BlockedToStriped(T (&items)[N]) { exchange(items, items, false); }
  PORTER_BODY static void exchange(T (&in)[N], T (&out)[N], bool striped) {
    __shared__ T moved[X * Y * Z * N];
    int thread = porter::thread_index<X, Y>();
#pragma unroll
    for (int i = 0; i < N; ++i) moved[striped ? thread + i * X * Y * Z : thread * N + i] = in[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) out[i] = moved[striped ? thread * N + i : thread + i * X * Y * Z];
    __syncthreads();
  }
  template <class O> PORTER_BODY void ScatterToBlocked(T (&items)[N], O (&ranks)[N]) { scatter(items, ranks, false); }
  template <class O> PORTER_BODY void ScatterToStriped(T (&items)[N], O (&ranks)[N]) { scatter(items, ranks, true); }
  template <class O> PORTER_BODY static void scatter(T (&items)[N], O (&ranks)[N], bool striped) {
    int places[N];
#pragma unroll
    for (int i = 0; i < N; ++i) places[i] = int(ranks[i]);
    porter::scatter<X, Y, Z>(items, places, striped);
  }
};
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0> struct BlockAdjacentDifference {
  PORTER_CUB_STORAGE(BlockAdjacentDifference, sizeof(T) * (X * Y * Z + 1) * 2)
  template <int N, class O, class Op> PORTER_BODY void SubtractLeft(T (&in)[N], O (&out)[N], Op op) {
    T before = porter::neighbour<X, Y, Z>(in[0], in[N - 1], false);
    if (porter::thread_index<X, Y>() == 0) left(in, out, before, true, op);
    else left(in, out, before, false, op);
  }
  template <int N, class O, class Op> PORTER_BODY void SubtractLeft(T (&in)[N], O (&out)[N], Op op, T tile) {
    T before = porter::neighbour<X, Y, Z>(in[0], in[N - 1], false);
    if (porter::thread_index<X, Y>() == 0) before = tile;
    left(in, out, before, false, op);
  }
  template <int N, class O, class Op> PORTER_BODY static void left(T (&in)[N], O (&out)[N], T before, bool first, Op op) {
    T last = before;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T item = in[i];
      if (i == 0 && first) out[i] = O(item);
      else out[i] = O(op(item, last));
      last = item;
    }
  }
  template <int N, class O, class Op> PORTER_BODY void SubtractRight(T (&in)[N], O (&out)[N], Op op) {
    T after = porter::neighbour<X, Y, Z>(in[0], in[N - 1], true);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T item = in[i];
      T next = i < N - 1 ? in[i < N - 1 ? i + 1 : i] : after;
      if (i == N - 1 && porter::thread_index<X, Y>() == X * Y * Z - 1) out[i] = O(item);
      else out[i] = O(op(item, next));
    }
  }
  template <int N, class F, class Op> PORTER_BODY void FlagHeads(F (&flags)[N], T (&in)[N], Op op) {
    T before = porter::neighbour<X, Y, Z>(in[0], in[N - 1], false);
    heads(flags, in, before, porter::thread_index<X, Y>() == 0, op);
  }
  template <int N, class F, class Op> PORTER_BODY void FlagHeads(F (&flags)[N], T (&in)[N], Op op, T tile) {
    T before = porter::neighbour<X, Y, Z>(in[0], in[N - 1], false);
    if (porter::thread_index<X, Y>() == 0) before = tile;
    heads(flags, in, before, false, op);
  }
  template <int N, class F, class Op> PORTER_BODY static void heads(F (&flags)[N], T (&in)[N], T before, bool first, Op op) {
    T last = before;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i == 0 && first) flags[i] = F(1);
      else flags[i] = F(op(last, in[i]));
      last = in[i];
    }
  }
  template <int N, class F, class Op> PORTER_BODY void FlagTails(F (&flags)[N], T (&in)[N], Op op) {
    T after = porter::neighbour<X, Y, Z>(in[0], in[N - 1], true);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i == N - 1 && porter::thread_index<X, Y>() == X * Y * Z - 1) flags[i] = F(1);
      else if (i == N - 1) flags[i] = F(op(in[i], after));
      else flags[i] = F(op(in[i], in[i + 1 < N ? i + 1 : i]));
    }
  }
};
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0> struct BlockDiscontinuity : BlockAdjacentDifference<T, X, Y, Z> { using BlockAdjacentDifference<T, X, Y, Z>::BlockAdjacentDifference; };
template <class T, int X, int N, int Bins, BlockHistogramAlgorithm A = BLOCK_HISTO_SORT, int Y = 1, int Z = 1, int Arch = 0> struct BlockHistogram {
  PORTER_CUB_STORAGE(BlockHistogram, sizeof(T) * X * N + 4 * Bins)
  template <class C> PORTER_BODY void InitHistogram(C (&bins)[Bins]) {
    for (int i = porter::thread_index<X, Y>(); i < Bins; i += X * Y * Z) bins[i] = C(0);
  }
  template <class C> PORTER_BODY void Composite(T (&items)[N], C (&bins)[Bins]) {
#pragma unroll
    for (int i = 0; i < N; ++i) atomicAdd(&bins[items[i]], C(1));
  }
  template <class C> PORTER_BODY void Histogram(T (&items)[N], C (&bins)[Bins]) { InitHistogram(bins); __syncthreads(); Composite(items, bins); }
};
template <int X, int Bits, bool Desc, bool M = true, BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int C = 0, int Y = 1, int Z = 1, int Arch = 0> struct BlockRadixRank {
  static constexpr int BINS_TRACKED_PER_THREAD = ((1 << Bits) + X - 1) / X < 1 ? 1 : ((1 << Bits) + X - 1) / X;
  PORTER_CUB_STORAGE(BlockRadixRank, X * (1 << Bits) + 1024)
  template <class U, int N, class E> void RankKeys(U (&)[N], int (&)[N], E); template <class U, int N, class E> void RankKeys(U (&)[N], int (&)[N], E, int (&)[BINS_TRACKED_PER_THREAD]);
};
template <class K> struct BFEDigitExtractor { BFEDigitExtractor(unsigned = 0, unsigned = 0); template <class U> unsigned Digit(U) const; };
template <class K> struct ShiftDigitExtractor { ShiftDigitExtractor(unsigned = 0, unsigned = 0); template <class U> unsigned Digit(U) const; };
template <class K, int X, int N, class V = NullType, int Y = 1, int Z = 1> struct BlockMergeSort {
  PORTER_CUB_STORAGE(BlockMergeSort, (sizeof(K) + sizeof(V)) * (X * N + 1))
  template <class C> void Sort(K (&)[N], C); template <class C> void Sort(K (&)[N], V (&)[N], C); template <class C> void StableSort(K (&)[N], C);
};
template <class K, int N, int W = 32, class V = NullType> struct WarpMergeSort {
  PORTER_CUB_STORAGE(WarpMergeSort, (sizeof(K) + sizeof(V)) * (W * N + 1))
  template <class C> void Sort(K (&)[N], C); template <class C> void Sort(K (&)[N], V (&)[N], C);
};
#undef PORTER_CUB_STORAGE
template <class T, bool Memory = true> struct ScanTileState { static constexpr int TILE_STATUS_PADDING = 32; cudaError Init(int, void*, size_t); void InitializeStatus(int); void SetInclusive(int, T); void SetPartial(int, T); };
template <class T, class Op, class S, int Arch = 0> struct TilePrefixCallbackOp {
  struct TempStorage { alignas(16) unsigned char bytes[128]; };
  TilePrefixCallbackOp(S&, TempStorage&, Op, int = 0); T operator()(T); T GetInclusivePrefix(); T GetExclusivePrefix(); T GetBlockAggregate();
};
template <CacheLoadModifier M, class T> PORTER_BODY T ThreadLoad(const T* p) {
  if constexpr (M == LOAD_VOLATILE || M == LOAD_CV) return *const_cast<const volatile T*>(p);
  else return *p;
}
template <CacheStoreModifier M, class T> PORTER_BODY void ThreadStore(T* p, T value) {
  if constexpr (M == STORE_VOLATILE) *const_cast<volatile T*>(p) = value;
  else *p = value;
}
template <CacheLoadModifier M, class T, class O = ptrdiff_t> struct CacheModifiedInputIterator { CacheModifiedInputIterator(const T*); T operator[](O) const; T operator*() const; CacheModifiedInputIterator operator+(O) const; };
template <class T, class C, class O = ptrdiff_t> struct TransformInputIterator { TransformInputIterator(O, C); T operator[](ptrdiff_t) const; T operator*() const; TransformInputIterator operator+(ptrdiff_t) const; };
template <class T> struct CountingInputIterator { CountingInputIterator(T); T operator[](ptrdiff_t) const; T operator*() const; };
template <class T> struct DoubleBuffer { T* d_buffers[2]; int selector; DoubleBuffer(); DoubleBuffer(T*, T*); T* Current(); T* Alternate(); };
unsigned LaneId(); unsigned WarpId(); int RowMajorTid(int, int, int); int SHFL_IDX_SYNC(int, int, unsigned);
template <int W, class T> T ShuffleIndex(T, int, unsigned); template <int W, class T> T ShuffleUp(T, int, int, unsigned); template <int W, class T> T ShuffleDown(T, int, int, unsigned);
#define PORTER_DIRECT(Load, Store, TEMPLATE, at)                                                                          \
  template <TEMPLATE class I, class T, int N> PORTER_BODY void Load(int thread, I from, T (&items)[N]) {                  \
    for (int i = 0; i < N; ++i) items[i] = from[at];                                                                      \
  }                                                                                                                       \
  template <TEMPLATE class I, class T, int N> PORTER_BODY void Load(int thread, I from, T (&items)[N], int valid) {       \
    for (int i = 0; i < N; ++i) { if (at < valid) items[i] = from[at]; }                                                  \
  }                                                                                                                       \
  template <TEMPLATE class I, class T, int N, class D> PORTER_BODY void Load(int thread, I from, T (&items)[N], int valid, D other) { \
    for (int i = 0; i < N; ++i) { items[i] = other; if (at < valid) items[i] = from[at]; }                                \
  }                                                                                                                       \
  template <TEMPLATE class I, class T, int N> PORTER_BODY void Store(int thread, I to, T (&items)[N]) {                   \
    for (int i = 0; i < N; ++i) to[at] = items[i];                                                                        \
  }                                                                                                                       \
  template <TEMPLATE class I, class T, int N> PORTER_BODY void Store(int thread, I to, T (&items)[N], int valid) {        \
    for (int i = 0; i < N; ++i) { if (at < valid) to[at] = items[i]; }                                                    \
  }
#define PORTER_STRIPES int THREADS,
PORTER_DIRECT(LoadDirectStriped, StoreDirectStriped, PORTER_STRIPES, thread + i * THREADS)
PORTER_DIRECT(LoadDirectBlocked, StoreDirectBlocked, , thread * N + i)
#undef PORTER_DIRECT
#undef PORTER_STRIPES
#define PORTER_CUB_DEVICE(name, ...) struct name { __VA_ARGS__ };
#define PORTER_CUB_STATIC(f) template <class... A> static cudaError f(void*, size_t&, A&&...);
PORTER_CUB_DEVICE(DeviceScan, PORTER_CUB_STATIC(ExclusiveSum) PORTER_CUB_STATIC(InclusiveSum) PORTER_CUB_STATIC(ExclusiveScan) PORTER_CUB_STATIC(InclusiveScan))
PORTER_CUB_DEVICE(DeviceReduce, PORTER_CUB_STATIC(Sum) PORTER_CUB_STATIC(Max) PORTER_CUB_STATIC(Min) PORTER_CUB_STATIC(Reduce) PORTER_CUB_STATIC(ArgMax) PORTER_CUB_STATIC(ReduceByKey))
PORTER_CUB_DEVICE(DeviceRadixSort, PORTER_CUB_STATIC(SortPairs) PORTER_CUB_STATIC(SortPairsDescending) PORTER_CUB_STATIC(SortKeys) PORTER_CUB_STATIC(SortKeysDescending))
PORTER_CUB_DEVICE(DeviceSegmentedRadixSort, PORTER_CUB_STATIC(SortPairs) PORTER_CUB_STATIC(SortPairsDescending) PORTER_CUB_STATIC(SortKeys))
PORTER_CUB_DEVICE(DeviceSegmentedReduce, PORTER_CUB_STATIC(Sum) PORTER_CUB_STATIC(Max) PORTER_CUB_STATIC(Reduce))
PORTER_CUB_DEVICE(DeviceSelect, PORTER_CUB_STATIC(Flagged) PORTER_CUB_STATIC(If) PORTER_CUB_STATIC(Unique))
PORTER_CUB_DEVICE(DeviceHistogram, PORTER_CUB_STATIC(HistogramEven) PORTER_CUB_STATIC(HistogramRange))
PORTER_CUB_DEVICE(DeviceRunLengthEncode, PORTER_CUB_STATIC(Encode))
#undef PORTER_CUB_DEVICE
#undef PORTER_CUB_STATIC
}  // namespace cub
#pragma clang force_cuda_host_device end
