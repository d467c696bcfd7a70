"""Host code is evaluated: launches come out in terms of named sizes, however the launcher spells them."""

from pathlib import Path

import pytest

from porter.case.reader import check_case, parse_case
from porter.frontend.case.draft import case_from_launch, derive_case
from porter.frontend.case.text import case_text
from porter.frontend.host.explore import entries
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source


def unit_of(text):
    return parse_source(Source(Path("k.cu"), text), ParseOptions())


@pytest.fixture(scope="module")
def cases():
    made = {}

    def derived(text, kernel):
        if text not in made:
            made[text] = unit_of(text)
        return derive_case(made[text], made[text].kernel(kernel))

    return derived


def launch(case):
    return case.launch.grid, case.launch.block, case.launch.smem


KERNEL = "__global__ void {0}(const float* in, float* out, int n) {{ out[threadIdx.x] = in[n - 1]; }}\n"

QUOTIENTS = {
    "plain": "(n + 255) / 256",
    "minus": "(n - 1) / 256 + 1",
    "rest": "n / 256 + (n % 256 != 0)",
    "rest_is_positive": "n / 256 + (n % 256 > 0)",
    "ternary": "n % 256 == 0 ? n / 256 : n / 256 + 1",
    "rounded": "static_cast<int>(std::ceil(static_cast<float>(n) / 256))",
    "helper": "blocks_for(n, 256)",
    "variable": "(n + threads - 1) / threads",
    "shift": "(n + 255) >> 8",
}
ROUNDED_UP = (
    "#include <cmath>\nstatic int blocks_for(int a, int b) { return (a + b - 1) / b; }\n"
    + "".join(KERNEL.format(name) for name in QUOTIENTS)
    + "".join(
        f"void go_{name}(const float* in, float* out, int n) {{ const int threads = 256; "
        f"{name}<<<{text}, threads>>>(in, out, n); }}\n"
        for name, text in QUOTIENTS.items()
    )
)


@pytest.mark.parametrize("name", QUOTIENTS)
def test_every_spelling_of_a_rounded_up_quotient_is_one(cases, name):
    assert launch(cases(ROUNDED_UP, name)) == (("ceil_div(n, 256)",), ("256",), "0")


NAMES = (
    "twice", "member", "updated", "doubled", "choice", "least", "by_ex", "by_array", "together", "lambda", "macro",
    "wrapped", "handed", "once", "other",
)  # fmt: skip
WAYS = (
    "#include <algorithm>\n#include <cuda_runtime.h>\n"
    + "".join(map(KERNEL.format, NAMES))
    + """
void go_twice(const float* in, float* out, int n, int rows) {
  int threads = 64;
  int blocks = (n + threads - 1) / threads;
  once<<<blocks, threads>>>(in, out, n);
  blocks = rows;
  threads = n < 512 ? n : 512;
  twice<<<blocks, threads>>>(in, out, n);
}
void go_member(const float* in, float* out, int n, int h) {
  dim3 block(16, 4);
  dim3 grid((n + block.x - 1) / block.x, (h + block.y - 1) / block.y);
  member<<<grid, block>>>(in, out, n);
}
void go_updated(const float* in, float* out, int n) {
  dim3 block(n < 1024 ? n : 1024);
  block.x = 32 * ((block.x + 31) / 32);
  dim3 grid;
  grid.y = 3;
  updated<<<grid, block, block.x * sizeof(float)>>>(in, out, n);
}
void go_doubled(const float* in, float* out, int n) {
  int threads = 32;
  while (threads < n && threads < 512) threads *= 2;
  doubled<<<1, threads>>>(in, out, n);
}
void go_choice(const float* in, float* out, int n, int h) {
  int rows = h < 16 ? 4 : 8;
  if (n > 4096) rows = 1;
  choice<<<h, dim3(32, rows)>>>(in, out, n);
}
void go_least(const float* in, float* out, int n, int m) {
  least<<<std::max(1, std::min(m, 64)), std::min<int>(n, 256)>>>(in, out, n);
}
void go_by_ex(const float* in, float* out, int n, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((n + 127) / 128);
  config.blockDim = dim3(128);
  config.stream = stream;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = n % 2 == 0 ? 2 : 1;
  attributes[0].val.clusterDim.y = 1;
  attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  cudaLaunchKernelEx(&config, by_ex, in, out, n);
}
void go_by_array(const float* in, float* out, int n) {
  void* arguments[] = {&in, &out, &n};
  cudaLaunchKernel((void*)by_array, dim3(n), dim3(64), arguments, 0, 0);
}
void go_together(const float* in, float* out, int n) {
  void* arguments[] = {(void*)&in, (void*)&out, (void*)&n};
  cudaLaunchCooperativeKernel((const void*)together, dim3(8), dim3(64), arguments, 0, 0);
}
void go_lambda(const float* in, float* out, int n) {
  auto run = [&](int threads) { lambda<<<(n + threads - 1) / threads, threads>>>(in, out, n); };
  run(96);
}
#define RUN(kernel, threads) kernel<<<(n + threads - 1) / threads, threads>>>(in, out, n)
void go_macro(const float* in, float* out, int n) { RUN(macro, 160); }
struct Shape { dim3 grid, block; size_t bytes; };
template <class... P, class... A> void start(void (*kernel)(P...), const Shape& shape, A... args) {
  kernel<<<shape.grid, shape.block, shape.bytes>>>(P(args)...);
}
void go_wrapped(const float* in, float* out, int n) {
  Shape shape{dim3((n + 255) / 256), dim3(256), 64};
  start(wrapped, shape, in, out, n);
}
static void hand(const float* in, float* out, int n, dim3 grid, dim3 block) { handed<<<grid, block>>>(in, out, n); }
void go_handed(const float* in, float* out, int n) { hand(in, out, n, dim3(n, 2), dim3(32)); }
int elsewhere(int);
void go_other(const float* in, float* out, int n) {
  const int per_block = elsewhere(n);
  other<<<(n + per_block - 1) / per_block, 128>>>(in, out, n);
}
"""
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("once", (("ceil_div(n, 64)",), ("64",), "0")),
        ("twice", (("rows",), ("min(n, 512)",), "0")),
        ("member", (("ceil_div(n, 16)", "ceil_div(h, 4)"), ("16", "4"), "0")),
        ("updated", (("1", "3"), ("ceil_div(min(n, 1024), 32) * 32",), "ceil_div(min(n, 1024), 32) * 128")),
        ("doubled", (("1",), ("max(min(next_pow2(n), 512), 32)",), "0")),
        ("choice", (("h",), ("32", "1 if 4096 < n else 4 if h < 16 else 8"), "0")),
        ("least", (("max(1, min(m, 64))",), ("min(n, 256)",), "0")),
        ("by_ex", (("ceil_div(n, 128)",), ("128",), "0")),
        ("by_array", (("n",), ("64",), "0")),
        ("together", (("8",), ("64",), "0")),
        ("lambda", (("ceil_div(n, 96)",), ("96",), "0")),
        ("macro", (("ceil_div(n, 160)",), ("160",), "0")),
        ("wrapped", (("ceil_div(n, 256)",), ("256",), "64")),
        ("handed", (("n", "2"), ("32",), "0")),
        ("other", (("ceil_div(n, per_block)",), ("128",), "0")),
    ],
)
def test_launches_are_followed(cases, name, expected):
    assert launch(cases(WAYS, name)) == expected


def test_attributes_and_free_sizes(cases):
    by_ex = cases(WAYS, "by_ex").launch
    assert by_ex.pdl and by_ex.cluster == ("2 if n % 2 == 0 else 1", "1", "1")
    assert cases(WAYS, "together").launch.cooperative and not cases(WAYS, "by_array").launch.cooperative
    (free,) = [s for s in cases(WAYS, "other").sizes if s.free]
    assert free.name == "per_block" and free.values and "elsewhere()" in free.comment


TENSORS = """
#include <torch/extension.h>
template <typename T> __global__ void center(T* out, const T* x, int rows, int cols) { out[cols] = x[rows]; }
void go_center(torch::Tensor& out, torch::Tensor& x) {
  TORCH_CHECK(out.sizes() == x.sizes());
  int cols = x.size(-1);
  int rows = x.numel() / cols;
  TORCH_CHECK(cols % 8 == 0, "vectors");
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "center", [&] {
    center<scalar_t><<<rows, 128>>>(out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), rows, cols);
  });
}
__global__ void pairs(const float* x, const float* w, float* y, int B, int S, int D) { y[D] = x[S] * w[B]; }
torch::Tensor go_pairs(torch::Tensor x, torch::Tensor w) {
  TORCH_CHECK(w.dim() == 1 && w.size(0) == x.size(2));
  auto B = x.size(0), S = x.size(1), D = x.size(2);
  auto y = torch::empty_like(x);
  int total = B * S * D;
  pairs<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), B, S, D);
  return y;
}
__global__ void sums(const half* x, float* y, int64_t stride, int d) { y[d] = __half2float(x[stride]); }
torch::Tensor go_sums(torch::Tensor x) {
  const int tokens = x.size(0), d = x.size(1) / 2;
  auto y = torch::zeros({tokens, d}, x.options().dtype(torch::kFloat32));
  sums<<<tokens, std::min(d, 1024)>>>(reinterpret_cast<half*>(x.data_ptr<at::Half>()), y.data_ptr<float>(),
                                      x.stride(0), d);
  return y;
}
__global__ void with_bias(const float* x, const float* bias, float* y, int n) { y[n] = bias ? x[0] + bias[0] : x[0]; }
void go_with_bias(torch::Tensor x, std::optional<torch::Tensor> bias, torch::Tensor y) {
  const float* b = bias.has_value() ? bias->data_ptr<float>() : nullptr;
  int n = x.numel();
  if (n == 0) return;
  with_bias<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), b, y.data_ptr<float>(), n);
}
"""


def shapes(case):
    return {b.name: b.shape for b in case.buffers}


def test_tensors_give_shapes_types_and_constraints(cases):
    center = cases(TENSORS, "center")
    assert shapes(center) == {"out": ("rows", "cols"), "x": ("rows", "cols")}
    assert launch(center) == (("rows",), ("128",), "0")
    assert {i.args for i in center.instances} == {("double",), ("float",), ("c10::Half",)}
    (cols,) = [s for s in center.sizes if s.name == "cols"]
    assert cols.values and all(v % 8 == 0 for v in cols.values)
    assert any("cols % 8 == 0" in g.text and g.span.line for g in center.grounds)
    pairs = cases(TENSORS, "pairs")
    assert shapes(pairs) == {"x": ("B", "S", "D"), "w": ("D",), "y": ("B", "S", "D")}
    assert pairs.launch.grid == ("ceil_div(B * S * D, 256)",)


def test_strides_and_new_tensors(cases):
    sums = cases(TENSORS, "sums")
    assert shapes(sums)["y"] == ("tokens", "x_1 // 2") and len(shapes(sums)["x"]) == 2
    x = next(b for b in sums.buffers if b.name == "x")
    assert x.strides == ("stride", "1") and x.dtype == "f16"
    stride = next(s for s in sums.scalars if s.name == "stride")
    assert len(stride.values) == 2 and stride.values[1].endswith("+ 8")


def test_null_tensors_and_empty_ones(cases):
    bias = cases(TENSORS, "with_bias")
    assert [b.name for b in bias.buffers if b.optional] == ["bias"]
    assert all(0 not in s.values for s in bias.sizes)
    assert shapes(bias)["x"] == ("n",)


INSTANCES = """
template <int PER> __global__ void picked(const float* in, float* out, int n) { out[PER] = in[n]; }
typedef void (*kernel_t)(const float*, float*, int);
static kernel_t pick(int per) {
  switch (per) {
    case 1: return picked<1>;
    case 2: return picked<2>;
  }
  return nullptr;
}
void go_picked(const float* in, float* out, int rows, int n) {
  kernel_t k = pick((n + 255) / 256);
  k<<<rows, 256>>>(in, out, n);
}
template <typename T, int B, int E> __global__ void listed(const T* in, T* out, int n) { out[B] = in[n + E]; }
template <typename T> void go_listed(const T* in, T* out, int n, int which) {
  static void (*const table[])(const T*, T*, int) = {&listed<T, 128, 1>, &listed<T, 256, 2>};
  int threads = which ? 256 : 128, each = which ? 2 : 1;
  table[which]<<<(n + threads * each - 1) / (threads * each), threads>>>(in, out, n);
}
template void go_listed(const float*, float*, int, int);
template <int B> __global__ void sized(const int* in, int* out, int n) { out[B] = in[n]; }
void go_sized(const int* in, int* out, int rows, int n) {
  if (n <= 64) sized<64><<<rows, 64>>>(in, out, n);
  else if (n <= 128) sized<128><<<rows, 128>>>(in, out, n);
  else sized<512><<<rows, 512>>>(in, out, n);
}
template <typename T, int VEC> __global__ void vectors(const T* in, T* out, int d) { out[VEC] = in[d]; }
template <typename T> void go_vectors(const T* in, T* out, int tokens, int d) {
  constexpr int V = 16 / sizeof(T);
  if (d % V == 0) vectors<T, V><<<tokens, d / V, d * sizeof(T)>>>(in, out, d);
  else vectors<T, 1><<<tokens, d, d * sizeof(T)>>>(in, out, d);
}
template void go_vectors<float>(const float*, float*, int, int);
template void go_vectors<__half>(const __half*, __half*, int, int);
"""


@pytest.mark.parametrize(
    ("name", "args", "expected", "when"),
    [
        ("picked", {("1",), ("2",)}, (("rows",), ("256",), "0"), "ceil_div(n, 256) == 1"),
        (
            "listed",
            {("float", "128", "1"), ("float", "256", "2")},
            (("ceil_div(n, B * E)",), ("B",), "0"),
            "",
        ),
        ("sized", {("64",), ("128",), ("512",)}, (("rows",), ("B",), "0"), "n <= 64"),
        (
            "vectors",
            {("__half", "8"), ("__half", "1"), ("float", "4"), ("float", "1")},
            (("tokens",), ("d // VEC",), "sizeof(T) * d"),
            "d % 8 == 0",
        ),
    ],
)
def test_instances_with_what_each_is_launched_with(cases, name, args, expected, when):
    case = cases(INSTANCES, name)
    found = {tuple(a.replace("(int)", "") for a in i.args) for i in case.instances}
    assert found <= args and len(found) >= 2
    grid, block, smem = launch(case)
    assert (tuple(g.replace("E * B", "B * E") for g in grid), block, smem) == expected
    assert not when or any(when in i.when for i in case.instances)


ROLES = """
__global__ void compound(float4* v, const float4* a, int n) { if (threadIdx.x < n) v[threadIdx.x].x += a[0].x; }
__global__ void scaled(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.f; }
struct View {
  float* p; int w;
  __device__ View(float* q, int width) : p(q), w(width) {}
  __device__ float get(int r, int c) const { return p[r * w + c]; }
  __device__ void set(int r, int c, float v) { p[r * w + c] = v; }
};
__global__ void viewed(float* x, const float* k, int w) {
  View v(x, w);
  v.set(0, threadIdx.x, v.get(0, threadIdx.x) * k[threadIdx.x]);
}
__global__ void counted(const int* key, unsigned* bins, int n) { if (threadIdx.x < n) atomicAdd(&bins[key[n]], 1u); }
__global__ void in_two_steps(float* y, const float* x, int n) {
  y[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = y[threadIdx.x] + n;
}
__global__ void gathered(const float* x, const int* ids, float* y, int d) {
  y[blockIdx.x * d + threadIdx.x] = x[ids[blockIdx.x] * d + threadIdx.x];
}
__global__ void scattered(const float* x, const int* where, float* y, int n) { y[where[threadIdx.x]] = x[threadIdx.x]; }
__global__ void segments(const float* x, const int* starts, float* y) {
  float s = 0;
  for (int i = starts[blockIdx.x]; i < starts[blockIdx.x + 1]; ++i) s += x[i];
  y[blockIdx.x] = s;
}
void go(float4* v, const float4* a, float* x, const float* k, const int* ids, unsigned* bins, float* y, int n, int d,
        int rows) {
  compound<<<1, 64>>>(v, a, n);
  scaled<<<1, 64>>>(x, n);
  viewed<<<1, 64>>>(x, k, n);
  counted<<<1, 64>>>(ids, bins, n);
  in_two_steps<<<1, 64>>>(y, k, n);
  gathered<<<rows, d>>>(k, ids, y, d);
  scattered<<<1, n>>>(k, ids, y, n);
  segments<<<rows, 1>>>(k, ids, y);
}
"""


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("compound", {"v": "inout", "a": "in"}),
        ("scaled", {"x": "inout"}),
        ("viewed", {"x": "inout", "k": "in"}),
        ("counted", {"key": "in", "bins": "inout"}),
        ("in_two_steps", {"y": "out", "x": "in"}),
    ],
)
def test_roles_come_from_the_body(cases, name, roles):
    case = cases(ROLES, name)
    assert {b.name: b.role for b in case.buffers} == roles
    assert [b.name for b in case.buffers if b.role_is_guess] == (["y"] if name == "in_two_steps" else [])


def test_whole_numbers_are_filled_by_their_use(cases):
    ids = next(b for b in cases(ROLES, "gathered").buffers if b.name == "ids")
    assert (ids.dist, ids.low) == ("randint", "0") and ids.high in {s.name for s in cases(ROLES, "gathered").sizes}
    starts = next(b for b in cases(ROLES, "segments").buffers if b.name == "starts")
    assert starts.dist == "offsets" and starts.high
    bins = next(b for b in cases(ROLES, "counted").buffers if b.name == "bins")
    assert bins.high is not None


ALLOCATED = """
#include <cuda_runtime.h>
__global__ void rows_of(const float* a, float* b, int rows, int cols) { b[threadIdx.x] = a[cols] + rows; }
__global__ void ends(const double* a, double* b, int n) { b[threadIdx.x] = a[n]; }
void go(const float* h, float* out, int rows, int cols) {
  float *a, *b;
  cudaMalloc(&a, rows * cols * sizeof(float));
  cudaMalloc((void**)&b, sizeof(float) * rows);
  cudaMemcpy(a, h, rows * cols * sizeof(float), cudaMemcpyHostToDevice);
  rows_of<<<rows, 128>>>(a, b, rows, cols);
  cudaMemcpy(out, b, rows * sizeof(float), cudaMemcpyDeviceToHost);
}
void ends_of(const double* host, int n) {
  double *a, *b;
  size_t bytes = n * sizeof(double);
  cudaMallocManaged(&a, bytes);
  cudaMallocAsync(&b, bytes, 0);
  ends<<<1, 64>>>(a, b, n);
}
"""


def test_allocations_say_how_long_buffers_are():
    unit = unit_of(ALLOCATED)
    one, two = (derive_case(unit, unit.kernel(n)) for n in ("rows_of", "ends"))
    assert shapes(one) == {"a": ("cols * rows",), "b": ("rows",)}
    assert shapes(two) == {"a": ("n",), "b": ("n",)}
    for name in ("rows_of", "ends"):
        case = case_from_launch(unit, unit.kernel(name))
        assert case is not None and case.derived.startswith("k.cu:")


def test_what_is_open_stays_open_and_what_is_filled_in_can_be_read():
    unit = unit_of(ROLES)
    info = unit.kernel("scaled")
    case = derive_case(unit, info)
    text, todo = case_text(case)
    assert case.unknown_extents == ("x",) and todo == 1 and case_from_launch(unit, info) is None
    text, todo = case_text(case.with_shape("x", ("n",), "measured"))
    assert todo == 0
    check_case(parse_case(text, Path("k.case.toml")), info)


def test_a_file_is_evaluated_within_its_budget():
    branches = "\n".join(f"  if (n > {i}) threads += {i};" for i in range(60))
    picks = "\n".join(f"  if (m == {i}) {{ k<<<{i} + 1, threads>>>(out, n); return; }}" for i in range(60))
    text = (
        "__global__ void k(float* out, int n) { out[0] = n; }\n"
        f"void go(float* out, int n, int m) {{\n  int threads = 1;\n{branches}\n{picks}\n}}\n"
    )
    (entry,) = entries(unit_of(text))
    assert entry.launches and sum(x.run.steps for x in entry.launches) < 60_000 * len(entry.launches)
