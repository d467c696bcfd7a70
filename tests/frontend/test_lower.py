"""Lowering of instantiated kernels to the IR: each construct on a small kernel of its own, all from one parse."""

from __future__ import annotations

import pytest

from porter import ir
from tests.frontend.ir_invariants import validate
from tests.frontend.lowered import body, function, holes, lower_all

SOURCE = r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cub/cub.cuh>
namespace cg = cooperative_groups;

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define UNROLL _Pragma("unroll")
constexpr float kEps = 1e-5f;
enum class Mode { plain, fast = 7 };
__device__ const int kTable[3] = {1, 2, 3};
static __device__ float kLut[2] = {0.5f, 1.5f};
__constant__ float kFromHost[4];
__device__ int kCounter;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T val[N];
  __device__ T& operator[](int i) { return val[i]; }
  __device__ const T& operator[](int i) const { return val[i]; }
  static constexpr int kWidth = N;
};

// Sums over a warp.
template <typename T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}

// Vectorised copy
// with a scale.
template <typename T, int VEC, bool BIAS>
__global__ void __launch_bounds__(256, VEC / 2) generic(T* __restrict__ out, const T* in, int n) {
  constexpr int W = VEC * 2;
  int idx = blockIdx.x * blockDim.x + threadIdx.x;  // linear index
  // load a vector
  Vec<T, VEC> v = *reinterpret_cast<const Vec<T, VEC>*>(in + idx * VEC);
  float acc = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    float x = static_cast<float>(v[i]);
    acc += x * x;
  }
  if constexpr (BIAS) {
    acc += W;
  } else {
    acc -= sizeof(T);
  }
  acc = warp_sum(acc);
  if (idx < n) out[idx] = static_cast<T>(acc * kEps);
}

__global__ void integers(int* p, unsigned char c, short s, unsigned u, long long big) {
  int a = c + s;
  s += a;
  u = u - a;
  big = a * u;
  bool flag = a;
  a = flag ? c << 2 : s >> 1;
  a = -c + ~s + !u;
  unsigned char d = c + 1;
  p[0] = CEIL_DIV(a, 4) + d;
  c++;
}

__global__ void effects(int* p, int n) {
  int i = 0;
  *p++ = i++;
  p[i++] = n;
  int j = (i = 3, n + i);
  int k = ++i;
  j = k = n;
  if (i++ < 4 && n-- > 0) p[0] = j;
  while (n-- > 0) p[n] += 2;
  for (int m = 0; (i = p[m]) != 0; m++) p[m] = 1;
  n > 1 ? p[0]++ : p[1]--;
}

__global__ void loops(float* p, int n) {
  float sum = 0;
#pragma unroll 4
  for (int i = 0, j = n; i < j; i += 2, --j) sum += p[i];
  for (;;) {
    if (sum > 1) break;
    sum += 1;
  }
  do {
    if (n == 2) continue;
    n /= 2;
  } while (n > 0);
  UNROLL for (int i = 0; i < 3; i++) sum += i;
#pragma unroll 1
  for (; n < 3;) n++;
#pragma nounroll
  for (n = 0; n < 3; n++) sum *= 2;
  float tile[2][3] = {{1, 2, 3}, {4}};
  for (auto& row : tile)
    for (float x : row) sum += x;
  do { sum = 0; } while (0);
  p[0] = sum;
}

__global__ void switches(int* p, int n) {
  switch (n) {
    case 0:
    case 1: p[0] = 1; break;
    case 2: p[0] = 2;
    case 3: {
      if (p[1]) break;
      p[0] = 3;
      break;
    }
    default: p[0] = 4; return;
  }
  switch (n) { default: break; }
}

struct Pair {
  float m, d = 1.f;
  __device__ Pair(float a) : m(a) { d += 2; }
};
struct Plain { int a; float b = 2.f; };
struct Base { int id; };
struct Derived : Base { float v; __device__ float get() const { return v + id; } };
union Bits { float f; unsigned u; };
struct Holder { union { int i; float g; }; float arr[2]; };

__global__ void records(float* p, Plain arg) {
  Pair pair(p[0]);
  Pair copy = pair;
  Plain x;
  Plain y{1};
  Plain z = {.a = 3, .b = 4};
  y = z;
  Derived d;
  d.id = 2;
  p[1] = d.get() + copy.d + x.b + arg.b;
  Bits bits;
  bits.f = p[2];
  Holder h;
  h.i = bits.u;
  h.arr[1] = h.g;
  auto [m, q] = pair;
  p[3] = m + q + h.arr[1];
  float4 f4 = make_float4(1, 2, p[4], p[5]);
  reinterpret_cast<float4*>(p)[3] = f4;
  dim3 grid(4, 2);
  p[6] = grid.y + f4.w;
}

__device__ float& slot(float* p, int i = 2) { return p[i]; }
__device__ void bump(float& x, int& count) { x += 1; count++; }
__device__ float square(const float& x) { return x * x; }
template <float (*FN)(const float&)> __device__ float apply(float x) { return FN(x); }
template <typename F> __device__ void each(float* p, int n, F&& f) { for (int i = 0; i < n; i++) p[i] = f(p[i]); }
struct Scale { float s; __device__ float operator()(float x) const { return x * s; } };
template <typename T> struct Max { __device__ T operator()(const T& a, const T& b) const { return a > b ? a : b; } };

__global__ void calls(float* p, int n) {
  slot(p) = 3;
  slot(p, n) += 1;
  float x = p[0];
  int count = 0;
  bump(x, count);
  p[1] = square(x + 1) + apply<square>(x);
  each(p, n, Scale{2.f});
  each(p, 2, [=](float y) { return y * x; });
  auto f = [&](float y) { count++; return y + x; };
  x = 4;
  p[2] = f(p[3]) * f(2);
  p[3] = Max<float>()(x, p[4]);
}

__global__ void references(float* p) {
  float a[4] = {};
  float& r = a[1];
  r = 2;
  const float& c = p[3] + 1;
  float* q = &a[2];
  float(&all)[4] = a;
  q[1] = c + all[0];
  p[0] = *q + *(&a[0]) + (q - a);
  if (q != nullptr && p) p += 1;
  volatile float* vp = p;
  *vp = 2;
  unsigned short us = reinterpret_cast<unsigned short&>(p[0]);
  p[us] = *(float*)&us;
  (p[0] > 0 ? a[0] : a[1]) = 5;
}

template <typename T>
__global__ void halves(T* h, float* f, half2* h2) {
  T a = h[0] * h[1] + T(2.f);
  a += h[2];
  a = -a;
  float x = a;
  bool less = a < h[3];
  h[4] = x;
  f[0] = __half2float(__float2half(x)) + less;
  h2[0] = __hfma2(h2[1], h2[2] + h2[3], half2(h2[4].x, h2[4].y));
  h[5] = std::numeric_limits<T>::max();
  h[6] = h[7];
}

template <typename F8>
__global__ void eights(F8* o, const float* x, unsigned char* raw) {
  o[0] = F8(x[0]);
  float back = float(o[1]);
  raw[0] = __nv_cvt_float_to_fp8(back, __NV_SATFINITE, __NV_E4M3);
  raw[1] = o[2].__x;
}

__global__ void shared_memory(float* p) {
  __shared__ float tile[4][33];
  extern __shared__ __align__(16) unsigned char dyn[];
  __shared__ Bits bits;
  float* buffer = reinterpret_cast<float*>(dyn);
  tile[threadIdx.y][threadIdx.x] = p[threadIdx.z];
  buffer[1] = tile[0][1];
  bits.f = 1;
  __syncthreads();
}

__global__ void primitives(float* p) {
  using BlockReduce = cub::BlockReduce<float, 256>;
  __shared__ typename BlockReduce::TempStorage storage;
  float x = BlockReduce(storage).Sum(p[0]);
  x = BlockReduce(storage).Reduce(x, cub::Max());
  x = BlockReduce(storage).Reduce(x, [](float a, float b) { return a * b; });
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  x += cg::reduce(warp, x, cg::plus<float>{});
  block.sync();
  p[warp.thread_rank()] = warp.shfl_xor(x, 1);
}

__global__ void builtin_things(float* p, unsigned* u, int n) {
  int lane = threadIdx.x % warpSize;
  u[0] = atomicAdd(&u[1], 1u);
  p[0] = std::min(p[1], 2.f) + std::max({p[2], p[3], 1.f}) + fmaxf(__expf(p[4]), INFINITY);
  p[1] = std::numeric_limits<float>::lowest() + int(Mode::fast) + kTable[lane & 1] + kLut[1];
  asm volatile("add.f32 %0, %1, " "%2; // %%\n" : "=f"(p[2]) : "f"(p[3]), "f"(1.0f) : "memory");
  assert(n > 0 && "positive");
  if (n < 0) { printf("bad %d\n", n); __trap(); }
  p[5] = __ldg(p + 3) + std::is_same<int, float>::value;
}

template <typename T> static constexpr T kLimit = std::numeric_limits<T>::max();
struct ArgMax {
  template <typename T> __device__ T operator()(const T& a, const T& b) const { return a.m > b.m ? a : b; }
};
struct Entry {
  float m; int i;
  __device__ Entry operator+(const Entry& o) const { return {m + o.m, i}; }
};
__device__ float larger(float a, float b) { return a > b ? a : b; }

__global__ void callables(float* p) {
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  __shared__ typename cub::BlockReduce<Entry, 128>::TempStorage storage;
  p[0] = cg::reduce(warp, p[1], larger);
  Entry e{p[2], 3};
  e = ArgMax()(e, Entry{1.f, 2});
  e = cub::BlockReduce<Entry, 128>(storage).Reduce(e, ArgMax());
  e = cub::BlockReduce<Entry, 128>(storage).Sum(e);
  union { int whole; float part; };
  whole = e.i;
  dim3 position = threadIdx;
  p[position.y] = part + float(kLimit<__half>) + e.m;
}

__global__ void untranslatable(float* p, int n) {
  p[0] = kFromHost[1];
  p[1] = kCounter;
  if (n == 0) goto inside;
  p[2] = 1;
  if (n > 1) {
inside:
    p[3] = 2;
  }
  float* q = new float[2];
  float (*op)(const float&) = reinterpret_cast<float (*)(const float&)>(static_cast<long>(n));
  p[4] = op(2);
}
"""

INSTANCES = (
    "generic<float, 4, true>", "generic<__nv_bfloat16, 8, false>", "halves<half>", "halves<__nv_bfloat16>",
    "eights<__nv_fp8_e4m3>", "eights<__nv_fp8_e5m2>",
)  # fmt: skip


@pytest.fixture(scope="module")
def kernels() -> dict[str, ir.Kernel]:
    return lower_all(SOURCE, *INSTANCES)


def test_every_kernel_is_in_normal_form(kernels: dict[str, ir.Kernel]) -> None:
    assert {name: validate(k) for name, k in kernels.items()} == {name: [] for name in kernels}


def test_only_the_untranslatable_kernel_has_holes(kernels: dict[str, ir.Kernel]) -> None:
    assert [name for name, k in kernels.items() if holes(k)] == ["untranslatable"]


def test_every_node_has_a_span(kernels: dict[str, ir.Kernel]) -> None:
    for k in kernels.values():
        for n in ir.walk(k.body):
            assert n.span.line > 0, n


class TestTemplates:
    def test_instance_and_launch_bounds(self, kernels: dict[str, ir.Kernel]) -> None:
        k = kernels["generic<__nv_bfloat16, 8, false>"]
        assert k.targs == (("T", ir.BF16), ("VEC", 8), ("BIAS", False))
        assert k.launch_bounds == (256, 4)
        assert k.comment == "Vectorised copy\nwith a scale."
        assert k.params[0] == ir.FunctionParam("out", ir.Pointer(ir.BF16), restrict=True)
        assert k.params[1].type == ir.Pointer(ir.BF16, const=True)

    def test_body(self, kernels: dict[str, ir.Kernel]) -> None:
        assert body(kernels["generic<float, 4, true>"]) == [
            "constexpr i32 W = 4<VEC> * 2;",
            "// linear index",
            "i32 idx = i32(blockIdx.x * blockDim.x + threadIdx.x);",
            "// load a vector",
            "Vec<float, 4> v = *const Vec<float, 4>*(in + idx * 4<VEC>);",
            "f32 acc = 0.0f;",
            "#unroll",
            "for (i32 i = 0; i < 4<VEC>; i = i + 1) {",
            "f32 x = Vec::operator[](v, i);",
            "acc = acc + x * x;",
            "}",
            "if constexpr (true<BIAS>) {  // taken: yes",
            "acc = acc + f32(8<W>);",
            "}",
            "acc = warp_sum(acc);",
            "if (idx < n) {",
            "out[idx] = acc * 9.999999747378752e-06f<kEps>;",
            "}",
        ]

    def test_untaken_arm_is_empty(self, kernels: dict[str, ir.Kernel]) -> None:
        k = kernels["generic<__nv_bfloat16, 8, false>"]
        branch = next(n for n in ir.walk(k.body) if isinstance(n, ir.If) and n.is_constexpr)
        assert branch.taken is False and branch.then == () and len(branch.orelse) == 1
        assert "acc = acc - f32(2ul<sizeof(T)>);" in body(k)
        assert "f32 x = f32(Vec::operator[](v, i));" in body(k)

    def test_layout(self, kernels: dict[str, ir.Kernel]) -> None:
        k = kernels["generic<__nv_bfloat16, 8, false>"]
        vec = next(n.type for n in ir.walk(k.body) if isinstance(n, ir.Decl) and n.name == "v")
        assert vec == ir.Struct("Vec<__nv_bfloat16, 8>", (ir.StructField("val", ir.Array(ir.BF16, 8), 0),), 16, 16)

    def test_functions_know_their_template_arguments(self, kernels: dict[str, ir.Kernel]) -> None:
        f = next(f for f in kernels["generic<float, 4, true>"].functions.values() if f.name == "warp_sum")
        assert f.targs == (("T", ir.F32),) and f.comment == "Sums over a warp."
        loop = f.body[0]
        assert isinstance(loop, ir.For) and loop.unroll == 0


def test_integer_promotion_is_visible(kernels: dict[str, ir.Kernel]) -> None:
    assert body(kernels["integers"]) == [
        "i32 a = i32(c) + i32(s);",
        "s = i16(i32(s) + a);",
        "u = u - u32(a);",
        "big = i64(u32(a) * u);",
        "bool flag = bool(a);",
        "a = flag ? i32(c) << 2 : i32(s) >> 1;",
        "a = -i32(c) + ~i32(s) + i32(!bool(u));",
        "u8 d = u8(i32(c) + 1);",
        "p[0] = (a + 4 - 1) / 4 + i32(d);",
        "c = u8(i32(c) + 1);",
    ]


def test_side_effects_become_statements(kernels: dict[str, ir.Kernel]) -> None:
    assert body(kernels["effects"]) == [
        "i32 i = 0;",
        "const i32 old = i;",
        "i = i + 1;",
        "const i32* old_1 = p;",
        "p = p + 1;",
        "*old_1 = old;",
        "const i32 value = n;",
        "const i32 old_2 = i;",
        "i = i + 1;",
        "p[old_2] = value;",
        "i = 3;",
        "i32 j = n + i;",
        "i = i + 1;",
        "i32 k = i;",
        "k = n;",
        "j = k;",
        "const i32 old_3 = i;",
        "i = i + 1;",
        "bool cond = old_3 < 4;",
        "if (cond) {",
        "const i32 old_4 = n;",
        "n = n - 1;",
        "cond = old_4 > 0;",
        "}",
        "if (cond) {",
        "p[0] = j;",
        "}",
        "while (old_5 > 0) {",
        "pre:",
        "const i32 old_5 = n;",
        "n = n - 1;",
        "p[n] = p[n] + 2;",
        "}",
        "for (i32 m = 0; ; m = m + 1) {",
        "i = p[m];",
        "if (!(i != 0)) {",
        "break;",
        "}",
        "p[m] = 1;",
        "}",
        "if (n > 1) {",
        "p[0] = p[0] + 1;",
        "} else {",
        "p[1] = p[1] - 1;",
        "}",
    ]


def test_loops(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["loops"]
    unrolls = [n.unroll for n in ir.walk(k.body) if isinstance(n, ir.For)]
    assert unrolls == [4, None, 0, 1, 1, None, None]
    lines = body(k)
    assert "for (i32 i = 0; i32 j = n; i < j; i = i + 2, j = j - 1) {" in lines
    assert lines[lines.index("do {") : lines.index("do {") + 6] == [
        "do {", "if (n == 2) {", "continue;", "}", "n = n / 2;", "} while (n > 0);",
    ]  # fmt: skip
    assert "f32 tile[2][3] = f32[2][3]{f32[3]{1.0f, 2.0f, 3.0f}, f32[3]{4.0f, 0.0f, 0.0f}};" in lines
    assert "f32 &row[3] = tile[i_2];" in lines
    assert "f32 x = row[i_3];" in lines
    assert not any(isinstance(n, ir.DoWhile) and isinstance(n.cond, ir.Const) for n in ir.walk(k.body))


def test_fallthrough_is_expanded_and_breaks_are_gone(kernels: dict[str, ir.Kernel]) -> None:
    first, second = (n for n in ir.walk(kernels["switches"].body) if isinstance(n, ir.Switch))
    assert [values for values, _ in first.cases] == [(0, 1), (2,), (3,), None]
    assert body(kernels["switches"])[:23] == [
        "switch (n) {",
        "case 0, 1:", "p[0] = 1;",
        "case 2:", "p[0] = 2;", "{", "if (bool(p[1])) {", "} else {", "p[0] = 3;", "}", "}",
        "case 3:", "{", "if (bool(p[1])) {", "} else {", "p[0] = 3;", "}", "}",
        "default:", "p[0] = 4;", "return;",
        "}", "switch (n) {",
    ]  # fmt: skip
    assert second.cases == ((None, ()),)


def test_records(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["records"]
    assert function(k, "Pair::Pair") == [
        "void Pair::Pair(Pair &this, f32 a) {", "this.m = a;", "this.d = 1.0f;", "this.d = this.d + 2.0f;",
    ]  # fmt: skip
    assert function(k, "Derived::get")[1:] == ["return this.v + f32(this.Base.id);"]
    lines = body(k)
    for line in (
        "Pair pair;", "Pair::Pair(pair, p[0]);", "Pair copy = pair;", "x.b = 2.0f;", "Plain y = Plain{1, 2.0f};",
        "Plain z = Plain{3, 4.0f};", "y = z;", "d.Base.id = 2;", "h._anon0.i = i32(bits.u);", "h.arr[1] = h._anon0.g;",
        "Pair m_q = pair;", "p[3] = m_q.m + m_q.d + h.arr[1];", "float4 f4 = float4{1.0f, 2.0f, p[4], p[5]};",
        "float4*(p)[3] = f4;", "dim3 grid = dim3{4u, 2u, 1u};",
    ):  # fmt: skip
        assert line in lines, line
    union = next(n.type for n in ir.walk(k.body) if isinstance(n, ir.Decl) and n.name == "bits")
    assert isinstance(union, ir.Struct) and union.is_union and union.size == 4


def test_calls(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["calls"]
    functions = {f.name: f for f in k.functions.values()}
    assert functions["slot"].ret_ref
    assert [(p.name, p.by_ref) for p in functions["bump"].params] == [("x", True), ("count", True)]
    assert not functions["square"].params[0].by_ref, "a const reference of a pure function is a value"
    assert [p.name for p in functions["Max::operator()"].params] == ["a", "b"], "an unused object is not passed"
    lambdas = [f for f in k.functions.values() if f.captures_enclosing]
    assert sorted(f.name.split("_")[0] for f in lambdas) == ["each", "lambda", "lambda"]
    lines = body(k)
    for line in (
        "slot(p, 2) = 3.0f;", "bump(x, count);", "p[1] = square(x + 1.0f) + apply(x);", "each(p, n, Scale{2.0f});",
        "f32 x_copy = x;", "each#2(p, 2);", "p[3] = Max::operator()(x, p[4]);",
    ):  # fmt: skip
        assert line in lines, line
    assert "f32 &ref = slot(p, n);" in lines and "ref = ref + 1.0f;" in lines


def test_lambda_calls_keep_their_order(kernels: dict[str, ir.Kernel]) -> None:
    lines = body(kernels["calls"])
    calls = [line for line in lines if "_result" in line]
    assert len(calls) == 3 and calls[0].startswith("const f32 lambda_") and calls[1].startswith("const f32 lambda_")
    assert calls[2].startswith("p[2] = lambda_")


def test_references_and_pointers(kernels: dict[str, ir.Kernel]) -> None:
    assert body(kernels["references"]) == [
        "f32 a[4] = f32[4]{0.0f, 0.0f, 0.0f, 0.0f};",
        "f32 &r = a[1];",
        "r = 2.0f;",
        "const f32 c = p[3] + 1.0f;",
        "f32* q = &a[2];",
        "f32 &all[4] = a;",
        "q[1] = c + all[0];",
        "p[0] = *q + a[0] + f32(q - decay(a));",
        "if (q != null && p != null) {",
        "p = p + 1;",
        "}",
        "f32* vp = p;",
        "*volatile vp = 2.0f;",
        "u16 us = *u16*(p + 0);",
        "p[i32(us)] = *f32*(&us);",
        "*(p[0] > 0.0f ? &a[0] : &a[1]) = 5.0f;",
    ]


def test_half_precision_classes_are_scalars(kernels: dict[str, ir.Kernel]) -> None:
    for name, scalar, biggest in (("half", "f16", 65504.0), ("__nv_bfloat16", "bf16", 3.3895313892515355e38)):
        lines = body(kernels[f"halves<{name}>"])
        assert lines == [
            f"{scalar} a = h[0] * h[1] + {scalar}(2.0f);",
            "a = a + h[2];",
            "a = -a;",
            "f32 x = f32(a);",
            "bool less = a < h[3];",
            f"h[4] = {scalar}(x);",
            "f[0] = __half2float(__float2half(x)) + f32(i32(less));",
            "h2[0] = __hfma2(h2[1], __hadd2(h2[2], h2[3]), __half2{h2[4].x, h2[4].y});",
            f"h[5] = {biggest!r}_{scalar}<std::numeric_limits<T>::max()>;",
            "h[6] = h[7];",
        ]


def test_fp8(kernels: dict[str, ir.Kernel]) -> None:
    for name, scalar in (("__nv_fp8_e4m3", "e4m3"), ("__nv_fp8_e5m2", "e5m2")):
        assert body(kernels[f"eights<{name}>"]) == [
            f"o[0] = {scalar}(x[0]);",
            "f32 back = f32(o[1]);",
            "raw[0] = __nv_cvt_float_to_fp8(back, 1u<__NV_SATFINITE>, 0u<__NV_E4M3>);",
            "raw[1] = *u8*(o + 2);",
        ]


def test_shared_memory(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["shared_memory"]
    declared = [n for n in k.body if isinstance(n, ir.SharedDecl)]
    assert [(d.name, d.type, d.dynamic, d.align) for d in declared[:2]] == [
        ("tile", ir.Array(ir.Array(ir.F32, 33), 4), False, 0),
        ("dyn", ir.Array(ir.U8, 0), True, 16),
    ]
    assert isinstance(declared[2].type, ir.Struct) and declared[2].type.is_union
    assert "tile[threadIdx.y][threadIdx.x] = p[threadIdx.z];" in body(k)
    assert "f32* buffer = f32*(decay(dyn));" in body(k)


def test_cub_and_cooperative_groups_are_intrinsics(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["primitives"]
    total = next(n for n in ir.walk(k.body) if isinstance(n, ir.Intrinsic) and n.name == "cub::BlockReduce::Sum")
    assert total.targs == (ir.F32, 256)
    assert isinstance(total.args[0], ir.Intrinsic) and total.args[0].name == "cub::BlockReduce"
    storage = next(n for n in k.body if isinstance(n, ir.SharedDecl))
    assert isinstance(storage.type, ir.Struct) and storage.type.fields == ()
    given = [n for n in ir.walk(k.body) if isinstance(n, ir.Intrinsic) and n.name == "function"]
    assert len(given) == 1 and k.functions[given[0].targs[0]].params[0].type == ir.F32
    lines = body(k)
    assert "cooperative_groups::thread_block::sync(block);" in lines
    assert "cooperative_groups::thread_block_tile<32> warp = cooperative_groups::tiled_partition<32>(block);" in lines


def test_functions_and_functors_given_to_libraries(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["callables"]
    given = [n for n in ir.walk(k.body) if isinstance(n, ir.Intrinsic) and n.name == "function"]
    assert [k.functions[n.targs[0]].name for n in given] == ["larger", "ArgMax::operator()"]
    names = [f.name for f in k.functions.values()]  # Sum of the user's type is lowered with its operator
    assert "BlockReduce::Sum" in names
    assert "Entry::operator+" in names
    assert not any(f.captures_enclosing for f in k.functions.values())
    lines = body(k)
    assert "unnamed.whole = e.i;" in lines
    assert "dim3 position = dim3{threadIdx.x, threadIdx.y, threadIdx.z};" in lines
    assert "p[position.y] = unnamed.part + f32(65504.0_f16<kLimit>) + e.m;" in lines


def test_library_functions_and_constants(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["builtin_things"]
    assert body(k) == [
        "i32 lane = i32(threadIdx.x % u32(warpSize));",
        "u[0] = atomicAdd(u + 1, 1u);",
        "p[0] = min(p[1], 2.0f) + max(max(p[2], p[3]), 1.0f) + fmaxf(__expf(p[4]), inff<INFINITY>);",
        "p[1] = -3.4028234663852886e+38f<std::numeric_limits<float>::lowest()> + f32(7<Mode::fast>)"
        " + f32(kTable[lane & 1]) + kLut[1];",
        'asm volatile memory "add.f32 %0, %1, %2; // %%\\n" : "=f"(p[2]) : "f"(p[3]), "f"(1.0f);',
        "assert(n > 0 && true);",
        "if (n < 0) {",
        'printf("bad %d\\n", n);',
        "__trap();",
        "}",
        "p[5] = __ldg(p + 3) + f32(0<std::is_same<int, float>::value>);",
    ]
    assert [(g.name, g.value) for g in k.globals] == [("kTable", (1, 2, 3)), ("kLut", (0.5, 1.5))]


def test_what_cannot_be_translated_is_a_hole_and_the_rest_is_there(kernels: dict[str, ir.Kernel]) -> None:
    k = kernels["untranslatable"]
    assert [code for code, _ in holes(k)] == ["PRT110", "PRT212", "PRT220", "PRT220"]
    lines = body(k)
    assert lines[:2] == ["p[0] = kFromHost[1];", "p[1] = f32(*kCounter);"]
    assert [(s.name, s.kind) for s in k.symbols] == [("kCounter", "__device__"), ("kFromHost", "__constant__")]
    assert "p[2] = 1.0f;" in lines
    assert "if (n == 0) {" in lines
    stmt = next(n for n in ir.walk(k.body) if isinstance(n, ir.HoleStmt) and n.code == "PRT110")
    assert stmt.cuda == "goto inside" and stmt.span.line > 0


def test_structure_of_printed_text_is_stable() -> None:
    one = lower_all("__global__ void k(int* p) { p[threadIdx.x] = 1; }")["k"]
    two = lower_all("__global__ void k(int* p) { p[threadIdx.x] = 1; }")["k"]
    assert one == two and body(one) == ["p[threadIdx.x] = 1;"]
