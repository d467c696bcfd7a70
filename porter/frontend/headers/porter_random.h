// curand's device API.
#pragma once
#include "porter_device.h"
#pragma clang force_cuda_host_device begin
#define PORTER_CURAND(S)                                                                                                  \
  template <bool> void __porter_curand_init(unsigned long long, unsigned long long, unsigned long long, S*); unsigned curand(S*); float curand_uniform(S*); \
  double curand_uniform_double(S*); float curand_normal(S*); float2 curand_normal2(S*); double curand_normal_double(S*);   \
  float curand_log_normal(S*, float, float); unsigned curand_poisson(S*, double); void skipahead(unsigned long long, S*);
struct curandStateXORWOW { unsigned d, v[5]; int boxmuller_flag, boxmuller_flag_double; float boxmuller_extra; double boxmuller_extra_double; };
struct curandStatePhilox4_32_10 { uint4 ctr, output; uint2 key; unsigned STATE; int boxmuller_flag, boxmuller_flag_double; float boxmuller_extra; double boxmuller_extra_double; };
struct curandStateMRG32k3a { unsigned s1[3], s2[3]; };
typedef curandStateXORWOW curandState_t; typedef curandStateXORWOW curandState; typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t; typedef curandStateMRG32k3a curandStateMRG32k3a_t;
PORTER_CURAND(curandStateMRG32k3a)
#undef PORTER_CURAND
// ---- Philox 4x32 with 10 rounds: a counter, encrypted four words at a time
namespace __porter_philox {
PORTER_BODY inline uint4 encrypt(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}
PORTER_BODY inline void advance(curandStatePhilox4_32_10* state) {
  state->ctr.x += 1u;
  if (state->ctr.x == 0u) {
    state->ctr.y += 1u;
    if (state->ctr.y == 0u) {
      state->ctr.z += 1u;
      if (state->ctr.z == 0u) state->ctr.w += 1u;
    }
  }
}
PORTER_BODY inline unsigned word(uint4 four, unsigned at) { return at == 0u ? four.x : at == 1u ? four.y : at == 2u ? four.z : four.w; }
PORTER_BODY inline float uniform(unsigned bits) { return bits * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
PORTER_BODY inline float2 normal(unsigned a, unsigned b) {
  float u = a * 2.3283064e-10f + (2.3283064e-10f / 2);
  float v = b * (2.3283064e-10f * 6.2831855f) + ((2.3283064e-10f * 6.2831855f) / 2);
  float radius = sqrtf(-2.0f * logf(u));
  return make_float2(__sinf(v) * radius, __cosf(v) * radius);
}
}  // namespace __porter_philox
// ---- XORWOW: Marsaglia's xorshift of five words, plus a Weyl sequence
// A seed's own sequence from its start needs no jump; the jumps to others are matrices that porter does not have.
void curand_jump(unsigned long long sequence, unsigned long long offset, curandStateXORWOW*);
template <bool FROM_THE_START>
PORTER_BODY inline void __porter_curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStateXORWOW* state) {
  unsigned low = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
  unsigned high = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
  state->d = 6615241u + high + low;
  state->v[0] = 123456789u + low;
  state->v[1] = 362436069u ^ low;
  state->v[2] = 521288629u + high;
  state->v[3] = 88675123u ^ high;
  state->v[4] = 5783321u + low;
  state->boxmuller_flag = 0;
  state->boxmuller_flag_double = 0;
  state->boxmuller_extra = 0.0f;
  state->boxmuller_extra_double = 0.0;
  if constexpr (!FROM_THE_START) curand_jump(sequence, offset, state);
}
PORTER_BODY inline unsigned curand(curandStateXORWOW* state) {
  unsigned mixed = state->v[0] ^ (state->v[0] >> 2), last = state->v[4];
  state->v[0] = state->v[1];
  state->v[1] = state->v[2];
  state->v[2] = state->v[3];
  state->v[3] = last;
  state->v[4] = (last ^ (last << 4)) ^ (mixed ^ (mixed << 1));
  state->d += 362437u;
  return state->v[4] + state->d;
}
double curand_uniform_double(curandStateXORWOW*); double curand_normal_double(curandStateXORWOW*);
float curand_log_normal(curandStateXORWOW*, float, float); unsigned curand_poisson(curandStateXORWOW*, double); void skipahead(unsigned long long, curandStateXORWOW*);
// To the n-th number of the sequence on from here.
PORTER_BODY inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
  unsigned long long blocks = n / 4;
  state->STATE += (unsigned)(n & 3);
  if (state->STATE > 3u) {
    blocks += 1;
    state->STATE -= 4u;
  }
  unsigned low = (unsigned)blocks, high = (unsigned)(blocks >> 32);
  state->ctr.x += low;
  if (state->ctr.x < low) high += 1u;
  state->ctr.y += high;
  if (state->ctr.y < high) {
    state->ctr.z += 1u;
    if (state->ctr.z == 0u) state->ctr.w += 1u;
  }
  state->output = __porter_philox::encrypt(state->ctr, state->key);
}
PORTER_BODY inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* state) {
  unsigned low = (unsigned)n, high = (unsigned)(n >> 32);
  state->ctr.z += low;
  if (state->ctr.z < low) high += 1u;
  state->ctr.w += high;
  state->output = __porter_philox::encrypt(state->ctr, state->key);
}
template <bool>
PORTER_BODY inline void __porter_curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStatePhilox4_32_10* state) {
  state->ctr = make_uint4(0, 0, 0, 0);
  state->key = make_uint2((unsigned)seed, (unsigned)(seed >> 32));
  state->STATE = 0;
  state->boxmuller_flag = 0;
  state->boxmuller_flag_double = 0;
  state->boxmuller_extra = 0.0f;
  state->boxmuller_extra_double = 0.0;
  skipahead_sequence(sequence, state);
  skipahead(offset, state);
}
PORTER_BODY inline unsigned curand(curandStatePhilox4_32_10* state) {
  unsigned result = __porter_philox::word(state->output, state->STATE);
  state->STATE += 1u;
  if (state->STATE == 4u) {
    __porter_philox::advance(state);
    state->output = __porter_philox::encrypt(state->ctr, state->key);
    state->STATE = 0u;
  }
  return result;
}
PORTER_BODY inline uint4 curand4(curandStatePhilox4_32_10* state) {
  uint4 now = state->output;
  __porter_philox::advance(state);
  uint4 next = __porter_philox::encrypt(state->ctr, state->key);
  state->output = next;
  unsigned at = state->STATE;
  if (at == 0u) return now;
  if (at == 1u) return make_uint4(now.y, now.z, now.w, next.x);
  if (at == 2u) return make_uint4(now.z, now.w, next.x, next.y);
  return make_uint4(now.w, next.x, next.y, next.z);
}
// Alike for XORWOW and Philox, as the normal numbers below.
template <class State> PORTER_BODY inline float curand_uniform(State* state) { return __porter_philox::uniform(curand(state)); }
PORTER_BODY inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  uint4 bits = curand4(state);
  return make_float4(__porter_philox::uniform(bits.x), __porter_philox::uniform(bits.y), __porter_philox::uniform(bits.z), __porter_philox::uniform(bits.w));
}
// Pairs by Box and Muller, the second kept for the next call.
template <class State> PORTER_BODY inline float2 curand_normal2(State* state) {
  unsigned a = curand(state);
  unsigned b = curand(state);
  return __porter_philox::normal(a, b);
}
PORTER_BODY inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  uint4 bits = curand4(state);
  float2 a = __porter_philox::normal(bits.x, bits.y), b = __porter_philox::normal(bits.z, bits.w);
  return make_float4(a.x, a.y, b.x, b.y);
}
template <class State> PORTER_BODY inline float curand_normal(State* state) {
  if (state->boxmuller_flag != 1) {
    float2 pair = curand_normal2(state);
    state->boxmuller_extra = pair.y;
    state->boxmuller_flag = 1;
    return pair.x;
  }
  state->boxmuller_flag = 0;
  return state->boxmuller_extra;
}
double curand_uniform_double(curandStatePhilox4_32_10*); double curand_normal_double(curandStatePhilox4_32_10*); double2 curand_uniform2_double(curandStatePhilox4_32_10*);
float curand_log_normal(curandStatePhilox4_32_10*, float, float); unsigned curand_poisson(curandStatePhilox4_32_10*, double);
// Tells a start of the first sequence, written as zeros, from all others.
#define curand_init(seed, sequence, offset, state) \
  __porter_curand_init<(__builtin_constant_p((sequence) | (offset)) && ((sequence) | (offset)) == 0)>(seed, sequence, offset, state)
#pragma clang force_cuda_host_device end
