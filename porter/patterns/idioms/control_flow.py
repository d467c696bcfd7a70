"""Patterns of ways out of a body, loops, for the catalogue."""

from __future__ import annotations

from porter.patterns.idioms.pattern import Assumption, Pattern

PATTERNS = (
    Pattern(
        "guard",
        "a return at the top of a kernel becomes an if around the rest",
        "patterns/exits.py",
        """\
__global__ void guard(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] = 1.0f;
}
""",
        ("if i < n:",),
    ),
    Pattern(
        "loop_exit",
        "break and continue become flags and conditions, as CuTeDSL loops have no early exit",
        "patterns/exits.py",
        """\
__global__ void find(const int* keys, int* where, int key, int n) {
  for (int i = 0; i < n; ++i) {
    if (keys[i] < 0) continue;
    if (keys[i] == key) {
      where[threadIdx.x] = i;
      break;
    }
  }
}
""",
        ("while ", "= Boolean(True)"),
    ),
    Pattern(
        "switch_chain",
        "a switch becomes a chain of ifs on a temporary",
        "patterns/exits.py",
        """\
__global__ void choose(int* x, int kind) {
  switch (kind) {
    case 0: x[threadIdx.x] = 1; break;
    case 1:
    case 2: x[threadIdx.x] = 2; break;
    default: x[threadIdx.x] = 3;
  }
}
""",
        (
            "selector = kind",
            "if selector == 0:",
        ),
    ),
    Pattern(
        "do_while",
        "a do-while becomes a while with a flag that is set once before it",
        "patterns/exits.py",
        """\
__global__ void halve(int* x) {
  int v = x[threadIdx.x];
  do {
    v >>= 1;
  } while (v > 100);
  x[threadIdx.x] = v;
}
""",
        (
            "again = ",
            "while again:",
        ),
    ),
    Pattern(
        "counted_loop",
        "a loop whose bounds do not change becomes a range",
        "emit/statements/for_loops.py",
        """\
__global__ void fill(float* x, int n) {
  for (int i = 0; i < n; ++i) x[i] = 0.0f;
}
""",
        ("for i in range(n):",),
        assumes=(
            Assumption(
                "that bounds and step stay as they are while the loop runs",
                "proved",
                "nothing in the loop assigns what they are computed from, and they read no memory",
            ),
        ),
    ),
    Pattern(
        "strided_loop",
        "a loop over a block's or a grid's threads becomes a range with a step",
        "emit/statements/for_loops.py",
        """\
__global__ void fill(float* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 0.0f;
}
""",
        ("in range(tidx, n, ",),
        assumes=(
            Assumption(
                "that the loop's variable plus its step stays below 2^31",
                "source",
                "C++ forbids an int to overflow",
            ),
            Assumption(
                "that the step is not negative",
                "proved",
                "its bounds follow from those of block and grid",
            ),
        ),
    ),
    Pattern(
        "unsigned_stride",
        "a strided loop over an unsigned variable becomes a range of Int32, converted each turn",
        "emit/statements/for_loops.py",
        """\
__global__ void fill(float* x) {
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) x[i] = 0.0f;
}
""",
        ("in range(tidx, ",),
        assumes=(
            Assumption(
                "that the loop's variable plus its step stays below 2^31",
                "assumed",
                "start and end are known to, their sum with the step is not",
                "numerics",
            ),
            Assumption(
                "that the step is not negative",
                "proved",
                "its bounds follow from those of block and grid",
            ),
        ),
    ),
    Pattern(
        "long_stride",
        "a loop over signed 64-bit numbers with a constant step becomes a range over the number of its turns",
        "emit/statements/for_loops.py",
        """\
__global__ void fill(float* x, long n) {
  for (long i = threadIdx.x; i < n; i += 256) x[i] = 0.0f;
}
""",
        ("lib.trips(i_first, n, 256)", "i = i_first + i_turn * 256"),
        assumes=(
            Assumption(
                "that the loop's variable plus its step is a number of its type",
                "source",
                "C++ forbids a signed number to overflow",
            ),
        ),
    ),
    Pattern(
        "constant_loop",
        "an unrolled loop with constant bounds becomes a loop over Python numbers",
        "emit/statements/for_loops.py",
        """\
__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void warp_sums(float* x) { x[threadIdx.x] = warp_sum(x[threadIdx.x]); }
""",
        ("for offset in (16, 8, 4, 2, 1):",),
        assumes=(
            Assumption(
                "that every turn is known at trace time",
                "proved",
                "the loop was run over its constants for every instance",
            ),
        ),
    ),
    Pattern(
        "template_parameters",
        "template parameters stay parameters of the port, and what differs between instances is a const_expr",
        "emit/generic.py",
        """\
template <typename T, int N>
__global__ void negate(T* x) {
  for (int j = 0; j < N; ++j) x[j] = static_cast<T>(-static_cast<float>(x[j]));
}
""",
        ("T: cutlass.Constexpr", "N: cutlass.Constexpr"),
        assumes=(
            Assumption(
                "that only these template arguments are asked for",
                "case",
                "its instances, or --instantiate; the port raises for others",
            ),
        ),
        instances=("negate<__half, 8>", "negate<float, 4>"),
    ),
)
