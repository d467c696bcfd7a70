// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Dispatch of tokens to experts in one cooperative launch: count, meet at a grid barrier, scatter.

Slot i = (token i / topk, choice i % topk) goes to expert topk_ids[i]; ids outside
[0, num_experts) are dropped. The result is stable, slots of one expert keep their order:

    expert_offsets  [num_experts + 1], first row of each expert in dispatched
    dst_row         [slots], where a slot went, -1 if it was dropped
    dispatched      the tokens' rows in expert order

Phase 1: block b owns a contiguous range of slots and leaves its histogram in
block_counts[b, :]. Phase 2, after the barrier: every block can see every histogram, so an
expert's rows of block b start after all experts before it and all blocks before b, with no
atomics on the data and no second launch. Inside a block slots are ranked tile by tile in
shared memory; then a warp copies one row at a time in 128-bit steps.

The grid barrier is a counter that only grows: each arrival takes a ticket, and a round is
over when as many have arrived as the round needs. Nothing has to be reset between launches.
All blocks must be resident together, which the cooperative launch guarantees.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

__device__ __forceinline__ void grid_barrier(unsigned* arrivals) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned ticket = atomicAdd(arrivals, 1u);
    const unsigned target = ticket - ticket % gridDim.x + gridDim.x;
    // The difference is signed: the counter may wrap around.
    while (static_cast<int>(*reinterpret_cast<volatile unsigned*>(arrivals) - target) < 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

__device__ __forceinline__ int expert_of(const int* __restrict__ topk_ids, int slot, int num_experts) {
  const int id = topk_ids[slot];
  return id >= 0 && id < num_experts ? id : -1;
}

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(kThreads)
    moe_dispatch_kernel(scalar_t* __restrict__ dispatched,    // [slots, hidden]
                        int* __restrict__ dst_row,            // [slots]
                        int* __restrict__ expert_offsets,     // [num_experts + 1]
                        const scalar_t* __restrict__ tokens,  // [num_tokens, hidden]
                        const int* __restrict__ topk_ids,     // [slots]
                        int* block_counts,                    // [gridDim.x, num_experts], workspace
                        unsigned* arrivals,                   // [1], zero before the first launch
                        const int num_slots, const int topk, const int num_experts, const int hidden_size) {
  extern __shared__ int smem[];      // [2, num_experts]
  int* next_row = smem;              // first this block's histogram, later the next row of each expert
  int* totals = smem + num_experts;  // rows of each expert over all blocks
  __shared__ int tile_expert[kThreads];
  __shared__ int tile_row[kThreads];

  const int tid = threadIdx.x;
  const int slots_per_block = (num_slots + gridDim.x - 1) / gridDim.x;
  const int first = min(static_cast<int>(blockIdx.x) * slots_per_block, num_slots);
  const int last = min(first + slots_per_block, num_slots);

  // Phase 1: this block's histogram.
  for (int e = tid; e < num_experts; e += kThreads) {
    next_row[e] = 0;
  }
  __syncthreads();
  for (int slot = first + tid; slot < last; slot += kThreads) {
    const int expert = expert_of(topk_ids, slot, num_experts);
    if (expert >= 0) atomicAdd(&next_row[expert], 1);
  }
  __syncthreads();
  for (int e = tid; e < num_experts; e += kThreads) {
    block_counts[static_cast<int64_t>(blockIdx.x) * num_experts + e] = next_row[e];
  }

  grid_barrier(arrivals);

  // Phase 2: column sums of the histograms give, for each expert, all rows and the rows of earlier blocks.
  for (int e = tid; e < num_experts; e += kThreads) {
    int total = 0;
    int before = 0;
    for (int b = 0; b < gridDim.x; ++b) {
      const int count = __ldcg(&block_counts[static_cast<int64_t>(b) * num_experts + e]);
      total += count;
      before += b < blockIdx.x ? count : 0;
    }
    next_row[e] = before;
    totals[e] = total;
  }
  __syncthreads();
  if (tid == 0) {
    int start = 0;
    for (int e = 0; e < num_experts; ++e) {
      if (blockIdx.x == 0) expert_offsets[e] = start;
      next_row[e] += start;
      start += totals[e];
    }
    if (blockIdx.x == 0) expert_offsets[num_experts] = start;
  }
  __syncthreads();

  const int vecs = hidden_size / VEC;
  const int lane = tid & 31;
  for (int tile = first; tile < last; tile += kThreads) {
    const int slot = tile + tid;
    const int expert = slot < last ? expert_of(topk_ids, slot, num_experts) : -1;
    tile_expert[tid] = expert;
    __syncthreads();

    // Rank among the tile's slots of the same expert; the last of them moves the expert's cursor on.
    int earlier = 0;
    bool is_last = true;
    for (int other = 0; other < kThreads; ++other) {
      if (tile_expert[other] == expert) {
        if (other < tid) ++earlier;
        if (other > tid) is_last = false;
      }
    }
    const int row = expert >= 0 ? next_row[expert] + earlier : -1;
    tile_row[tid] = row;
    if (slot < last) {
      dst_row[slot] = row;
    }
    __syncthreads();
    if (expert >= 0 && is_last) {
      next_row[expert] = row + 1;
    }

    const int tile_size = min(last - tile, kThreads);
    for (int i = tid >> 5; i < tile_size; i += kWarps) {
      const int to = tile_row[i];
      if (to < 0) continue;
      const int64_t from = (tile + i) / topk;
      const Vec<scalar_t, VEC>* src = reinterpret_cast<const Vec<scalar_t, VEC>*>(tokens + from * hidden_size);
      Vec<scalar_t, VEC>* dst =
          reinterpret_cast<Vec<scalar_t, VEC>*>(dispatched + static_cast<int64_t>(to) * hidden_size);
      for (int v = lane; v < vecs; v += 32) {
        dst[v] = src[v];
      }
    }
    __syncthreads();
  }
}

template <typename scalar_t, int VEC>
static cudaError_t launch(scalar_t* dispatched, int* dst_row, int* expert_offsets, const scalar_t* tokens,
                          const int* topk_ids, int* block_counts, unsigned* arrivals, int num_slots, int topk,
                          int num_experts, int hidden_size, int max_blocks, cudaStream_t stream) {
  const int wanted = std::max((num_slots + 31) / 32, 1);
  const dim3 grid(std::min(wanted, max_blocks));
  const size_t smem = 2 * num_experts * sizeof(int);
  void* args[] = {&dispatched, &dst_row,   &expert_offsets, &tokens,      &topk_ids,   &block_counts,
                  &arrivals,   &num_slots, &topk,           &num_experts, &hidden_size};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&moe_dispatch_kernel<scalar_t, VEC>), grid,
                                     dim3(kThreads), args, smem, stream);
}

// block_counts: max_blocks * num_experts ints. max_blocks: at most the number of multiprocessors.
template <typename scalar_t>
cudaError_t moe_dispatch(scalar_t* dispatched, int* dst_row, int* expert_offsets, const scalar_t* tokens,
                         const int* topk_ids, int* block_counts, unsigned* arrivals, int num_tokens, int topk,
                         int num_experts, int hidden_size, int max_blocks, cudaStream_t stream) {
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(dispatched) | reinterpret_cast<uintptr_t>(tokens);
  if (addresses % 16 == 0 && hidden_size % kVec == 0) {
    return launch<scalar_t, kVec>(dispatched, dst_row, expert_offsets, tokens, topk_ids, block_counts, arrivals,
                                  num_tokens * topk, topk, num_experts, hidden_size, max_blocks, stream);
  }
  return launch<scalar_t, 1>(dispatched, dst_row, expert_offsets, tokens, topk_ids, block_counts, arrivals,
                             num_tokens * topk, topk, num_experts, hidden_size, max_blocks, stream);
}

template cudaError_t moe_dispatch(__nv_bfloat16*, int*, int*, const __nv_bfloat16*, const int*, int*, unsigned*, int,
                                  int, int, int, int, cudaStream_t);
template cudaError_t moe_dispatch(__half*, int*, int*, const __half*, const int*, int*, unsigned*, int, int, int, int,
                                  int, cudaStream_t);
