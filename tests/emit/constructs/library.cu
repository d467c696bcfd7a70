// cub and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
namespace cg = cooperative_groups;
struct MD { float m; float d; };
struct Merge {
  __device__ MD operator()(MD a, MD b) const {
    bool bigger = a.m > b.m;
    MD x = bigger ? a : b;
    MD y = bigger ? b : a;
    MD r;
    r.m = x.m;
    r.d = x.d + y.d * 0.5f;
    return r;
  }
};
__global__ void reductions(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Float = cub::BlockReduce<float, 64>;
  __shared__ typename Float::TempStorage storage;
  float sum = Float(storage).Sum(f[t]);
  __syncthreads();
  float part = Float(storage).Sum(f[t + 64], 40);
  __syncthreads();
  float top = Float(storage).Reduce(f[t], [](float a, float b) { return a > b ? a : b; });
  __syncthreads();
  float product = Float(storage).Reduce(f[t] * 0.01f + 1.0f, [](float a, float b) { return a * b; });
  using Int = cub::BlockReduce<int, 64>;
  __shared__ typename Int::TempStorage ints;
  int total = Int(ints).Sum(i[t] & 1023);
  using Pair = cub::BlockReduce<MD, 64>;
  __shared__ typename Pair::TempStorage pairs;
  MD md;
  md.m = f[t];
  md.d = 1.0f;
  MD all = Pair(pairs).Reduce(md, Merge());
  if (t == 0) {
    f[200] = sum;
    f[201] = part;
    f[202] = top;
    f[203] = product;
    i[200] = total;
    f[204] = all.m;
    f[205] = all.d;
  }
}
__global__ void scans(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  using Scan = cub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage storage;
  int a, b, total;
  Scan(storage).ExclusiveSum(i[t] & 7, a);
  __syncthreads();
  Scan(storage).InclusiveSum(i[t + 64] & 15, b, total);
  i[t + 128] = a;
  i[t + 192] = b + total * 1000;
}
__global__ void groups(int* i, unsigned* u, float* f, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto half = cg::tiled_partition<16>(block);
  int t = block.thread_rank();
  i[t + 128] = cg::reduce(warp, i[t] & 255, cg::plus<int>());
  i[t + 192] = cg::reduce(half, i[t], cg::greater<int>());
  f[t + 64] = warp.shfl_xor(f[t], 5) + half.shfl_down(f[t], 2) + warp.shfl(f[t], 7);
  u[t + 64] = warp.ballot(i[t] > 0) + (warp.any(i[t] == 5) ? 1 : 0) + (half.all(i[t] != 0) ? 2 : 0);
  i[t + 256] = warp.meta_group_rank() * 1000 + half.meta_group_rank() * 100 + half.thread_rank() + warp.size();
  block.sync();
  i[t + 320] = block.size() + block.group_index().x + block.thread_index().x;
}
// Functions that the port writes as operators: their arguments are whole, and so is the result.
__global__ void functions_as_operators(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float x = f[t], y = f[t + 64];
  f[t + 256] = fdividef(x, 1.0f + expf(-y)) * y - x;
  f[t + 320] = 2.0f / fdividef(x - y, x + 3.0f);
  f[t + 384] = ldexpf(x + y, (t & 7) - 3) * 2.0f;
  i[t + 256] = __mul24(i[t] + t, t - 9) - __mul24(i[t + 64], 3 + t);
  u[t + 256] = 5u - __umul24(u[t] + 7u, u[t + 64] & 0xffu);
}
