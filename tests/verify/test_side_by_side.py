"""Original and port on made-up arguments: what is clean and equal, what differs, and what cannot be judged."""

from __future__ import annotations

import pytest

from porter import ir
from porter.model import PorterError
from porter.verify.backends.interface import Build
from porter.verify.launches.made_up import (
    ArgumentGuess,
    Bounds,
    NotMadeUp,
    launch_of,
    launched_threads,
    make_arguments,
    threads_of_cub,
)
from porter.verify.original.nvrtc import Program, compile_program, require_nvrtc
from porter.verify.run_outcome import DIFFERS, EQUAL, FAULTS, NOT_RUN
from porter.verify.side_by_side import side_by_side

try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

F32, I32 = ir.F32, ir.I32


def build(text: str) -> Build:
    options = ["--gpu-architecture=sm_90a", "-default-device", "--fmad=false"]
    made = compile_program(Program(text, "k.cu", options=options, expressions=["k"]))
    assert made.ok, made.log
    return Build("", made.ptx, made.lowered["k"], "sm_90a")


def params(**types: ir.Type) -> list[ir.FunctionParam]:
    return [ir.FunctionParam(name, t) for name, t in types.items()]


def pointer(t: ir.Type) -> ir.Pointer:
    return ir.Pointer(t)


ROW = params(out=pointer(F32), x=pointer(F32), n=I32)
HEAD = "__global__ void k(float* out, const float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;"


def judged(original: str, port: str, taken=ROW, **more):
    return side_by_side("", taken, build(original), build(port), **more)


def test_the_same_is_equal_and_says_how_it_was_launched():
    kernel = HEAD + "if (i < n) out[i] = x[i] * 2.0f; }"
    found = judged(kernel, kernel)
    assert (found.outcome, found.detail) == (EQUAL, "") and "sizes 64" in found.how and found.reached > 0.9


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("if (i < n) out[i] = x[i] * 2.5f;", "out: "),
        ("if (i < n - 1) out[i] = x[i] * 2.0f;", "out: "),
        ("if (i < n) out[i] = x[i - 70] * 2.0f;", "the port: out-of-bounds"),
        ("if (i < n) out[0] = x[i] * 2.0f;", "race"),
        ("__shared__ float s[64]; if (i < n) out[i] = s[i] * 2.0f;", "uninitialised-read"),
    ],
)
def test_a_wrong_port_differs(wrong, says):
    found = judged(HEAD + "if (i < n) out[i] = x[i] * 2.0f; }", HEAD + wrong + " }")
    assert found.outcome == DIFFERS and says in found.detail, found


def test_numbers_below_zero_are_tried_too():
    taken = params(out=pointer(I32), x=pointer(I32), n=I32)
    head = "__global__ void k(int* out, const int* x, int n) { int i = threadIdx.x; if (blockIdx.x || i >= n) return; "
    found = judged(head + "out[i] = x[i] / 4; }", head + "out[i] = x[i] >> 2; }", taken)
    assert found.outcome == DIFFERS and "signed" in found.how
    relu = judged(HEAD + "if (i < n) out[i] = fmaxf(x[i], 0.0f); }", HEAD + "if (i < n) out[i] = x[i]; }")
    assert relu.outcome == DIFFERS and "signed" in relu.how


def test_another_order_of_a_sum_is_equal_and_nan_is_nan():
    tree = "for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); if (i % 32 == 0) out[i / 32] = v; }"
    up = tree.replace("o = 16; o; o >>= 1", "o = 1; o < 32; o <<= 1")
    assert judged(HEAD + "float v = x[i];" + tree, HEAD + "float v = x[i];" + up).outcome == EQUAL
    quiet = HEAD + "if (i < n) out[i] = sqrtf(-x[i]) * %s; }"  # numbers below zero have a root here
    assert judged(quiet % "1.0f", quiet % "2.0f").outcome == DIFFERS
    both = HEAD + "if (i < n) out[i] = __int_as_float(%s); }"
    assert judged(both % "0x7fc00000", both % "0x7fc00001").outcome == EQUAL


@pytest.mark.parametrize(
    ("original", "says"),
    [
        ("out[(long)n * 100000000] = x[i];", "out-of-bounds"),
        ("if (threadIdx.x % 2) __syncwarp(); else __trap();", "trap"),
        ("out[0] = x[i];", "global-race"),
    ],
)
def test_an_original_that_faults_on_everything_is_counted_apart(original, says):
    kernel = HEAD + original + " }"
    found = judged(kernel, kernel)
    assert found.outcome == FAULTS and says in found.detail, found


def test_attempts_go_on_until_the_original_takes_one():
    one_block = HEAD + "out[threadIdx.x] = x[threadIdx.x] + out[threadIdx.x]; }"  # two blocks race
    found = judged(one_block, one_block)
    assert found.outcome == EQUAL and "1 blocks" in found.how
    indexed = """__global__ void k(float* out, const int* ends, int n) {
        for (int i = ends[blockIdx.x] + threadIdx.x; i < ends[blockIdx.x + 1]; i += blockDim.x) {
          if (ends[blockIdx.x + 1] <= ends[blockIdx.x]) __trap();
          out[i] = 1.0f;
        } }"""
    assert judged(indexed, indexed, params(out=pointer(F32), ends=pointer(I32), n=I32)).outcome == EQUAL


def test_what_cannot_be_run_says_why():
    nothing = HEAD + "if (n > 100000) out[i] = x[i]; }"
    assert judged(nothing, nothing) == judged(nothing, nothing)
    found = judged(nothing, nothing)
    assert found.outcome == NOT_RUN and "writes nothing" in found.detail
    node = ir.Struct("node", (ir.StructField("next", pointer(F32), 0),), 8, 8)
    linked = "struct node { float* next; }; __global__ void k(node* p) { p->next[0] = 1.0f; }"
    found = judged(linked, linked, params(p=pointer(node)))
    assert found.outcome == NOT_RUN and "holds pointers" in found.detail


def test_a_struct_is_one_parameter_of_the_original_and_one_a_member_of_the_port():
    shape = ir.Struct("S", (ir.StructField("w", I32, 0), ir.StructField("scale", ir.Array(F32, 2), 4)), 12, 4)
    task = ir.Struct(
        "P",
        (ir.StructField("out", pointer(F32), 0), ir.StructField("s", shape, 8), ir.StructField("x", pointer(F32), 24)),
        32,
        8,
    )
    original = """struct S { int w; float scale[2]; }; struct P { float* out; S s; const float* x; };
        __global__ void k(P p) {
          int i = threadIdx.x; if (!blockIdx.x && i < p.s.w) p.out[i] = p.x[i] * p.s.scale[1]; }"""
    port = """__global__ void k(float* out, int w, float scale0, float scale1, const float* x) {
        int i = threadIdx.x; if (!blockIdx.x && i < w) out[i] = x[i] * %s; }"""
    taken = params(p=task)
    assert judged(original, port % "scale1", taken).outcome == EQUAL
    assert judged(original, port % "scale0", taken).outcome == DIFFERS
    leaves = make_arguments(taken, ArgumentGuess(64)).leaves
    assert [x.name for x in leaves] == ["p_out", "p_s_w", "p_s_scale_0", "p_s_scale_1", "p_x"]


def test_strides_of_one_tensor_fit_into_one_another():
    names = ("out", "x", "n", "x_stride_b", "x_stride_h", "x_stride_d", "row_stride")
    taken = params(**{n: pointer(F32) if n in ("out", "x") else I32 for n in names})
    made = {x.name: x.value for x in make_arguments(taken, ArgumentGuess(8)).leaves}
    numbers = [int.from_bytes(made[n], "little") for n in names[2:]]
    assert numbers == [8, 64, 8, 1, 8]


def test_strides_are_those_of_their_tensor_and_numbers_of_any_type():
    """Eleven strides whose names begin alike: taken for those of one tensor, the outermost would be 1024 ** 10."""
    axes = [f"stride_{t}_{a}" for t, n in (("x", "bthd"), ("y", "bth"), ("scale", "btgp")) for a in n]
    for t in (I32, ir.I64):
        taken = params(out=pointer(F32), **dict.fromkeys(axes, t))
        made = [x.value for x in make_arguments(taken, ArgumentGuess(1024)).leaves[1:]]
        numbers = [int.from_bytes(v, "little") for v in made]
        assert numbers == [1 << 30, 1 << 20, 1 << 10, 1, 1 << 20, 1 << 10, 1, 1 << 30, 1 << 20, 1 << 10, 1]
    deep = params(out=pointer(F32), **{f"stride_{n}": ir.I64 for n in range(11)})
    assert int.from_bytes(make_arguments(deep, ArgumentGuess(1024)).leaves[1].value, "little") == 1 << 30


def test_variables_of_the_original_are_parameters_of_the_port():
    original = """__constant__ float taps[4]; __device__ int calls;
        __global__ void k(float* out, int n) {
          if (blockIdx.x) return;
          if (threadIdx.x < n) out[threadIdx.x] = taps[threadIdx.x % 4] * 2.0f;
          if (threadIdx.x == 0) calls += 1; }"""
    port = """__global__ void k(float* out, int n, int* calls, const float* taps) {
          if (blockIdx.x) return;
          if (threadIdx.x < n) out[threadIdx.x] = taps[threadIdx.x %% 4] * %s;
          if (threadIdx.x == 0) *calls += %s; }"""
    symbols = (
        ir.Symbol("calls", "calls", I32, constant=False, initialised=False),
        ir.Symbol("taps", "taps", ir.Array(F32, 4), constant=True, initialised=False),
    )
    taken = params(out=pointer(F32), n=I32, calls=pointer(I32), taps=pointer(F32))
    assert judged(original, port % ("2.0f", "1"), taken, symbols=symbols).outcome == EQUAL
    assert "out: " in judged(original, port % ("3.0f", "1"), taken, symbols=symbols).detail
    assert "calls: " in judged(original, port % ("2.0f", "2"), taken, symbols=symbols).detail


def test_arrays_of_pointers_lead_to_memory():
    rows = "__global__ void k(float** rows, int n) { rows[blockIdx.x][threadIdx.x] += n * %s; }"
    taken = params(rows=pointer(pointer(F32)), n=I32)
    assert judged(rows % "2", rows % "2", taken).outcome == EQUAL
    assert judged(rows % "2", rows % "3", taken).outcome == DIFFERS
    with pytest.raises(NotMadeUp):
        make_arguments(params(p=pointer(pointer(pointer(F32)))), ArgumentGuess(64))


def test_the_block_is_the_one_that_cub_is_made_for():
    reduce = ir.Intrinsic("cub::BlockReduce::Sum", (), (F32, 320), type=F32)
    inside = ir.Function("f", "f", (), ir.VOID, (ir.ExprStmt(reduce),))
    kernel = ir.Kernel("k", "k", (), (ir.ExprStmt(ir.Call("f", ())),), {"f": inside})
    assert threads_of_cub(kernel) == 320
    assert threads_of_cub(ir.Kernel("k", "k", (), (), {})) == 0


def test_blocks_are_those_of_the_kernels_bounds_or_of_its_launch():
    assert launch_of(ArgumentGuess(64), Bounds(required=(96,)))[1] == (96, 1, 1)
    assert launch_of(ArgumentGuess(64), Bounds(most=(512,)))[1] == (512, 1, 1)
    assert launch_of(ArgumentGuess(1024), Bounds(most=(512,)))[1] == (128, 1, 1)
    assert launch_of(ArgumentGuess(64), Bounds(launched=256))[1] == (256, 1, 1)
    assert launch_of(ArgumentGuess(64, block=(16, 16)), Bounds(most=(128,), launched=32))[1] == (32, 1, 1)
    assert launch_of(ArgumentGuess(64), Bounds(cluster=(4,))) == ((8, 1, 1), (128, 1, 1), (4, 1, 1))
    text = "#define THREADS 192\nconstexpr int kBlock = 320;\n"
    blocks = ("256", "dim3(THREADS)", "kBlock", "N", "f(x)", "4096")
    assert [launched_threads([b], text, {"N": 64}) for b in blocks] == [256, 192, 320, 64, 0, 0]
    values = {"T": "float", "BLOCK_SIZE": 4096, "kThreadsPerBlock": 96}
    assert launched_threads(["f(x)"], text, values) == 96 and launched_threads(["512"], text, values) == 512
