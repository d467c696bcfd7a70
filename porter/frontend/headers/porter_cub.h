// Block and warp collectives of cub, with the shape of their interface only: bodies are porter's business.
#pragma once
#include "porter_device.h"
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
  static UnsignedBits TwiddleIn(UnsignedBits); static UnsignedBits TwiddleOut(UnsignedBits);
  static T Lowest(); static T Max();
};
template <class T> struct NumericTraits : Traits<T> {};
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
  T Sum(T); T Sum(T, int); template <int N> T Sum(T (&)[N]);
  template <class Op> T Reduce(T, Op); template <class Op> T Reduce(T, Op, int); template <class Op, int N> T Reduce(T (&)[N], Op);
};
template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 0> struct BlockScan {
  PORTER_CUB_STORAGE(BlockScan, sizeof(T) * (X * Y * Z + 64))
  void ExclusiveSum(T, T&); void ExclusiveSum(T, T&, T&); template <class F> void ExclusiveSum(T, T&, F&);
  template <int N> void ExclusiveSum(T (&)[N], T (&)[N]); template <int N> void ExclusiveSum(T (&)[N], T (&)[N], T&);
  template <int N, class F> void ExclusiveSum(T (&)[N], T (&)[N], F&);
  void InclusiveSum(T, T&); void InclusiveSum(T, T&, T&); template <class F> void InclusiveSum(T, T&, F&);
  template <int N> void InclusiveSum(T (&)[N], T (&)[N]); template <int N> void InclusiveSum(T (&)[N], T (&)[N], T&);
  template <int N, class F> void InclusiveSum(T (&)[N], T (&)[N], F&);
  template <class Op> void ExclusiveScan(T, T&, Op); template <class Op> void ExclusiveScan(T, T&, T, Op); template <class Op> void ExclusiveScan(T, T&, T, Op, T&);
  template <int N, class Op> void ExclusiveScan(T (&)[N], T (&)[N], T, Op); template <int N, class Op> void ExclusiveScan(T (&)[N], T (&)[N], T, Op, T&);
  template <class Op> void InclusiveScan(T, T&, Op); template <class Op> void InclusiveScan(T, T&, Op, T&);
  template <int N, class Op> void InclusiveScan(T (&)[N], T (&)[N], Op); template <int N, class Op> void InclusiveScan(T (&)[N], T (&)[N], Op, T&);
  template <int N, class Op, class F> void InclusiveScan(T (&)[N], T (&)[N], Op, F&);
};
template <class T, int W = 32, int Arch = 0> struct WarpReduce {
  PORTER_CUB_STORAGE(WarpReduce, sizeof(T) * 2 * W)
  T Sum(T); T Sum(T, int); template <class Op> T Reduce(T, Op); template <class Op> T Reduce(T, Op, int);
  template <class F> T HeadSegmentedSum(T, F); template <class F> T TailSegmentedSum(T, F);
  template <class Op, class F> T HeadSegmentedReduce(T, F, Op); template <class Op, class F> T TailSegmentedReduce(T, F, Op);
};
template <class T, int W = 32, int Arch = 0> struct WarpScan {
  PORTER_CUB_STORAGE(WarpScan, sizeof(T) * 2 * W)
  void InclusiveSum(T, T&); void InclusiveSum(T, T&, T&); void ExclusiveSum(T, T&); void ExclusiveSum(T, T&, T&);
  template <class Op> void InclusiveScan(T, T&, Op); template <class Op> void InclusiveScan(T, T&, Op, T&);
  template <class Op> void ExclusiveScan(T, T&, Op); template <class Op> void ExclusiveScan(T, T&, T, Op); template <class Op> void ExclusiveScan(T, T&, T, Op, T&);
  T Broadcast(T, unsigned);
};
template <class K, int X, int N, class V = NullType, int Bits = 4, bool M = true, BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int C = 0, int Y = 1, int Z = 1, int Arch = 0> struct BlockRadixSort {
  PORTER_CUB_STORAGE(BlockRadixSort, (sizeof(K) + sizeof(V)) * X * N + 1024)
  void Sort(K (&)[N], int = 0, int = sizeof(K) * 8); void Sort(K (&)[N], V (&)[N], int = 0, int = sizeof(K) * 8);
  void SortDescending(K (&)[N], int = 0, int = sizeof(K) * 8); void SortDescending(K (&)[N], V (&)[N], int = 0, int = sizeof(K) * 8);
  void SortBlockedToStriped(K (&)[N], int = 0, int = sizeof(K) * 8); void SortBlockedToStriped(K (&)[N], V (&)[N], int = 0, int = sizeof(K) * 8);
  void SortDescendingBlockedToStriped(K (&)[N], int = 0, int = sizeof(K) * 8); void SortDescendingBlockedToStriped(K (&)[N], V (&)[N], int = 0, int = sizeof(K) * 8);
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
  void StripedToBlocked(T (&)[N]); void StripedToBlocked(T (&)[N], T (&)[N]); void BlockedToStriped(T (&)[N]); void BlockedToStriped(T (&)[N], T (&)[N]);
  template <class O> void ScatterToBlocked(T (&)[N], O (&)[N]); template <class O> void ScatterToStriped(T (&)[N], O (&)[N]);
};
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0> struct BlockAdjacentDifference {
  PORTER_CUB_STORAGE(BlockAdjacentDifference, sizeof(T) * (X * Y * Z + 1) * 2)
  template <int N, class O, class Op> void SubtractLeft(T (&)[N], O (&)[N], Op); template <int N, class O, class Op> void SubtractLeft(T (&)[N], O (&)[N], Op, T);
  template <int N, class O, class Op> void SubtractRight(T (&)[N], O (&)[N], Op);
  template <int N, class F, class Op> void FlagHeads(F (&)[N], T (&)[N], Op); template <int N, class F, class Op> void FlagHeads(F (&)[N], T (&)[N], Op, T);
  template <int N, class F, class Op> void FlagTails(F (&)[N], T (&)[N], Op);
};
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0> struct BlockDiscontinuity : BlockAdjacentDifference<T, X, Y, Z> { using BlockAdjacentDifference<T, X, Y, Z>::BlockAdjacentDifference; };
template <class T, int X, int N, int Bins, BlockHistogramAlgorithm A = BLOCK_HISTO_SORT, int Y = 1, int Z = 1, int Arch = 0> struct BlockHistogram {
  PORTER_CUB_STORAGE(BlockHistogram, sizeof(T) * X * N + 4 * Bins)
  template <class C> void InitHistogram(C (&)[Bins]); template <class C> void Histogram(T (&)[N], C (&)[Bins]); template <class C> void Composite(T (&)[N], C (&)[Bins]);
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
template <CacheLoadModifier M, class T> T ThreadLoad(const T*);
template <CacheStoreModifier M, class T> void ThreadStore(T*, T);
template <CacheLoadModifier M, class T, class O = ptrdiff_t> struct CacheModifiedInputIterator { CacheModifiedInputIterator(const T*); T operator[](O) const; T operator*() const; CacheModifiedInputIterator operator+(O) const; };
template <class T, class C, class O = ptrdiff_t> struct TransformInputIterator { TransformInputIterator(O, C); T operator[](ptrdiff_t) const; T operator*() const; TransformInputIterator operator+(ptrdiff_t) const; };
template <class T> struct CountingInputIterator { CountingInputIterator(T); T operator[](ptrdiff_t) const; T operator*() const; };
template <class T> struct DoubleBuffer { T* d_buffers[2]; int selector; DoubleBuffer(); DoubleBuffer(T*, T*); T* Current(); T* Alternate(); };
unsigned LaneId(); unsigned WarpId(); int RowMajorTid(int, int, int); int SHFL_IDX_SYNC(int, int, unsigned);
template <int W, class T> T ShuffleIndex(T, int, unsigned); template <int W, class T> T ShuffleUp(T, int, int, unsigned); template <int W, class T> T ShuffleDown(T, int, int, unsigned);
template <class I, class T, int N> void LoadDirectStriped(int, I, T (&)[N]); template <class I, class T, int N> void LoadDirectBlocked(int, I, T (&)[N]);
template <class I, class T, int N> void StoreDirectStriped(int, I, T (&)[N]); template <class I, class T, int N> void StoreDirectBlocked(int, I, T (&)[N]);
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
