// curand's device API.
#pragma once
#include "porter_device.h"
#pragma clang force_cuda_host_device begin
#define PORTER_CURAND(S)                                                                                                  \
  void curand_init(unsigned long long, unsigned long long, unsigned long long, S*); unsigned curand(S*); float curand_uniform(S*); \
  double curand_uniform_double(S*); float curand_normal(S*); float2 curand_normal2(S*); double curand_normal_double(S*);   \
  float curand_log_normal(S*, float, float); unsigned curand_poisson(S*, double); void skipahead(unsigned long long, S*);
struct curandStateXORWOW { unsigned d, v[5]; int boxmuller_flag; float boxmuller_extra; };
struct curandStatePhilox4_32_10 { uint4 ctr, output; uint2 key; unsigned STATE; int boxmuller_flag; float boxmuller_extra; };
struct curandStateMRG32k3a { unsigned s1[3], s2[3]; };
typedef curandStateXORWOW curandState_t; typedef curandStateXORWOW curandState; typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t; typedef curandStateMRG32k3a curandStateMRG32k3a_t;
PORTER_CURAND(curandStateXORWOW) PORTER_CURAND(curandStatePhilox4_32_10) PORTER_CURAND(curandStateMRG32k3a)
#undef PORTER_CURAND
uint4 curand4(curandStatePhilox4_32_10*); float4 curand_uniform4(curandStatePhilox4_32_10*); float4 curand_normal4(curandStatePhilox4_32_10*); double2 curand_uniform2_double(curandStatePhilox4_32_10*);
#pragma clang force_cuda_host_device end
