// Cooperative groups passed on and kept by their base type.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int total(cg::thread_group g, int* s) {
  for (unsigned w = g.size() / 2; w > 0; w /= 2) {
    g.sync();
    if (g.thread_rank() < w) s[g.thread_rank()] += s[g.thread_rank() + w];
  }
  g.sync();
  int all = s[0];
  g.sync();
  return all;
}
__device__ int place(const cg::thread_group& g) { return g.thread_rank() * 100 + g.size(); }
__device__ int inside(const cg::thread_group& g) { return place(g) + 1; }
__global__ void base_groups(int* i, unsigned* u, float* f, int n) {
  __shared__ int s[64];
  int t = threadIdx.x;
  cg::thread_block block = cg::this_thread_block();
  s[t] = i[t];
  i[64 + t] = total(block, s);
  s[t] = i[t];
  auto tile = cg::tiled_partition<16>(block);
  i[128 + t] = total(tile, s + t / 16 * 16) + inside(tile);
  cg::thread_group eight = cg::tiled_partition(block, 8);
  i[192 + t] = inside(eight) + place(cg::tiled_partition(eight, 4));
  cg::thread_group any = cg::this_thread_block();
  u[t] = place(any) - any.thread_rank();
}
