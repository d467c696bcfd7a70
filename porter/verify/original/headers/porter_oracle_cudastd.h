// namespace std from libcu++, for originals that use more of it than porter_oracle_std.h has.
#pragma once
#define PORTER_ORACLE_CUDASTD 1
#ifndef PORTER_ORACLE_LIBCUDACXX
#define PORTER_ORACLE_LIBCUDACXX
#endif
#include "porter_oracle.h"
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#else  // CCCL 3.0 keeps it for itself
#include <cuda/std/__algorithm/clamp.h>
#include <cuda/std/__algorithm/copy.h>
#include <cuda/std/__algorithm/fill.h>
#include <cuda/std/__algorithm/find.h>
#include <cuda/std/__algorithm/lower_bound.h>
#include <cuda/std/__algorithm/max.h>
#include <cuda/std/__algorithm/min.h>
#include <cuda/std/__algorithm/upper_bound.h>
#endif
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/cmath>
#include <cuda/std/concepts>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/cstring>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda/std/numeric>
#include <cuda/std/optional>
#if __has_include(<cuda/std/source_location>)
#include <cuda/std/source_location>
#endif
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <cuda/std/variant>
namespace std {
using namespace cuda::std;
// Gone from C++17, and still in libstdc++.
template <class A, class R> struct unary_function { using argument_type = A; using result_type = R; };
template <class A, class B, class R> struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};
}
