"""Patterns of cub and cooperative groups, for the catalogue."""

from __future__ import annotations

from porter.patterns.idioms.pattern import Assumption, Pattern

PATTERNS = (
    Pattern(
        "cub_block_reduce",
        "a cub reduction or scan becomes the corpus function of that name",
        "patterns/library.py",
        """\
#include <cub/cub.cuh>

__global__ void total(const float* x, float* out) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = sum;
}
""",
        ("lib.block_reduce(",),
        assumes=(
            Assumption(
                "that the order of a floating-point sum is free",
                "source",
                "cub leaves it open",
                "numerics",
            ),
        ),
    ),
    Pattern(
        "cooperative_group",
        "handles of cooperative groups disappear, and their methods become warp and block operations",
        "patterns/library.py",
        """\
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void neighbours(int* x) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int next = warp.shfl_down(x[block.thread_rank()], 1);
  block.sync();
  x[block.thread_rank()] = next;
}
""",
        (
            "lib.shfl_down(",
            "cute.arch.sync_threads()",
        ),
        assumes=(
            Assumption(
                "that all threads of a group reach its methods together",
                "source",
                "cooperative groups require it",
                "sanitizer",
            ),
        ),
    ),
    Pattern(
        "cooperative_group_reduce",
        "a reduction over a tile of a cooperative group becomes the corpus function of that name",
        "patterns/library.py",
        """\
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void warp_total(const float* x, float* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const float sum = cg::reduce(warp, x[threadIdx.x], cg::plus<float>());
  if (warp.thread_rank() == 0) out[warp.meta_group_rank()] = sum;
}
""",
        ("lib.warp_sum(",),
        assumes=(
            Assumption(
                "that the order of a floating-point sum is free",
                "source",
                "cooperative groups leave it open",
                "numerics",
            ),
        ),
    ),
    Pattern(
        "grid_barrier",
        "a barrier over the grid stays one, and the port is launched cooperatively",
        "patterns/library.py",
        """\
#include <cooperative_groups.h>

__global__ void two_phases(int* x) {
  x[blockIdx.x] = 1;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) x[0] = x[gridDim.x - 1];
}
""",
        ("lib.grid_sync()",),
        assumes=(
            Assumption(
                "that all blocks fit on the device at once",
                "checked",
                "the driver refuses a cooperative launch that does not fit",
            ),
        ),
    ),
)
