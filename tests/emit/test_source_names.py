"""Numbers and types become template parameters only where the source has the parameter, never where values agree."""

from __future__ import annotations

import re

import pytest

from tests.emit.stages import emitted

HEAD = """
#include <cuda_fp16.h>
template <typename T> struct Lanes { static constexpr int value = 4; };
template <> struct Lanes<__half> { static constexpr int value = 8; };
template <typename T> struct Sum { using type = float; };
template <> struct Sum<double> { using type = double; };
template <typename T, int N> struct alignas(sizeof(T) * N) Pack { T data[N]; };
"""

#: kernel text -> (instances, what its port must hold, what it must not hold)
COINCIDENCES = {
    "a trait of the type, and a count with the same values": (
        """
template <typename T, int UNROLL> __global__ void k(T* out, const T* in, int n) {
  T keep[Lanes<T>::value];
  for (int j = 0; j < Lanes<T>::value; ++j) keep[j] = in[threadIdx.x * Lanes<T>::value + j];
  for (int u = 0; u < UNROLL; ++u)
    for (int j = 0; j < Lanes<T>::value; ++j) out[(threadIdx.x * UNROLL + u) * Lanes<T>::value + j] = keep[j];
}""",
        ("k<float, 4>", "k<__half, 8>"),
        ("lib.local(T, (8, 4)[T is Float32])", "range_constexpr(UNROLL)", "range_constexpr((8, 4)[T is Float32])"),
        (r"local\(T, UNROLL", r"width", r"UNROLL \* UNROLL", r"\* UNROLL \+ j"),
    ),
    "a trait of the type, and its size": (
        """
template <typename T> struct Group { static constexpr int count = 32; };
template <> struct Group<__half> { static constexpr int count = 16; };
template <typename T> __global__ void k(T* out, const T* in, int n) {
  if (threadIdx.x < Group<T>::count) out[threadIdx.x] = in[threadIdx.x % Group<T>::count];
}""",
        ("k<float>", "k<__half>"),
        ("(16, 32)[T is Float32]",),
        (r"width",),
    ),
    "a literal and a parameter of one value": (
        """
template <typename T, int rtype> __global__ void k(T* out, const T* in, int n) {
  unsigned char flags[2];
  float2 pair = make_float2(1.0f, 2.0f);
  flags[n & 1] = n;
  flags[(n & 1) ^ 1] = rtype;
  float* p = &pair.x;
  p[n & 1] += flags[threadIdx.x & 1];
  out[threadIdx.x] = (T)(pair.y + p[0]);
}""",
        ("k<float, 2>",),
        ("lib.local(Uint8, 2)", "lib.local(Float32, 2)", "pair[1]", "= Uint8(rtype)"),
        (r"local\(\w+, rtype\)", r"pair\[rtype"),
    ),
    "a literal and a parameter that all instances share": (
        """
template <typename T, int PAD, int VEC> __global__ void k(T* out, const T* in, int n) {
  __shared__ T tile[64 * 2];
  Pack<T, VEC> p = *reinterpret_cast<const Pack<T, VEC>*>(in + threadIdx.x * VEC);
  tile[threadIdx.x * 2 + 1] = p.data[n & 1];
  __syncthreads();
  out[threadIdx.x + PAD] = tile[(threadIdx.x ^ 1) * 2 + 1];
}""",
        ("k<float, 2, 4>", "k<__half, 2, 8>"),
        ("lib.shared(T, 128)", "tidx * 2 + 1", "PAD", "lib.local(T, VEC)", "VEC)"),
        (r"tidx \* PAD", r"PAD \* 64"),
    ),
    "a type of a trait, and a parameter with the same types": (
        """
template <typename T, typename U> __global__ void k(T* out, const U* in, int n) {
  typename Sum<T>::type sum = 0;
  for (int i = 0; i < n; ++i) sum += (float)out[i];
  out[n] = (T)sum;
  if (n == 7) out[n + 1] = (T)(float)in[0];
}""",
        ("k<__half, float>", "k<double, double>"),
        ("sum = (Float32 if T is Float16 else Float64)(",),
        (r"sum = U\(",),
    ),
    "a trait, and a constant of the source with the same values": (
        """
template <typename T, int BLOCK> __global__ void k(T* out, const T* in, int n) {
  const int warps = BLOCK / 32;
  T keep[Lanes<T>::value];
  for (int j = 0; j < Lanes<T>::value; ++j) keep[j] = in[j * warps];
  out[threadIdx.x] = keep[n & 3];
}""",
        ("k<float, 128>", "k<__half, 256>"),
        ("lib.local(T, (8, 4)[T is Float32])", "* warps"),
        (r"local\(T, warps", r"local\(T, BLOCK"),
    ),
    "a trait in an inlined function, and a count with the same values": (
        """
template <typename U> __device__ __forceinline__ void turn(const U (&from)[16], U* to) {
  U keep[Lanes<U>::value];
  for (int j = 0; j < Lanes<U>::value; ++j) keep[j] = from[j];
  for (int j = 0; j < Lanes<U>::value; ++j) to[j] = keep[(j + 1) & 3];
}
template <typename T, int UNROLL> __global__ void k(T* out, const T* in, int n) {
  T mine[16];
  for (int u = 0; u < UNROLL; ++u) mine[u] = in[u];
  turn(mine, mine + 8);
  out[threadIdx.x] = mine[8 + (n & 3)];
}""",
        ("k<float, 4>", "k<__half, 8>"),
        ("lib.local(T, (8, 4)[T is Float32])", "range_constexpr(UNROLL)"),
        (r"local\(T, UNROLL", r"UNROLL \* UNROLL"),
    ),
    "a parameter of an inlined function, and another argument with the same values": (
        """
template <int N, int M> __device__ __forceinline__ void both(float (&row)[16]) {
  float keep[N];
  for (int j = 0; j < N; ++j) keep[j] = row[j];
  for (int j = 0; j < N; ++j) row[j] = keep[j] * M + keep[(j + 1) & 3];
}
template <int FIRST, int SECOND> __global__ void k(float* out, const float* in, int n) {
  float mine[16];
  for (int u = 0; u < 16; ++u) mine[u] = in[u];
  both<SECOND, FIRST>(mine);
  out[threadIdx.x] = mine[n & 3];
}""",
        ("k<4, 4>", "k<8, 8>"),
        ("lib.local(Float32, SECOND)", "range_constexpr(SECOND)", "float(FIRST)"),
        (r"local\(Float32, FIRST",),
    ),
    "an inlined function that an inlined function calls": (
        """
template <typename V> __device__ __forceinline__ void last(V (&row)[8]) {
  V keep[Lanes<V>::value];
  for (int j = 0; j < Lanes<V>::value; ++j) keep[j] = row[j];
  row[2] = keep[row[3] > V(1)];
}
template <typename U> __device__ __forceinline__ void through(U (&line)[8]) { last(line); line[0] = line[2]; }
template <typename T, int UNROLL> __global__ void k(T* out, const T* in, int n) {
  T mine[8];
  for (int u = 0; u < UNROLL; ++u) mine[u] = in[u];
  through(mine);
  out[threadIdx.x] = mine[n & 3];
}""",
        ("k<float, 4>", "k<__half, 8>"),
        ("lib.local(T, (8, 4)[T is Float32])", "range_constexpr(UNROLL)"),
        (r"local\(T, UNROLL", r"UNROLL\b.*UNROLL"),
    ),
    "arguments of a function that stays one, with the same values": (
        """
template <int N, int M> __device__ float both(const float* row) {
  float sum = 0;
  for (int j = 0; j < N; ++j) sum += row[j] * M;
  return sum;
}
template <int FIRST, int SECOND> __global__ void k(float* out, const float* in, int n) {
  out[threadIdx.x] = both<SECOND, FIRST>(in) + both<FIRST, FIRST * 2>(in + 8);
}""",
        ("k<4, 4>", "k<8, 8>"),
        ("both(in_, SECOND, FIRST)", "both(in_ + 8, FIRST, FIRST * 2)"),
        (),
    ),
    "types of a function that stays one, with the same values": (
        """
template <typename From, typename To> __device__ To turned(From x) { return (To)((float)x * 1.5f); }
template <typename A, typename B> __global__ void k(A* out, const B* in, int n) {
  out[threadIdx.x] = (A)(float)turned<B, A>(in[threadIdx.x]);
}""",
        ("k<float, float>", "k<__half, __half>"),
        ("in_[tidx]", ", B, A)"),
        (),
    ),
}


@pytest.mark.parametrize("what", COINCIDENCES)
def test_values_that_agree_by_chance_are_no_parameter(tmp_path, what):
    kernel, instances, there, absent = COINCIDENCES[what]
    text = emitted(tmp_path, "py", HEAD + kernel, instances)
    body = text[text.index("@cute.kernel") : text.index("def _launch_k")]
    for wanted in there:
        assert wanted in body, body
    for pattern in absent:
        assert not re.search(pattern, body), body


NAMED = {
    "T keep[VEC];": "lib.local(T, VEC)",
    "constexpr int kLanes = VEC * 2; T keep[kLanes];": "lib.local(T, VEC * 2)",
    "using Row = Pack<T, VEC>; Row keep;": "lib.local(T, VEC)",
}


@pytest.mark.parametrize("declaration", NAMED)
def test_parameters_that_the_source_names_stay(tmp_path, declaration):
    use = "keep.data" if "Row" in declaration else "keep"
    kernel = f"""
template <typename T, int VEC, int OTHER> __global__ void k(T* out, const T* in, int n) {{
  {declaration}
  for (int i = 0; i < VEC; ++i) {use}[i] = in[i];
  out[threadIdx.x] = {use}[n & 3];
}}"""
    text = emitted(tmp_path, "py", HEAD + kernel, ("k<float, 4, 4>", "k<__half, 8, 8>"))
    assert NAMED[declaration] in text
    assert "OTHER)" not in text[text.index("@cute.kernel") : text.index("def _launch_k")].split("):", 1)[1]


def test_a_size_is_written_with_sizeof(tmp_path):
    kernel = """
template <typename T, int OTHER> __global__ void k(T* out, const T* in, int n) {
  T keep[16 / sizeof(T)];
  for (int i = 0; i < 16 / sizeof(T); ++i) keep[i] = in[i];
  out[threadIdx.x] = keep[n & 3];
}"""
    text = emitted(tmp_path, "py", HEAD + kernel, ("k<float, 4>", "k<__half, 8>"))
    assert "lib.local(T, 128 // T.width)" in text
