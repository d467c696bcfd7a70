// CUDA's short vectors, dim3 and the built-in variables.
#pragma once
#include "porter_attributes.h"
#pragma clang force_cuda_host_device begin
#define PORTER_VEC(T, base, a1, a2, a3, a4)                                                              \
  struct base##1 { T x; };                                                                               \
  struct __attribute__((aligned(a2))) base##2 { T x, y; };                                               \
  struct base##3 { T x, y, z; };                                                                         \
  struct __attribute__((aligned(a4))) base##4 { T x, y, z, w; };                                         \
  constexpr base##1 make_##base##1(T x) { return {x}; }                                                  \
  constexpr base##2 make_##base##2(T x, T y) { return {x, y}; }                                          \
  constexpr base##3 make_##base##3(T x, T y, T z) { return {x, y, z}; }                                  \
  constexpr base##4 make_##base##4(T x, T y, T z, T w) { return {x, y, z, w}; }
PORTER_VEC(signed char, char, 1, 2, 1, 4)
PORTER_VEC(unsigned char, uchar, 1, 2, 1, 4)
PORTER_VEC(short, short, 2, 4, 2, 8)
PORTER_VEC(unsigned short, ushort, 2, 4, 2, 8)
PORTER_VEC(int, int, 4, 8, 4, 16)
PORTER_VEC(unsigned int, uint, 4, 8, 4, 16)
PORTER_VEC(long, long, 8, 16, 8, 16)
PORTER_VEC(unsigned long, ulong, 8, 16, 8, 16)
PORTER_VEC(long long, longlong, 8, 16, 8, 16)
PORTER_VEC(unsigned long long, ulonglong, 8, 16, 8, 16)
PORTER_VEC(float, float, 4, 8, 4, 16)
PORTER_VEC(double, double, 8, 16, 8, 16)
#undef PORTER_VEC
#define PORTER_VEC32(T, name, base)                                        \
  struct __attribute__((aligned(32))) name { T x, y, z, w; };              \
  constexpr name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
PORTER_VEC32(double, double4_32a, double4) PORTER_VEC32(long long, longlong4_32a, longlong4)
PORTER_VEC32(unsigned long long, ulonglong4_32a, ulonglong4) PORTER_VEC32(long, long4_32a, long4)
#undef PORTER_VEC32
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;
extern const __device__ int warpSize;
#pragma clang force_cuda_host_device end
