// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the porter authors
/*
Quantisation to e4m3 with one scale for each 128 consecutive elements of a token (1x128 groups),
scales row-major [tokens, groups], the input format of block-scaled fp8 GEMMs.

    amax  = max(max|x|, eps)
    scale = amax / 448                       (UE8M0: rounded up to a power of two)
    q     = e4m3(clamp(x / scale, -448, 448))

A group is exactly GROUP / VEC lanes wide: 16 lanes with eight 16-bit elements each, so two
groups share a warp and reduce without shared memory. The group stays in registers between
the reduction and the conversion: memory is read once.

Rounding up to a power of two is done on the bits (add the mantissa mask, keep the exponent):
exact, where exp2(ceil(log2(x))) depends on how log2 rounds next to a power of two.
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

constexpr int GROUP = 128;
constexpr float kFp8Max = 448.0f;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T data[N];
};

// Smallest power of two that is at least x; x is positive, normal and finite.
__device__ __forceinline__ float ceil_to_power_of_two(float x) {
  const uint32_t bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x007fffffu) & 0xff800000u);
}

template <int LANES>
__device__ __forceinline__ float group_reduce_max(float value) {
  unsigned mask = 0xffffffffu;
  if constexpr (LANES < 32) {
    const int first_lane = (threadIdx.x & 31) / LANES * LANES;
    mask = ((1u << LANES) - 1u) << first_lane;
  }
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(mask, value, offset));
  }
  return value;
}

template <typename scalar_t, int VEC, bool UE8M0>
__global__ void per_token_group_fp8_quant_kernel(const scalar_t* __restrict__ input,   // [tokens, hidden]
                                                 __nv_fp8_e4m3* __restrict__ output_q,  // [tokens, hidden]
                                                 float* __restrict__ output_s,          // [tokens, hidden / 128]
                                                 const int64_t input_stride, const int groups_per_token,
                                                 const int64_t num_groups, const float eps) {
  constexpr int kLanes = GROUP / VEC;
  static_assert(kLanes <= 32, "a group must fit in a warp");
  const int64_t group = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  if (group >= num_groups) {
    return;
  }
  const int lane = threadIdx.x % kLanes;
  const int64_t token = group / groups_per_token;
  const int64_t start = (group - token * groups_per_token) * GROUP + lane * VEC;

  const auto x = *reinterpret_cast<const Vec<scalar_t, VEC>*>(input + token * input_stride + start);
  float values[VEC];
  float amax = eps;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    values[j] = static_cast<float>(x.data[j]);
    amax = fmaxf(amax, fabsf(values[j]));
  }
  amax = group_reduce_max<kLanes>(amax);

  float scale = amax / kFp8Max;
  if constexpr (UE8M0) {
    scale = ceil_to_power_of_two(fmaxf(scale, 1e-10f));
  }
  if (lane == 0) {
    output_s[group] = scale;
  }

  Vec<__nv_fp8_e4m3, VEC> q;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    q.data[j] = static_cast<__nv_fp8_e4m3>(fminf(fmaxf(values[j] / scale, -kFp8Max), kFp8Max));
  }
  *reinterpret_cast<Vec<__nv_fp8_e4m3, VEC>*>(output_q + group * GROUP + lane * VEC) = q;
}

template <typename scalar_t, bool UE8M0>
static void launch(const scalar_t* input, __nv_fp8_e4m3* output_q, float* output_s, int64_t input_stride,
                   int64_t num_tokens, int hidden_size, float eps, cudaStream_t stream) {
  constexpr int kVec = 16 / sizeof(scalar_t);
  constexpr int kThreads = 256;
  constexpr int kGroupsPerBlock = kThreads / (GROUP / kVec);
  const int groups_per_token = hidden_size / GROUP;
  const int64_t num_groups = num_tokens * groups_per_token;
  const unsigned blocks = static_cast<unsigned>((num_groups + kGroupsPerBlock - 1) / kGroupsPerBlock);
  per_token_group_fp8_quant_kernel<scalar_t, kVec, UE8M0><<<blocks, kThreads, 0, stream>>>(
      input, output_q, output_s, input_stride, groups_per_token, num_groups, eps);
}

// hidden_size must be a multiple of 128, rows of the input 16-byte aligned.
template <typename scalar_t>
cudaError_t per_token_group_fp8_quant(const scalar_t* input, __nv_fp8_e4m3* output_q, float* output_s,
                                      int64_t input_stride, int64_t num_tokens, int hidden_size, float eps,
                                      bool scale_ue8m0, cudaStream_t stream) {
  if (hidden_size % GROUP != 0) return cudaErrorInvalidValue;
  if (num_tokens == 0 || hidden_size == 0) return cudaSuccess;
  if (scale_ue8m0) {
    launch<scalar_t, true>(input, output_q, output_s, input_stride, num_tokens, hidden_size, eps, stream);
  } else {
    launch<scalar_t, false>(input, output_q, output_s, input_stride, num_tokens, hidden_size, eps, stream);
  }
  return cudaGetLastError();
}

template cudaError_t per_token_group_fp8_quant(const __nv_bfloat16*, __nv_fp8_e4m3*, float*, int64_t, int64_t, int,
                                               float, bool, cudaStream_t);
template cudaError_t per_token_group_fp8_quant(const __half*, __nv_fp8_e4m3*, float*, int64_t, int64_t, int, float,
                                               bool, cudaStream_t);
template cudaError_t per_token_group_fp8_quant(const float*, __nv_fp8_e4m3*, float*, int64_t, int64_t, int, float,
                                               bool, cudaStream_t);
