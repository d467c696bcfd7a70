// Scans, sorts, exchanges and neighbours of cub: bodies that the prelude writes out.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
struct Run { int total; __device__ int operator()(int v) { int old = total; total += v; return old; } };
struct Pair { float a; float b; };
struct Join { __device__ Pair operator()(const Pair& x, const Pair& y) const { return {x.a * y.a, y.a * x.b + y.b}; } };
__global__ void scans(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Scan = cub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage storage;
  int items[4];
  for (int k = 0; k < 4; ++k) items[k] = i[t * 4 + k] & 255;
  int total;
  Scan(storage).ExclusiveSum(items, items, total);
  for (int k = 0; k < 4; ++k) i[t * 4 + k] = items[k];
  int m;
  Scan(storage).InclusiveScan(i[t + 512], m, [](int a, int b) { return a > b ? a : b; });
  i[t + 512] = m;
  Run run{100};
  int out;
  Scan(storage).InclusiveSum(i[t + 600] & 7, out, run);
  i[t + 600] = out;
  using Pairs = cub::BlockScan<Pair, 64, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Pairs::TempStorage ps;
  Pair p{f[t] > 0 ? 1.0f : 0.5f, (float)(t & 3)};
  Pairs(ps).InclusiveScan(p, p, Join());
  f[t] = p.a; f[t + 64] = p.b;
  if (t == 0) i[1000] = total;
}
__global__ void sorts(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Sort = cub::BlockRadixSort<float, 64, 4, int>;
  __shared__ typename Sort::TempStorage storage;
  float keys[4]; int values[4];
  for (int k = 0; k < 4; ++k) { keys[k] = f[t * 4 + k]; values[k] = t * 4 + k; }
  Sort(storage).SortDescending(keys, values);
  for (int k = 0; k < 4; ++k) { f[t * 4 + k] = keys[k]; i[t * 4 + k] = values[k]; }
  using Ex = cub::BlockExchange<unsigned, 64, 4>;
  __shared__ typename Ex::TempStorage es;
  unsigned e[4];
  for (int k = 0; k < 4; ++k) e[k] = u[t * 4 + k];
  Ex(es).BlockedToStriped(e);
  for (int k = 0; k < 4; ++k) u[t * 4 + k] = e[k];
}
struct Less { __device__ unsigned operator()(unsigned a, unsigned b) const { return a < b ? a : b; } };
struct Minus { __device__ int operator()(int a, int b) const { return a - b; } };
__global__ void warps(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Reduce = cub::WarpReduce<float>;
  __shared__ typename Reduce::TempStorage rs[2];
  float sum = Reduce(rs[t / 32]).Sum(f[t]);
  float part = Reduce(rs[t / 32]).Sum(f[t + 64], 20);
  using Eight = cub::WarpReduce<unsigned, 8>;
  __shared__ typename Eight::TempStorage es[8];
  unsigned least = Eight(es[t / 8]).Reduce(u[t], Less());
  if (t % 32 == 0) { f[t + 200] = sum; f[t + 201] = part; }
  if (t % 8 == 0) u[t + 200] = least;
  using Scan = cub::WarpScan<int>;
  __shared__ typename Scan::TempStorage ss[2];
  int before, all, upto;
  Scan(ss[t / 32]).ExclusiveSum(i[t] & 1023, before, all);
  Scan(ss[t / 32]).InclusiveScan(i[t + 64], upto, [](int a, int b) { return a > b ? a : b; });
  using Diff = cub::BlockAdjacentDifference<int, 64>;
  __shared__ typename Diff::TempStorage ds;
  int items[3], out[3];
  for (int k = 0; k < 3; ++k) items[k] = i[t * 3 + k + 128];
  Diff(ds).SubtractLeft(items, out, Minus());
  i[t] = before; i[t + 64] = all; i[t + 400] = upto;
  for (int k = 0; k < 3; ++k) i[t * 3 + k + 128] = out[k];
}
__global__ void keys(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Sort = cub::BlockRadixSort<int, 64, 2>;
  __shared__ typename Sort::TempStorage storage;
  int k[2] = {i[2 * t], i[2 * t + 1]};
  Sort(storage).SortBlockedToStriped(k);
  i[t] = k[0];
  i[t + 64] = k[1];
  __syncthreads();
  unsigned low[2] = {u[2 * t], u[2 * t + 1]};
  using Bits = cub::BlockRadixSort<unsigned, 64, 2>;
  __shared__ typename Bits::TempStorage bits;
  Bits(bits).Sort(low, 4, 12);
  u[2 * t] = low[0];
  u[2 * t + 1] = low[1];
}
template <class T> struct Counted {
  T value;
  int count;
  __device__ Counted operator+(const Counted& o) const { return {value + o.value, count + o.count}; }
};
__global__ void sums_of_records(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Reduce = cub::BlockReduce<Counted<float>, 64, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename Reduce::TempStorage storage;
  Counted<float> all = Reduce(storage).Sum({f[t], f[t] > 0 ? 1 : 0});
  __syncthreads();
  Counted<float> some = Reduce(storage).Sum({f[t + 64], i[t] & 3}, 41);
  if (t == 0) {
    f[0] = all.value; i[0] = all.count;
    f[1] = some.value; i[1] = some.count;
  }
  using Scan = cub::BlockScan<Counted<int>, 64, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage ss;
  Counted<int> out;
  Scan(ss).InclusiveSum({i[t + 64] & 15, 1}, out);
  i[t + 64] = out.value * 64 + out.count;
  f[t + 128] = nextafterf(f[t + 128], f[t + 192]);
}
__global__ void generic_lambdas(int* i, unsigned* u, float* f, int n) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int t = threadIdx.x;
  float largest = Reduce{storage}.Reduce(f[t], [](auto a, auto b) { return a > b ? a : b; });
  __syncthreads();
  float some = Reduce(storage).Reduce(f[t], [](auto a, auto b) { return a < b ? a : b; }, 40);
  if (t == 0) {
    f[64] = largest;
    f[65] = some;
  }
}
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
__global__ void counts_of_valid_threads(int* i, unsigned* u, float* f, int n) {
  using Reduce = cub::BlockReduce<float, 64>;
  using Count = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ typename Count::TempStorage counts;
  int t = threadIdx.x;
  for (int k = 0; k < 6; k++) {  // thread 0 counts even where none is valid
    int valid = k == 0 ? -1 : k == 1 ? 0 : k == 2 ? 1 : k == 3 ? 33 : k == 4 ? 64 : 70;
    float largest = Reduce(storage).Reduce(-f[t], Larger(), valid);
    __syncthreads();
    float least = Reduce(storage).Reduce(f[t], [](auto a, auto b) { return a < b ? a : b; }, valid);
    __syncthreads();
    float sum = Reduce(storage).Sum(f[t + 64], valid);
    int all = Count(counts).Sum(i[t] & 255, valid);
    __syncthreads();
    if (t == 0) {
      f[128 + 4 * k] = largest;
      f[129 + 4 * k] = least;
      f[130 + 4 * k] = sum;
      i[128 + k] = all;
    }
  }
}
