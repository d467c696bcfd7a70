// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Sorts the routed (token, choice) slots by expert and pads every expert to whole blocks, the
input of a grouped GEMM whose tiles hold block_size rows of one expert each.

    sorted_token_ids  slots in expert order; the padding holds the sentinel numel
    expert_ids        the expert of each block; -1 for blocks past the end
    num_tokens_post_pad  length of the padded order
    cumsum            where each expert starts, [num_experts + 1]

One block does it all, since decode batches are small: counts by shared-memory atomics, an
exclusive scan over experts by warp shuffles, then each slot takes the next free place of its
expert by another atomic. The order inside an expert is therefore unspecified.
Ids outside [0, num_experts) are dropped. With an expert_map (expert parallelism) an id is
translated first, and -1 drops it.
*/
#include <cuda_runtime.h>
#include <stdint.h>

constexpr int WARP_SIZE = 32;

// Inclusive sum over the block; blockDim.x is a multiple of the warp.
__device__ __forceinline__ int block_inclusive_scan(int value) {
  __shared__ int warp_totals[WARP_SIZE];
  const int lane = threadIdx.x & (WARP_SIZE - 1);
  const int warp = threadIdx.x / WARP_SIZE;
#pragma unroll
  for (int offset = 1; offset < WARP_SIZE; offset <<= 1) {
    const int below = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += below;
  }
  if (lane == WARP_SIZE - 1) warp_totals[warp] = value;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < warp; ++w) {
    before += warp_totals[w];
  }
  return before + value;
}

template <typename index_t>
__device__ __forceinline__ int local_expert(index_t id, const int* __restrict__ expert_map, int num_experts) {
  if (id < 0 || id >= num_experts) return -1;
  return expert_map == nullptr ? static_cast<int>(id) : expert_map[id];
}

template <typename index_t>
__global__ void moe_align_block_size_kernel(const index_t* __restrict__ topk_ids,      // [numel]
                                            int* __restrict__ sorted_token_ids,        // [max_num_tokens_padded]
                                            int* __restrict__ expert_ids,              // [max_num_blocks]
                                            int* __restrict__ num_tokens_post_pad,     // [1]
                                            int* __restrict__ cumsum,                  // [num_experts + 1]
                                            const int* __restrict__ expert_map,        // [num_experts] or null
                                            const int num_experts, const int block_size, const int numel,
                                            const int max_num_tokens_padded, const int max_num_blocks) {
  extern __shared__ int shared[];
  int* counts = shared;                   // [num_experts]
  int* next_free = shared + num_experts;  // [num_experts]
  const int tid = threadIdx.x;

  for (int e = tid; e < num_experts; e += blockDim.x) {
    counts[e] = 0;
  }
  for (int i = tid; i < max_num_tokens_padded; i += blockDim.x) {
    sorted_token_ids[i] = numel;
  }
  for (int i = tid; i < max_num_blocks; i += blockDim.x) {
    expert_ids[i] = -1;
  }
  __syncthreads();

  for (int i = tid; i < numel; i += blockDim.x) {
    const int expert = local_expert(topk_ids[i], expert_map, num_experts);
    if (expert < 0) continue;
    atomicAdd(&counts[expert], 1);
  }
  __syncthreads();

  // One thread an expert: the launch makes the block wide enough.
  const int count = tid < num_experts ? counts[tid] : 0;
  const int padded = (count + block_size - 1) / block_size * block_size;
  const int end = block_inclusive_scan(padded);
  if (tid < num_experts) {
    const int start = end - padded;
    next_free[tid] = start;
    cumsum[tid + 1] = end;
    for (int block = start / block_size; block < end / block_size; ++block) {
      expert_ids[block] = tid;
    }
    if (tid == 0) cumsum[0] = 0;
    if (tid == num_experts - 1) *num_tokens_post_pad = end;
  }
  __syncthreads();

  for (int i = tid; i < numel; i += blockDim.x) {
    const int expert = local_expert(topk_ids[i], expert_map, num_experts);
    if (expert < 0) continue;
    const int place = atomicAdd(&next_free[expert], 1);
    sorted_token_ids[place] = i;
  }
}

// max_num_tokens_padded: at least numel + num_experts * (block_size - 1), rounded up to whole blocks.
template <typename index_t>
cudaError_t moe_align_block_size(const index_t* topk_ids, int num_experts, int block_size, int numel,
                                 int* sorted_token_ids, int max_num_tokens_padded, int* expert_ids,
                                 int* num_tokens_post_pad, int* cumsum, const int* expert_map, cudaStream_t stream) {
  if (num_experts > 1024) return cudaErrorInvalidValue;
  const int needed = num_experts > 256 ? num_experts : 256;
  const int threads = (needed + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE;
  const size_t smem = 2 * num_experts * sizeof(int);
  moe_align_block_size_kernel<index_t><<<1, threads, smem, stream>>>(
      topk_ids, sorted_token_ids, expert_ids, num_tokens_post_pad, cumsum, expert_map, num_experts, block_size, numel,
      max_num_tokens_padded, max_num_tokens_padded / block_size);
  return cudaGetLastError();
}

template cudaError_t moe_align_block_size(const int32_t*, int, int, int, int*, int, int*, int*, int*, const int*,
                                          cudaStream_t);
template cudaError_t moe_align_block_size(const int64_t*, int, int, int, int*, int, int*, int*, int*, const int*,
                                          cudaStream_t);
