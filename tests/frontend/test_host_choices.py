"""How host code picks what it launches: lambdas with template parameters, texts, checks, globals, specialisations."""

from pathlib import Path

import pytest

from porter.frontend.case.draft import derive_case
from porter.frontend.case.points import Wanted, choose_points
from porter.frontend.host.explore import entries
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source


def unit_of(text):
    return parse_source(Source(Path("k.cu"), text), ParseOptions())


def derived(text, kernel="walk", number=0):
    unit = unit_of(text)
    return derive_case(unit, [k for k in unit.kernels if k.name == kernel][number])


WALK = """
#include <torch/all.h>
template <typename T, int N>
__global__ void walk(T* out, const T* in, int n) {
  for (int k = 0; k < N; ++k) { int i = (blockIdx.x * blockDim.x + threadIdx.x) * N + k; if (i < n) out[i] = in[i]; }
}
template <int V> struct Int { static constexpr int value = V; };
"""
LAMBDAS = {
    "template parameter": """void go(float* out, const float* in, int n) {
      auto launch = [&]<int N>() { walk<float, N><<<(n + 64 * N - 1) / (64 * N), 64>>>(out, in, n); };
      if (n % 4 == 0) launch.template operator()<4>(); else launch.template operator()<1>();
    }""",
    "auto parameter": """void go(float* out, const float* in, int n) {
      auto launch = [&](auto w) {
        constexpr int N = decltype(w)::value; walk<float, N><<<(n + 64 * N - 1) / (64 * N), 64>>>(out, in, n); };
      if (n % 4 == 0) launch(Int<4>{}); else launch(Int<1>{});
    }""",
    "dispatch inside": """void go(torch::Tensor& out, torch::Tensor& in) {
      int n = in.numel();
      auto launch = [&]<int N>() {
        AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "walk", [&] {
          walk<scalar_t, N><<<(n + 64 * N - 1) / (64 * N), 64>>>(out.data_ptr<scalar_t>(), in.data_ptr<scalar_t>(), n);
        });
      };
      if (n % 4 == 0) launch.template operator()<4>(); else launch.template operator()<1>();
    }""",
}


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_lambda_is_run_at_the_template_arguments_of_its_call(name):
    case = derived(WALK + LAMBDAS[name])
    assert {i.args[1]: i.when for i in case.instances} == {"4": "n % 4 == 0", "1": "n % 4 != 0"}
    assert case.launch.block == ("64",) and not any(s.free for s in case.sizes)


TEXTS = {
    "one after the other": 'if (mode == "a") go_<1>(out, in, n); else if (mode == "b") go_<2>(out, in, n);'
    ' else if (mode == "c") go_<4>(out, in, n);',
    "all but": 'if (mode != "a") { if (mode == "b") go_<2>(out, in, n); else go_<4>(out, in, n); }'
    " else go_<1>(out, in, n);",
    "twice": 'if (mode == "a") go_<1>(out, in, n); if (mode == "a") return; if ("b" == mode) go_<2>(out, in, n);'
    " else go_<4>(out, in, n);",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_one_thing_on_each_way(name):
    host = """#include <string>
    template <int N> void go_(float* out, const float* in, int n) { walk<float, N><<<n, 64>>>(out, in, n); }
    """
    go = f"void go(float* out, const float* in, int n, const std::string& mode) {{ {TEXTS[name]} }}"
    unit = unit_of(WALK + host + go)
    (entry,) = [e for e in entries(unit) if e.name == "go"]
    ways = {}
    for x in entry.launches:
        ways.setdefault(id(x.run), []).append(x.template_args[1])
    assert sorted(w for (w,) in ways.values()) == ["1", "2", "4"]


CHECKS = {
    "for one rank": 'if (in.dim() == 2) { TORCH_CHECK(in.size(0) == out.size(0), "rows"); }',
    "for another number": "if (n > 0) { if (out.numel() < n) throw 1; }",
    "in a loop": "if (n > 0) { for (int i = 0; i < 2; ++i) { TORCH_CHECK(in.size(i) > 0); } }",
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_branch_with_a_check_is_no_failure(name):
    host = f"""void go(torch::Tensor& out, torch::Tensor& in) {{
      int n = in.numel(), rows = in.size(0), columns = in.size(1);
      {CHECKS[name]}
      walk<float, 1><<<rows, 64>>>(out.data_ptr<float>(), in.data_ptr<float>(), n);
    }}"""
    case = derived(WALK + host)
    assert case.launch.grid == ("rows",) and case.launch.host_function == "go"


def test_an_arm_that_always_fails_is_a_check():
    host = """void go(float* out, const float* in, int n, int k) {
      if (k == 3) { if (n > 5) throw 1; else throw 2; }
      walk<float, 1><<<n * k, 64>>>(out, in, n);
    }"""
    assert "k != 3" in derived(WALK + host).constraints


GLOBAL = """
struct Properties {{ int multiProcessorCount; }};
int processors = 0; int wide = 64; const int narrow = 32;
void prepare(Properties p, int x) {{ {0} }}
__global__ void walk(float* x, int n) {{ for (int i = blockIdx.x; i < n; i += gridDim.x) x[i] = 1.f; }}
void go(float* x, int n) {{ walk<<<{1}, wide>>>(x, n); }}
"""


@pytest.mark.parametrize(
    "sets, used, grid, free",
    [
        ("processors = p.multiProcessorCount;", "2 * processors", "sm_count() * 2", ()),
        ("processors = x;", "2 * processors", "processors * 2", ("processors",)),
        ("", "narrow", "32", ()),
    ],
)
def test_a_global_that_is_set_is_not_what_it_starts_with(sets, used, grid, free):
    case = derived(GLOBAL.format(sets, used))
    assert case.launch.grid == (grid,) and case.launch.block == ("64",)
    assert tuple(s.name for s in case.sizes if s.free) == free


def test_an_explicit_specialisation_has_its_own_launch():
    text = """#include <cuda_fp16.h>
    template <typename T> __global__ void walk(T* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = T(1); }
    template <> __global__ void walk<half2>(half2* x, int n) { x[threadIdx.x] = __floats2half2_rn(1.f, n); }
    void go_one(float* x, int n) { walk<float><<<1, 32>>>(x, n); }
    void go_two(half2* x, int m) { walk<half2><<<m, 96>>>(x, m); }
    """
    first, second = derived(text, number=0), derived(text, number=1)
    assert (first.launch.block, second.launch.block) == (("32",), ("96",))
    assert first.buffers[0].dtype == "T" and second.buffers[0].dtype == "f16"


VOID = """
template <typename T, typename Out> __global__ void walk(void* out, const void* in, int n) {{
  {0}
  if (threadIdx.x < n) o[threadIdx.x] = (Out)(float)i[threadIdx.x];
}}
template __global__ void walk<float, double>(void*, const void*, int);
void go(void* out, const void* in, int n) {{ walk<float, double><<<1, 64>>>(out, in, n); }}
"""


@pytest.mark.parametrize(
    "casts",
    [
        "Out* o = static_cast<Out*>(out); const T* i = reinterpret_cast<const T*>(in);",
        "Out* o = (Out*)out; auto i = (const T*)in;",
        "using To = Out; using From = T; To* o = static_cast<To*>(out); auto* i = static_cast<const From*>(in);",
    ],
)
def test_a_void_pointer_holds_what_the_body_casts_it_to(casts):
    case = derived(VOID.format(casts))
    assert {b.name: b.dtype for b in case.buffers} == {"out": "Out", "in": "T"}


@pytest.mark.parametrize(
    "comments, shape",
    [
        (("// [batch, heads, width]", "// [batch, heads, width]"), 3),
        (("// [rows, columns] or [columns]", "/* like out: [rows, columns] */"), 2),
    ],
)
def test_comments_behind_tensors_say_how_many_dimensions_they_have(comments, shape):
    host = f"""void go(torch::Tensor& out,  {comments[0]}
            torch::Tensor& in  {comments[1]}
    ) {{ walk<float, 1><<<in.size(0), 64>>>(out.data_ptr<float>(), in.data_ptr<float>(), in.numel()); }}"""
    case = derived(WALK + host)
    assert [len(b.shape) for b in case.buffers] == [shape, shape]


def test_memory_that_the_launcher_clears_is_zeros():
    text = """__global__ void walk(int* seen, int* found, float* y, const float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n && x[i] > 0.f) { atomicAdd(seen, 1); found[0] += 1; y[i] = x[i]; }
    }
    void go(int* seen, int* found, float* y, const float* x, int n) {
      cudaMemset(seen, 0, sizeof(int)); cudaMemsetAsync(found, 1, 4, 0);
      walk<<<n, 64>>>(seen, found, y, x, n);
    }"""
    case = derived(text)
    dists = {b.name: b.dist for b in case.buffers}
    assert dists["seen"] == "zeros" and dists["found"] != "zeros"


def test_sizes_that_are_multiples_of_others_are_found():
    """No value drawn alone is heads * width with at least two heads and a group of heads that divides them."""

    def parts(p):
        heads = p["all"] // p["width"]
        return [p["all"] % p["width"] == 0, heads >= 2, p["width"] % 48 == 0, p["all"] % (48 * 7) == 0]

    sizes = [Wanted("all", (64, 100)), Wanted("width", (64, 100)), Wanted("rows", (1, 7))]
    near = {"width": {48}, "all": {336}}
    points = choose_points(sizes, lambda p: all(parts(p)), [], near, score=lambda p: sum(parts(p)))
    assert points is not None and all(points.values.values())
    made = points.shapes or [{"all": a, "width": w} for a in points.values["all"] for w in points.values["width"]]
    assert all(all(parts(p)) for p in made)


def test_threads_of_a_block_keep_to_usual_numbers():
    text = """__global__ void walk(float* x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] = n; }
    void go(float* x, int n, int threads) { if (n % 3 != 0 || n < 70) return; walk<<<n, threads>>>(x, n); }"""
    (threads,) = [s for s in derived(text).sizes if s.name == "threads"]
    assert threads.values and all(v % 32 == 0 for v in threads.values)
