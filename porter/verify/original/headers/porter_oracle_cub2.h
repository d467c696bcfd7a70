// What kernels for cub 2 and older name and CCCL 3 no longer has.
#pragma once
#include <cub/config.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#if CUB_VERSION >= 300000
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cub {
using Sum = ::cuda::std::plus<>;
using Difference = ::cuda::std::minus<>;
using Division = ::cuda::std::divides<>;
using Max = ::cuda::maximum<>;
using Min = ::cuda::minimum<>;
using Equality = ::cuda::std::equal_to<>;
using Inequality = ::cuda::std::not_equal_to<>;
template <class Op> struct InequalityWrapper {
  Op op;
  __host__ __device__ explicit InequalityWrapper(Op op_) : op(op_) {}
  template <class T, class U> __host__ __device__ bool operator()(const T& a, const U& b) { return !op(a, b); }
};

template <class T> struct FpLimits;
template <> struct FpLimits<float> {
  __host__ __device__ static float Max() { return 3.40282346638528859812e+38f; }
  __host__ __device__ static float Lowest() { return -3.40282346638528859812e+38f; }
};
template <> struct FpLimits<double> {
  __host__ __device__ static double Max() { return 1.79769313486231570815e+308; }
  __host__ __device__ static double Lowest() { return -1.79769313486231570815e+308; }
};
template <> struct FpLimits<__half> {
  __host__ __device__ static __half Max() { return __ushort_as_half(0x7bff); }
  __host__ __device__ static __half Lowest() { return __ushort_as_half(0xfbff); }
};
template <> struct FpLimits<__nv_bfloat16> {
  __host__ __device__ static __nv_bfloat16 Max() { return __ushort_as_bfloat16(0x7f7f); }
  __host__ __device__ static __nv_bfloat16 Lowest() { return __ushort_as_bfloat16(0xff7f); }
};

template <int A> struct Int2Type { enum { VALUE = A }; };
}  // namespace cub
#endif
