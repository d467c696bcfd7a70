"""Launch sites as data: what is launched, with which sizes, in terms of the host function's parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.frontend.parse.source import parse_source
from porter.model import Launch
from porter.source import Source

KERNELS = """\
template <typename T, int VEC> __global__ void k(T* x, const T* y, int n) {}
__global__ void plain(float* x, int n) {}
"""


def launches(text: str) -> tuple[Launch, ...]:
    unit = parse_source(Source(Path("/nowhere/k.cu"), KERNELS + text))
    assert [d.message for d in unit.diagnostics] == []
    return unit.launches


def only(text: str) -> Launch:
    (launch,) = launches(text)
    return launch


def test_a_plain_launch() -> None:
    launch = only("void host(float* p, int n, cudaStream_t s) {\n  plain<<<n, 32, n * 4, s>>>(p, n + 1);\n}\n")
    assert (launch.kernel, launch.args, launch.host_function) == ("plain", ("p", "n + 1"), "host")
    assert (launch.grid, launch.block, launch.smem, launch.stream) == ("n", "32", "n * 4", "s")
    assert (launch.span.line, launch.span.col, launch.span.end_line) == (4, 3, 4)
    assert not launch.cooperative and not launch.pdl and launch.cluster == () and launch.template_args == ()


def test_defaults_of_a_launch() -> None:
    launch = only("void host(float* p) { plain<<<1, 32>>>(p, 0); }\n")
    assert (launch.smem, launch.stream) == ("0", "")


@pytest.mark.parametrize(
    ("locals_", "grid", "block", "expected"),
    [
        ("dim3 g(n, m); dim3 b(n);", "g", "b", ("dim3(n, m)", "n")),
        ("dim3 g = n; dim3 b = dim3(n, 1, m);", "g", "b", ("n", "dim3(n, 1, m)")),
        ("int t = n + 1; int u = t * 2;", "u", "t", ("(n + 1) * 2", "n + 1")),
        ("constexpr int T = 4 * 64; int b = (n + T - 1) / T;", "b", "T", ("(n + 256 - 1) / 256", "256")),
        ("int b; b = std::min(n, 1024);", "n", "b", ("n", "std::min(n, 1024)")),
        ("dim3 g; g.x = n; g.y = m + 1;", "g", "dim3(32)", ("dim3(n, m + 1)", "32")),
        ("int t = n; if (m > 3) t = 7;", "t", "64", ("t", "64")),  # two values: the name stays
        ("int t = n; t *= 2;", "t", "64", ("t", "64")),
        ("int t = n > 3 ? 1 : m;", "2 * t", "64", ("2 * (n > 3 ? 1 : m)", "64")),
        ("auto r = [](int x) { return x; }; int t = r(n);", "t", "64", ("r(n)", "64")),
    ],
)
def test_locals_are_written_out(locals_: str, grid: str, block: str, expected: tuple[str, str]) -> None:
    launch = only(f"void host(float* p, int n, int m) {{ {locals_} plain<<<{grid}, {block}>>>(p, n); }}\n")
    assert (launch.grid, launch.block) == expected


def test_launches_in_host_templates_keep_parameter_names() -> None:
    launch = only(
        "template <typename T, int V> void host(T* x, int n) {\n"
        "  const int per = n / V;\n  k<T, V><<<per, 128, sizeof(T) * V>>>(x, x, n);\n}\n"
    )
    assert launch.template_args == ("T", "V")
    assert (launch.grid, launch.smem, launch.host_function) == ("n / V", "sizeof(T) * V", "host")


def test_launch_macros_are_expanded() -> None:
    text = (
        "#define LAUNCH(V) k<float, V><<<grid, 64 * V, 0, s>>>(x, x, n)\n"
        "void host(float* x, int n, cudaStream_t s) {\n  dim3 grid(n, 2);\n"
        "  if (n > 4) {\n    LAUNCH(4);\n  } else {\n    LAUNCH(1);\n  }\n}\n"
    )
    four, one = launches(text)
    assert (four.template_args, four.grid, four.block, four.span.line) == (("float", "4"), "dim3(n, 2)", "64 * 4", 7)
    assert (one.template_args, one.block, one.args, one.span.line) == (("float", "1"), "64 * 1", ("x", "x", "n"), 9)


def test_dispatch_gives_one_launch_per_type() -> None:
    found = launches(
        "void host(at::Tensor t) {\n  const auto s = at::cuda::getCurrentCUDAStream();\n"
        '  AT_DISPATCH_REDUCED_FLOATING_TYPES(t.scalar_type(), "k", [&] {\n'
        "    k<scalar_t, 8><<<t.size(0), 256, 0, s>>>(t.data_ptr<scalar_t>(), nullptr, t.size(-1));\n  });\n}\n"
    )
    assert [x.template_args for x in found] == [("c10::Half", "8"), ("c10::BFloat16", "8")]
    assert found[0].args == ("t.data_ptr<scalar_t>()", "nullptr", "t.size(-1)")
    assert (found[0].grid, found[0].span.line) == ("t.size(0)", 6)
    assert found[0].stream == "at::cuda::getCurrentCUDAStream()"


CONFIG = """\
void host(float* x, int n, cudaStream_t s) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(n, 2);
  config.blockDim = 128;
  config.dynamicSmemBytes = n * sizeof(float);
  config.stream = s;
  cudaLaunchAttribute attrs[2];
  attrs[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attrs[0].val.programmaticStreamSerializationAllowed = 1;
  attrs[1].id = cudaLaunchAttributeClusterDimension;
  attrs[1].val.clusterDim.x = 4;
  attrs[1].val.clusterDim.y = 1;
  attrs[1].val.clusterDim.z = 1;
  config.attrs = attrs;
  config.numAttrs = 2;
  cudaLaunchKernelEx(&config, k<float, 8>, x, x, n);
}
"""


def test_launch_configurations_are_read() -> None:
    launch = only(CONFIG)
    assert (launch.kernel, launch.template_args, launch.args) == ("k", ("float", "8"), ("x", "x", "n"))
    assert (launch.grid, launch.block, launch.smem, launch.stream) == ("dim3(n, 2)", "128", "n * 4", "s")
    assert launch.pdl and launch.cluster == ("4", "1", "1")


def test_launch_configuration_by_initialiser() -> None:
    launch = only(
        "void host(float* x, int n) {\n  cudaLaunchConfig_t c = {dim3(n), dim3(32), 16};\n"
        "  auto kernel = k<float, 2>;\n  cudaLaunchKernelEx(&c, kernel, x, x, n);\n}\n"
    )
    assert (launch.template_args, launch.grid, launch.block, launch.smem) == (("float", "2"), "n", "32", "16")
    assert not launch.pdl


def test_switched_off_programmatic_launch_is_no_pdl() -> None:
    assert not only(CONFIG.replace("Allowed = 1", "Allowed = 0")).pdl


def test_cooperative_launch() -> None:
    launch = only(
        "void host(float* p, int n, cudaStream_t s) {\n  void* args[] = {&p, (void*)&n};\n"
        "  cudaLaunchCooperativeKernel((void*)plain, dim3(n), dim3(256), args, 64, s);\n}\n"
    )
    assert launch.cooperative and launch.kernel == "plain"
    assert (launch.grid, launch.block, launch.smem, launch.stream) == ("n", "256", "64", "s")
    assert launch.args == ("p", "n")


def test_launches_in_methods_and_namespaces() -> None:
    launch = only("namespace a { struct Op { float* p; void run(int n) { plain<<<n, 8>>>(p, n); } }; }\n")
    assert (launch.host_function, launch.args) == ("a::Op::run", ("p", "n"))


def test_device_code_launches_nothing() -> None:
    assert launches("__device__ void d(float* p) { p[0] = 1; }\n") == ()
