"""Drafted cases: what the source says is in them, what it does not say is refused until a person has said it."""

from pathlib import Path

import pytest

from porter.case.fit import check_case
from porter.case.reader import parse_case
from porter.frontend.case.draft import case_from_launch, draft_case_text
from porter.model import Instance, KernelInfo, KernelParam, Launch, PorterError, TemplateParam
from porter.source import Source, Span

INFO = KernelInfo(
    "norm",
    "ns::norm",
    (
        KernelParam("out", "T *__restrict"),
        KernelParam("x", "const T *__restrict"),
        KernelParam("x_stride", "int64_t"),
        KernelParam("ids", "const int *"),
        KernelParam("eps", "const float"),
        KernelParam("hidden_size", "int"),
        KernelParam("flag", "bool"),
    ),
    (TemplateParam("T", "type"), TemplateParam("VEC", "value", "int")),
    Span("norm.cu", 2),
)
SOURCE = Source(
    Path("norm.cu"),
    """
__global__ void norm(T* __restrict__ out,      // [tokens, hidden_size]
                     const T* __restrict__ x,  // [tokens, hidden_size], rows x_stride apart
                     int64_t x_stride, const int* ids,  // [tokens]
                     const float eps, int hidden_size, bool flag) {
}
""",
)
LAUNCH = Launch(
    "ns::norm",
    ("out", "x", "x.stride(0)", "ids", "1e-6f", "hidden_size", "true"),
    "dim3(tokens, 2)",
    "std::min((hidden_size / VEC + 31) / 32 * 32, 1024)",
    "32 * sizeof(float)",
    host_function="launch_norm",
    span=Span("norm.cu", 40),
)
INSTANCES = (Instance(("float", "4")), Instance(("__half", "8")))


def draft(launches=(LAUNCH,), instances=INSTANCES, source=SOURCE):
    return draft_case_text(INFO, launches, instances, source)


def refusal(text):
    with pytest.raises(PorterError) as error:
        check_case(parse_case(text, Path("norm.case.toml")), INFO)
    return error.value.diagnostics[0]


def test_what_the_source_says_is_filled_in():
    text = draft()
    assert 'args = ["float", 4]' in text and 'args = ["__half", 8]' in text
    assert text.count('shape = ["tokens", "hidden_size"]') == 2 and 'shape = ["tokens"]' in text
    assert 'grid = ["tokens", "2"]' in text and 'smem = "32 * sizeof(f32)"' in text
    assert 'block = ["min((hidden_size // VEC + 31) // 32 * 32, 1024)"]' in text
    assert "from launch_norm, line 40" in text
    assert 'strides = ["x_stride", 1]' in text and 'x_stride = ["hidden_size", "hidden_size + 8"]' in text
    assert "eps = 1e-6" in text and "flag = [false, true]" in text
    assert text.count('role = "out"') == 1 and text.count('role = "in"') == 2


def test_a_todo_is_refused_at_its_line_and_the_completed_case_is_read():
    text = draft()
    assert text.count('"TODO"') == 1  # the range of ids
    diagnostic = refusal(text)
    assert diagnostic.code == "PRT904" and "TODO" in diagnostic.message
    assert text.splitlines()[diagnostic.span.line - 1].startswith('high = "TODO"')
    case = parse_case(text.replace('"TODO"', "31"), Path("norm.case.toml"))
    check_case(case, INFO)
    point = max(case.points(values={"T": "f16", "VEC": 8}), key=lambda p: p.elements)
    launch = case.launch_at(point, {"T": "f16", "VEC": 8})
    assert (launch.grid, launch.block, launch.smem) == ((33, 2, 1), (96, 1, 1), 128)


def test_without_a_launch_the_launch_is_a_todo():
    text = draft(launches=())
    assert text.count('["TODO"]') == 2 and "no launch of this kernel" in text
    assert refusal(text).code == "PRT904"


def test_what_means_nothing_in_a_case_is_a_todo_with_its_text():
    odd = Launch("norm", LAUNCH.args, "get_blocks(x)", "threads_for(x)[0]", "props.sharedMem")
    text = draft(launches=(odd,))
    for lost in ("get_blocks(x)", "threads_for(x)[0]", "props.sharedMem"):
        assert f"# TODO of {lost}" in text


def test_the_better_of_two_launches_is_taken():
    odd = Launch("norm", LAUNCH.args, "get_blocks(x)", "256")
    assert 'grid = ["tokens", "2"]' in draft(launches=(odd, LAUNCH))


def test_shapes_without_comments_and_missing_instances_are_todos():
    text = draft(source=None, instances=())
    assert text.count('shape = ["TODO"]') == 3 and "at least two [[instances]]" in text


def test_sizes_of_one_name_are_joined_and_say_so():
    source = Source(Path("norm.cu"), SOURCE.text.replace("[tokens, hidden_size]", "[num_tokens, hidden]"))
    text = draft(source=source)
    assert 'hidden_size = "hidden"  # TODO check' in text and 'tokens = "num_tokens"  # TODO check' in text
    case = parse_case(text.replace('high = "TODO"', "high = 9"), Path("norm.case.toml"))
    assert case.points(values={"T": "f32", "VEC": 4})


PLAIN = """
__global__ void add(float* __restrict__ out,      // [n]
                    const float* __restrict__ a,  // [n]
                    const float* __restrict__ b,  // [n]
                    int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
void launch_add(float* out, const float* a, const float* b, int n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(out, a, b, n);
}
"""


def test_a_launcher_that_says_everything_gives_a_case():
    parse = pytest.importorskip("porter.frontend.parse.source")
    unit = parse.parse_source(Source(Path("add.cu"), PLAIN), parse.ParseOptions())
    case = case_from_launch(unit, unit.kernels[0])
    assert case is not None and case.launch.grid[0] == "ceil_div(n, 256)"
    assert [(b.name, b.role, b.shape) for b in case.buffers] == [
        ("out", "out", ("n",)),
        ("a", "in", ("n",)),
        ("b", "in", ("n",)),
    ]
    silent = PLAIN.replace("// [n]", "")
    unit = parse.parse_source(Source(Path("add.cu"), silent), parse.ParseOptions())
    assert case_from_launch(unit, unit.kernels[0]) is None
