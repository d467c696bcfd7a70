// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Integer arithmetic where C and Python differ, for mutants: unsigned codes of 8 bits, an unsigned comparison whose operands
use the top bit, and a division of negative numbers.

Dequantises 8-bit codes and adds a bias by distance to the diagonal; columns whose key is above a limit give zero.
*/
#include <stdint.h>

__global__ void dequant_bias_kernel(float* __restrict__ out, const uint8_t* __restrict__ codes,
                                    const uint32_t* __restrict__ keys, const float* __restrict__ scales,
                                    const uint32_t limit, const int zero, const int span, const int rows,
                                    const int cols) {
  const int row = blockIdx.x;
  const float scale = scales[row];
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    const int code = codes[row * cols + col];
    const int distance = col - row;
    const int bucket = distance / span;
    const uint32_t key = keys[col];
    float value = static_cast<float>(code - zero) * scale + static_cast<float>(bucket);
    if (key > limit) {
      value = 0.0f;
    }
    out[row * cols + col] = value;
  }
}
