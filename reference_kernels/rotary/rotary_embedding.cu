// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Rotary position embedding in the NeoX layout, in place on query and key.

The first rot_dim elements of each head are two halves; element i of the first half and
element i of the second are turned together by the angle of the token's position:

    x' = T(x * cos - y * sin)        y' = T(y * cos + x * sin)

cos and sin come from a table, one row a position: rot_dim / 2 cosines, then as many
sines. With rot_dim < head_size the rest of the head stays as it is. One block owns one
token and walks over the vectors of all its query heads, then of its key heads; query and
key may be views of a packed projection (token strides are arguments).
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

// Turns VEC pairs: those at offset `col` of both halves of one head.
template <typename scalar_t, int VEC>
__device__ __forceinline__ void rotate_pairs(scalar_t* head, const scalar_t* __restrict__ cos_row,
                                             const scalar_t* __restrict__ sin_row, int col, int half_dim) {
  using vec_t = Vec<scalar_t, VEC>;
  vec_t* x_ptr = reinterpret_cast<vec_t*>(head + col);
  vec_t* y_ptr = reinterpret_cast<vec_t*>(head + half_dim + col);
  const vec_t cos = *reinterpret_cast<const vec_t*>(cos_row + col);
  const vec_t sin = *reinterpret_cast<const vec_t*>(sin_row + col);
  vec_t x = *x_ptr;
  vec_t y = *y_ptr;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const float c = static_cast<float>(cos.data[j]);
    const float s = static_cast<float>(sin.data[j]);
    const float fx = static_cast<float>(x.data[j]);
    const float fy = static_cast<float>(y.data[j]);
    x.data[j] = static_cast<scalar_t>(fx * c - fy * s);
    y.data[j] = static_cast<scalar_t>(fy * c + fx * s);
  }
  *x_ptr = x;
  *y_ptr = y;
}

template <typename scalar_t, int VEC>
__global__ void rotary_embedding_kernel(const int64_t* __restrict__ positions,       // [tokens]
                                        scalar_t* __restrict__ query,                // [tokens, num_heads, head_size]
                                        scalar_t* __restrict__ key,                  // [tokens, num_kv_heads, head_size]
                                        const scalar_t* __restrict__ cos_sin_cache,  // [max_position, rot_dim]
                                        const int rot_dim, const int64_t query_stride, const int64_t key_stride,
                                        const int num_heads, const int num_kv_heads, const int head_size) {
  const int token = blockIdx.x;
  const int64_t position = positions[token];
  const int half_dim = rot_dim / 2;
  const scalar_t* cos_row = cos_sin_cache + position * rot_dim;
  const scalar_t* sin_row = cos_row + half_dim;
  const int vecs_per_head = half_dim / VEC;

  const int query_vecs = num_heads * vecs_per_head;
  for (int i = threadIdx.x; i < query_vecs; i += blockDim.x) {
    const int head = i / vecs_per_head;
    const int col = (i - head * vecs_per_head) * VEC;
    rotate_pairs<scalar_t, VEC>(query + token * query_stride + head * head_size, cos_row, sin_row, col, half_dim);
  }

  const int key_vecs = num_kv_heads * vecs_per_head;
  for (int i = threadIdx.x; i < key_vecs; i += blockDim.x) {
    const int head = i / vecs_per_head;
    const int col = (i - head * vecs_per_head) * VEC;
    rotate_pairs<scalar_t, VEC>(key + token * key_stride + head * head_size, cos_row, sin_row, col, half_dim);
  }
}

template <typename scalar_t>
void rotary_embedding(const int64_t* positions, scalar_t* query, scalar_t* key, const scalar_t* cos_sin_cache,
                      int rot_dim, int64_t query_stride, int64_t key_stride, int num_heads, int num_kv_heads,
                      int head_size, int num_tokens, cudaStream_t stream) {
  if (num_tokens == 0) return;
  constexpr int kVec = 16 / sizeof(scalar_t);
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(query) | reinterpret_cast<uintptr_t>(key) |
                              reinterpret_cast<uintptr_t>(cos_sin_cache);
  const bool wide = addresses % 16 == 0 && (rot_dim / 2) % kVec == 0 && head_size % kVec == 0 &&
                    query_stride % kVec == 0 && key_stride % kVec == 0;
  const int vecs = num_heads * (rot_dim / 2) / (wide ? kVec : 1);
  const int threads = std::max(1, std::min(vecs, 512));
  if (wide) {
    rotary_embedding_kernel<scalar_t, kVec>
        <<<num_tokens, threads, 0, stream>>>(positions, query, key, cos_sin_cache, rot_dim, query_stride, key_stride,
                                             num_heads, num_kv_heads, head_size);
  } else {
    rotary_embedding_kernel<scalar_t, 1>
        <<<num_tokens, threads, 0, stream>>>(positions, query, key, cos_sin_cache, rot_dim, query_stride, key_stride,
                                             num_heads, num_kv_heads, head_size);
  }
}

template void rotary_embedding(const int64_t*, __nv_bfloat16*, __nv_bfloat16*, const __nv_bfloat16*, int, int64_t,
                               int64_t, int, int, int, int, cudaStream_t);
template void rotary_embedding(const int64_t*, __half*, __half*, const __half*, int, int64_t, int64_t, int, int, int,
                               int, cudaStream_t);
template void rotary_embedding(const int64_t*, float*, float*, const float*, int, int64_t, int64_t, int, int, int, int,
                               cudaStream_t);
