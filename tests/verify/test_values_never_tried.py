"""Wrong only with values that the case does not list: each is refused, and its right twin passes."""

from __future__ import annotations

import numpy as np
import pytest

from porter.model import PorterError
from porter.verify.original.nvrtc import require_nvrtc
from tests.verify.two_kernels import failing, judge

slow = pytest.mark.slow


def seeds(n):
    return [0, *(pytest.param(k, marks=slow) for k in range(1, n))]


try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)


def case(kernel: str, buffers: str, scalars: str, sizes: str, launch: str, more: str = "") -> str:
    return f'kernel = "{kernel}"\n[sizes]\n{sizes}\n{buffers}\n[scalars]\n{scalars}\n[launch]\n{launch}\n{more}'


def buffer(name: str, dtype: str, shape: str, role: str = "in", more: str = "") -> str:
    return f'[[buffers]]\nname = "{name}"\ndtype = "{dtype}"\nshape = [{shape}]\nrole = "{role}"\n{more}\n'


ROWS = 'grid = ["rows"]\nblock = [64]'

# ---------------------------------------------------------------- numbers that the case gives one value

CLIP = """
__global__ void clip(float* out, const float* x, int n, float limit, float slope, int skip, bool flip) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < skip || i >= n) return;
  float v = fminf(x[i], limit) * slope;
  out[i] = flip ? -v : v;
}
"""
CLIP_CASE = case(
    "clip", buffer("out", "f32", '"n"', "inout") + buffer("x", "f32", '"n"'),
    'n = "n"\nlimit = 2.0\nslope = 0.125\nskip = 3\nflip = true', "n = [64, 100, 200]",
    'grid = ["ceil_div(n, 64)"]\nblock = [64]',
)  # fmt: skip


@pytest.mark.parametrize(
    ("there", "here"),
    [
        pytest.param("limit)", "2.0f)", id="limit"),
        pytest.param("* slope", "* 0.125f", id="slope", marks=slow),
        pytest.param("i < skip", "i < 3", id="int", marks=slow),
        pytest.param("flip ? -v : v", "-v", id="bool", marks=slow),
    ],
)
@pytest.mark.parametrize("seed", [pytest.param(1, marks=slow), 2])
def test_a_number_written_down_is_found(there, here, seed):
    assert failing(judge(CLIP, CLIP, CLIP_CASE, seed)) == {}
    assert failing(judge(CLIP, CLIP.replace(there, here), CLIP_CASE, seed)) == {"numerics": "FAIL"}


def test_a_fixed_number_stays():
    wrong = CLIP.replace("limit)", "2.0f)")
    fixed = CLIP_CASE.replace("limit = 2.0", "limit = { fixed = 2.0 }")
    assert failing(judge(CLIP, wrong, fixed)) == {}


STRIDED = """
__global__ void twice(float* out, const float* x, int cols, int stride) {
  for (int c = threadIdx.x; c < cols; c += 64) out[blockIdx.x * cols + c] = 2.f * x[blockIdx.x * stride + c];
}
"""


STRIDES = [("* stride", "* cols"), pytest.param("* stride", "* (stride / cols * cols)", marks=slow)]


@pytest.mark.parametrize(("there", "here"), STRIDES)
def test_a_stride_that_the_case_gives_once_is_varied(there, here):
    buffers = buffer("out", "f32", '"rows", "cols"', "out")
    buffers += buffer("x", "f32", '"rows", "cols"', "in", 'strides = ["stride", 1]')
    text = case("twice", buffers, 'cols = "cols"\nstride = "cols"', "rows = [1, 3]\ncols = [64, 100]", ROWS)
    assert failing(judge(STRIDED, STRIDED, text)) == {}
    assert "FAIL" in failing(judge(STRIDED, STRIDED.replace(there, here), text)).values()
    assert (
        failing(judge(STRIDED, STRIDED.replace(there, here), text.replace('"cols"\n[l', '{ fixed = "cols" }\n[l')))
        == {}
    )


# ---------------------------------------------------------------- sizes beside multiples of vectors

TAIL = """
__global__ void copy(float* out, const float* x, int cols) {
  const float* p = x + (long long)blockIdx.x * cols;
  float* q = out + (long long)blockIdx.x * cols;
  for (int c = threadIdx.x; c < cols / 4 * 4; c += 64) q[c] = p[c];
  if (threadIdx.x < cols % 4) q[cols / 4 * 4 + threadIdx.x] = p[cols / 4 * 4 + threadIdx.x];
}
"""
TAIL_CASE = case(
    "copy", buffer("out", "f32", '"rows", "cols"', "out") + buffer("x", "f32", '"rows", "cols"'), 'cols = "cols"',
    "rows = [1, 64]\ncols = [4, 64, 128]", ROWS,
)  # fmt: skip


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize(
    "wrong",
    [
        "threadIdx.x < cols % 4 / 2 * 2",
        pytest.param("threadIdx.x < min(cols % 4, 2)", marks=slow),
        pytest.param("blockIdx.x % 16 != 16 - (int)gridDim.x % 16 && threadIdx.x < cols % 4", marks=slow),
    ],
)
def test_a_tail_of_one_and_of_all_but_one_are_always_tried(seed, wrong):
    text = TAIL_CASE.replace("cols = [4, 64, 128]", "cols = [3, 64, 131]")
    assert failing(judge(TAIL, TAIL, text, seed)) == {}
    verdicts = judge(TAIL, TAIL.replace("threadIdx.x < cols % 4", wrong), text, seed)
    assert verdicts["numerics"].status.value == "FAIL"


# ---------------------------------------------------------------- rows beyond 2^31 elements


FAR = ["(long long)blockIdx.x * cols;\n  for"]
FAR += [pytest.param("(long long)blockIdx.x * cols;\n  float", marks=slow)]


@pytest.mark.parametrize("there", FAR)
def test_an_output_row_beyond_2_31_elements(there):
    assert failing(judge(TAIL, TAIL, TAIL_CASE)) == {}
    wrong = TAIL.replace(there, there.replace("(long long)blockIdx.x * cols", "(int)(blockIdx.x * cols)"))
    assert "FAIL" in failing(judge(TAIL, wrong, TAIL_CASE)).values()


@slow
def test_an_original_with_narrow_offsets_is_not_blamed_for_rows_nobody_lists():
    narrow = TAIL.replace("(long long)blockIdx.x", "(int)blockIdx.x")
    assert failing(judge(narrow, narrow, TAIL_CASE)) == {}
    assert failing(judge(narrow, TAIL, TAIL_CASE)) == {}


# ---------------------------------------------------------------- odd rows

NORM = """#include <math_constants.h>
__global__ void soften(float* out, const float* x, int cols) {
  __shared__ float s[64];
  const float* p = x + (long long)blockIdx.x * cols;
  float most = -CUDART_INF_F;
  for (int c = threadIdx.x; c < cols; c += 64) most = fmaxf(most, p[c]);
  s[threadIdx.x] = most;
  __syncthreads();
  for (int k = 0; k < 64; ++k) most = fmaxf(most, s[k]);
  if (most == -CUDART_INF_F) most = 0.f;
  for (int c = threadIdx.x; c < cols; c += 64) out[(long long)blockIdx.x * cols + c] = expf(p[c] - most);
}
"""


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(("if (most == -CUDART_INF_F) most = 0.f;", ""), id="-inf"),
        pytest.param(("expf(p[c] - most)", "expf(p[c]) / expf(most)"), id="huge", marks=slow),
        pytest.param(("(most == -CUDART_INF_F) most", "(most == -CUDART_INF_F || EQUAL) most"), id="equal", marks=slow),
    ],
)
def test_rows_of_one_value_of_minus_infinity_and_with_a_huge_one(seed, wrong):
    buffers = buffer("out", "f32", '"rows", "cols"', "out") + buffer("x", "f32", '"rows", "cols"')
    text = case("soften", buffers, 'cols = "cols"', "rows = [1, 5]\ncols = [64, 100]", ROWS)
    assert failing(judge(NORM, NORM, text, seed)) == {}
    assert (
        failing(judge(NORM, NORM.replace(*wrong).replace("EQUAL", "most == p[0] && most == p[cols / 2]"), text, seed))[
            "numerics"
        ]
        == "FAIL"
    )


# ---------------------------------------------------------------- ties

QUANT = """
__global__ void quant(signed char* out, const float* x, const float* scale, int cols) {
  __shared__ float s[64];
  const float* p = x + (long long)blockIdx.x * cols;
  float most = 0.f;
  for (int c = threadIdx.x; c < cols; c += 64) most = fmaxf(most, fabsf(p[c]));
  s[threadIdx.x] = most;
  __syncthreads();
  for (int k = 0; k < 64; ++k) most = fmaxf(most, s[k]);
  float by = SCALE;
  for (int c = threadIdx.x; c < cols; c += 64) {
    float v = ROUND(p[c] / by);
    out[(long long)blockIdx.x * cols + c] = (signed char)(int)fminf(fmaxf(v, -128.f), 127.f);
  }
}
"""


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize(
    "scale", ["scale[0]", *(pytest.param(s, marks=slow) for s in ("fmaxf(most, 1e-10f) / 127.f", "1.f / scale[0]"))]
)
@pytest.mark.parametrize(
    "wrong", ["roundf", pytest.param("floorf(0.5f + ", marks=slow), pytest.param("ceilf(-0.5f + ", marks=slow)]
)
def test_ties_are_always_tried(seed, scale, wrong):
    right = QUANT.replace("SCALE", scale).replace("ROUND(", "rintf(")
    other = QUANT.replace("SCALE", scale).replace("ROUND(", wrong if "(" in wrong else wrong + "(")
    buffers = buffer("out", "i8", '"rows", "cols"', "out") + buffer("x", "f32", '"rows", "cols"')
    buffers += buffer("scale", "f32", "1", "in", 'dist = "scale"')
    text = case("quant", buffers, 'cols = "cols"', "rows = [1, 5]\ncols = [64, 100]", ROWS)
    if scale.startswith("scale") and seed == 0:
        assert failing(judge(right, right, text, seed)) == {}
    assert failing(judge(right, other, text, seed))["numerics"] == "FAIL"


# ---------------------------------------------------------------- variances by subtraction

VARIANCE = """
__global__ void deviations(float* out, const float* x, int cols) {
  const float* p = x + (long long)blockIdx.x * cols;
  float sum = 0.f, square = 0.f;
  for (int c = 0; c < cols; ++c) sum += p[c];
  float mean = sum / cols;
  for (int c = 0; c < cols; ++c) square += SQUARE;
  float by = rsqrtf(square / cols OFF + 1e-5f);
  for (int c = threadIdx.x; c < cols; c += 64) out[(long long)blockIdx.x * cols + c] = (p[c] - mean) * by;
}
"""
TWO_PASSES = VARIANCE.replace("SQUARE", "(p[c] - mean) * (p[c] - mean)").replace("OFF", "")
ONE_PASS = VARIANCE.replace("SQUARE", "p[c] * p[c]").replace("OFF", "- mean * mean")
#: the same sum, from the other end
BACKWARDS = TWO_PASSES.replace("sum += p[c]", "sum += p[cols - 1 - c]")


def deviations(inputs, scalars, sizes, args):
    x = np.asarray(inputs["x"], np.float64)
    with np.errstate(all="ignore"):
        y = x - x.mean(-1, keepdims=True)
        return {"out": y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)}


@pytest.mark.parametrize("seed", seeds(3))
def test_a_variance_by_subtraction_shows_on_shifted_rows_of_32_bits(seed):
    buffers = buffer("out", "f32", '"rows", "cols"', "out") + buffer("x", "f32", '"rows", "cols"')
    text = case("deviations", buffers, 'cols = "cols"', "rows = [1, 5]\ncols = [64, 300]", ROWS)
    for reference in (None, deviations):
        assert failing(judge(TWO_PASSES, TWO_PASSES, text, seed, reference)) == {}
        assert failing(judge(ONE_PASS, ONE_PASS, text, seed, reference)) == {}
        assert failing(judge(TWO_PASSES, ONE_PASS, text, seed, reference))["numerics"] == "FAIL"


# ---------------------------------------------------------------- scratch that was used before

TICKETS = """
__global__ void total(float* out, float* part, unsigned* count, const float* x, int n) {
  __shared__ bool last;
  float sum = 0.f;
  for (int i = blockIdx.x; i < n; i += gridDim.x) sum += x[i];
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(count, 1u) LAST;
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x) return;
  float all = 0.f;
  for (unsigned b = 0; b < gridDim.x; ++b) all += __ldcg(part + b);
  out[0] = all;
  RESET
}
"""
ONCE = TICKETS.replace("LAST", "== gridDim.x - 1").replace("RESET", "")
RESETS = TICKETS.replace("LAST", "== gridDim.x - 1").replace("RESET", "atomicExch(count, 0u);")
WRAPS = TICKETS.replace("LAST", "% gridDim.x == gridDim.x - 1").replace("RESET", "")
TICKET_CASE = case(
    "total", buffer("out", "f32", "1", "out") + buffer("part", "f32", "4", "scratch")
    + buffer("count", "u32", "1", "scratch", "init = 0") + buffer("x", "f32", '"n"'),
    'n = "n"', "n = [64, 100]", "grid = [4]\nblock = [32]",
)  # fmt: skip


@pytest.mark.parametrize(
    ("original", "port", "expected"),
    [
        (RESETS, ONCE, "FAIL"),
        pytest.param(WRAPS, ONCE, "FAIL", marks=slow),
        pytest.param(RESETS, WRAPS, "", marks=slow),
        pytest.param(ONCE, RESETS, "", marks=slow),
        pytest.param(ONCE, ONCE, "", marks=slow),
    ],
)
def test_a_second_launch_on_the_same_scratch(original, port, expected):
    verdicts = judge(original, port, TICKET_CASE)
    assert failing(verdicts) == ({"determinism": expected} if expected else {})
    if expected:
        assert verdicts["determinism"].diagnostics[0].code == "PRT851"
        assert "a second launch on the same scratch" in verdicts["determinism"].detail


#: starts by setting the flag that it waits for to what the last launch did not leave: an aborted one does no harm
STARTS_OVER = """
__global__ void running(float* out, int* done, const float* x, int n) {
  START
  __syncthreads();
  float sum = 0.f;
  for (int i = 0; i < n; ++i) sum += x[i];
  if (threadIdx.x == 0) atomicAdd(done, 1);
  __syncthreads();
  if (threadIdx.x == 0) { int d = atomicAdd(done, 0); out[0] = sum * d; END }
}
"""
AT_START = STARTS_OVER.replace("START", "if (threadIdx.x == 0) atomicExch(done, 0);").replace("END", "")
AT_END = STARTS_OVER.replace("START", "").replace("END", "atomicExch(done, 0);")


@pytest.mark.parametrize("seed", seeds(6))
def test_a_launch_after_an_aborted_one(seed):
    buffers = buffer("out", "f32", "1", "out") + buffer("done", "i32", "1", "scratch", "init = 0")
    text = case("running", buffers + buffer("x", "f32", '"n"'), 'n = "n"', "n = [64, 100]", "grid = [1]\nblock = [32]")
    assert failing(judge(AT_START, AT_START, text, seed)) == {}
    assert failing(judge(AT_END, AT_START, text, seed)) == {}
    assert failing(judge(AT_END, AT_END, text, seed)) == {}
    verdicts = judge(AT_START, AT_END, text, seed)
    assert failing(verdicts) == {"determinism": "FAIL"}
    assert "a launch after an aborted one" in verdicts["determinism"].detail
