// Declaration specifiers, platform macros and integer typedefs. No function here.
#pragma once
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define PORTER_TEXT_(...) #__VA_ARGS__
#define PORTER_TEXT(...) PORTER_TEXT_(__VA_ARGS__)
// Kept as text (macros expanded, template parameters by name): porter reads and evaluates it per instance.
#define __launch_bounds__(...) __attribute__((annotate("launch_bounds:" PORTER_TEXT(__VA_ARGS__))))
#define __cluster_dims__(...) __attribute__((annotate("cluster_dims:" PORTER_TEXT(__VA_ARGS__))))
#define __block_size__(...) __attribute__((annotate("block_size:" PORTER_TEXT(__VA_ARGS__))))
#define __maxnreg__(...) __attribute__((annotate("maxnreg:" PORTER_TEXT(__VA_ARGS__))))
#define __grid_constant__ __attribute__((annotate("grid_constant")))
// Functions whose body here is what they do: porter lowers it like the user's code.
#define PORTER_BODY __attribute__((annotate("porter_body")))
// `extern __shared__ T x;` of one object, which clang refuses: porter reads it with this in the place of `extern`. nvcc
// gives such an object static memory, unless code is linked from several files.
#define porter_extern_shared
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// what cuda_fp16.h leaves defined, and projects use
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))
#define __CUDA_HOSTDEVICE__ __host__ __device__
#define __device_builtin__
#define __cudart_builtin__
#define __nv_pure__
#define __specialization_static static
#define __nv_noinline__ __attribute__((noinline))
#define CUDARTAPI
#define CUDAAPI
#define CUDART_CB
#define __dv(v) = v

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUB_VERSION 300000
#define THRUST_VERSION 300000
#define CCCL_VERSION 3000000
#define CCCL_MAJOR_VERSION 3
#define __GLIBC__ 2

#define NULL 0
#define offsetof(t, m) __builtin_offsetof(t, m)
#define assert(...) __assert_porter(static_cast<bool>(__VA_ARGS__))
#define va_start(...) __builtin_va_start(__VA_ARGS__)
#define va_end(...) __builtin_va_end(__VA_ARGS__)
#define va_arg(...) __builtin_va_arg(__VA_ARGS__)

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long ssize_t;
typedef decltype(nullptr) nullptr_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
typedef int8_t int_least8_t;
typedef int16_t int_least16_t;
typedef int32_t int_least32_t;
typedef int64_t int_least64_t;
typedef uint8_t uint_least8_t;
typedef uint16_t uint_least16_t;
typedef uint32_t uint_least32_t;
typedef uint64_t uint_least64_t;
typedef int8_t int_fast8_t;
typedef long int_fast16_t;
typedef long int_fast32_t;
typedef long int_fast64_t;
typedef uint8_t uint_fast8_t;
typedef unsigned long uint_fast16_t;
typedef unsigned long uint_fast32_t;
typedef unsigned long uint_fast64_t;
typedef int8_t __int8_t;
typedef int16_t __int16_t;
typedef int32_t __int32_t;
typedef int64_t __int64_t;
typedef uint8_t __uint8_t;
typedef uint16_t __uint16_t;
typedef uint32_t __uint32_t;
typedef uint64_t __uint64_t;
typedef uint8_t u_int8_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long ulong;
typedef __builtin_va_list va_list;
typedef long time_t;
typedef long clock_t;
typedef struct { double _align[4]; } max_align_t;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX 18446744073709551615UL
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define INT8_C(c) c
#define INT16_C(c) c
#define INT32_C(c) c
#define INT64_C(c) c##L
#define INTMAX_C(c) c##L
#define UINT8_C(c) c
#define UINT16_C(c) c
#define UINT32_C(c) c##U
#define UINT64_C(c) c##UL
#define UINTMAX_C(c) c##UL
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN (-128)
#define CHAR_MAX 127
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_TRUE_MIN 1.401298464e-45F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MAX_EXP 1024
#define DBL_MIN_EXP (-1021)
#define DBL_TRUE_MIN 4.9406564584124654e-324
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()
#define HUGE_VALF __builtin_inff()
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_L2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
