"""A kernel in the text is never gone without a word, and the word is the first that is really wrong."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from porter.batch.analysis import KernelAnalysis, print_analysis
from porter.batch.analysis_child import analyze
from porter.config import PortConfig
from porter.frontend.parse.lost_kernels import definitions
from porter.frontend.parse.source import parse_source
from porter.model import PorterError
from porter.pipeline.inputs import choose_instances, parse
from porter.source import Source


def kernels(text: str) -> dict[str, list[str]]:
    """The kernels of a text with the messages of their errors."""
    unit = parse_source(Source(Path("k.cu"), text))
    return {k.name: [e.message for e in k.errors] for k in unit.kernels}


LOST = {
    "a parameter of an unknown class": (
        "__global__ void grow(Span<float> a, int n) { a[threadIdx.x] += n; }\n",
        "no template named 'Span'",
    ),
    "an unknown macro before the parameters' classes": (
        "namespace ops {\ntemplate <typename T>\n__global__ void __launch_bounds__(128)\n"
        "shift(views::Row<T> a, T by) {\n  a.at[threadIdx.x] += by;\n}\n}\n",
        "use of undeclared identifier 'views'",
    ),
    "a class that is not closed": (
        "struct State {\n  int v;\n  State(Config c) : v(c.n) {} ;\n"
        "template <int N>\n__global__ void clear(int* a) { a[threadIdx.x] = N; }\n",
        "unknown type name 'Config'",
    ),
    "a function before that is not closed": (
        "inline int width() {\n  if (true) { return Missing::value;\n}\n"
        "__global__ void negate(float* a) { a[threadIdx.x] = -a[threadIdx.x]; }\n",
        "use of undeclared identifier 'Missing'",
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_a_kernel_in_the_text_is_there_with_what_is_wrong(what: str):
    text, message = LOST[what]
    found = kernels(text)
    assert len(found) == 1 and message in next(iter(found.values()))[0], found


def test_text_that_is_no_definition_is_no_kernel():
    text = (
        "// __global__ void a(int* p) {}\n"
        "#define MAKE(name) __global__ void name(int* p) { *p = 1; }\n"
        "#if 0\n__global__ void b(Gone g) {}\n#endif\n"
        '__global__ void c(int* p);\nconst char* s = "__global__ void d() {}";\nMAKE(e)\n'
        "template <typename T> __global__ void f(T* p) { *p = 1; }\ntemplate __global__ void f<int>(int* p);\n"
    )
    assert kernels(text) == {"e": [], "f": []}


def test_names_of_definitions():
    text = (
        "__global__ void __launch_bounds__(32 * 2) a(int* p) {\n}\n"
        'extern "C" __global__ __attribute__((used)) void b(int (*f)(int), int n) { if (n) { f(n); } }\n'
        "__global__ void c(int* p) __maxnreg__(32) { }"
    )
    assert [(n, s.line, s.end_line) for n, s in definitions("k.cu", text)] == [("a", 1, 2), ("b", 3, 3), ("c", 4, 4)]


@pytest.mark.parametrize("directive", ["#error define WIDTH", '#error "define WIDTH"', "# error define WIDTH"])
def test_an_error_directive_comes_first(directive: str):
    text = f"#ifndef WIDTH\n{directive}\n#endif\n__global__ void k(int* p) {{ *p = WIDTH; }}\n"
    assert kernels(text)["k"][0] == "#error: define WIDTH"
    unit = parse_source(Source(Path("k.cu"), text.replace("WIDTH; }", "1; }")))
    assert [d.message for d in unit.diagnostics] == ["#error: define WIDTH"] and not unit.kernels[0].errors


OBSTACLES = {
    "unknown type name 'FORCE_INLINE'": (
        "template <typename T> FORCE_INLINE T twice(T v) { return v + v; }\n"
        "template <typename T> __global__ void k(T* a) { a[threadIdx.x] = twice<T>(a[threadIdx.x]); }\n"
    ),
    "unknown type name 'INLINE_DEVICE'": (
        "template <int N> struct Vec { float v[N]; };\n"
        "template <int N> INLINE_DEVICE void load(Vec<N>* to, const float* from) { to->v[0] = from[0]; }\n"
        "template <int N> __global__ void k(float* a) { Vec<N> v; load<N>(&v, a); a[0] = v.v[0]; }\n"
    ),
}


@pytest.mark.parametrize("message", OBSTACLES)
def test_what_stops_every_instance_is_told_before_the_template_arguments(message: str, tmp_path: Path):
    file = tmp_path / "k.cu"
    file.write_text(OBSTACLES[message])
    unit = parse(file, PortConfig())
    with pytest.raises(PorterError) as error:
        choose_instances(unit, unit.kernels[0], None, PortConfig())
    found = error.value.diagnostics
    assert found[0].message == message and found[0].span.line < unit.kernels[0].span.line
    assert found[-1].code == "PRT008"


def test_arguments_that_do_not_fit_are_still_told_as_such(tmp_path: Path):
    file = tmp_path / "k.cu"
    file.write_text(
        "template <typename T> struct Traits;\n"
        "template <typename Policy> __global__ void k(float* a) { a[0] = Traits<Policy>::value; }\n"
    )
    unit = parse(file, PortConfig())
    with pytest.raises(PorterError) as error:
        choose_instances(unit, unit.kernels[0], None, PortConfig())
    assert error.value.diagnostics[-1].code == "PRT008"


def events(path: Path) -> list[dict]:
    out = io.StringIO()
    settings = {
        "include": [],
        "define": [],
        "math": [],
        "pre_include": [],
        "build": "",
        "std": "c++17",
        "arch": "sm_90a",
    }
    analyze(settings | {"path": str(path), "skip": [], "compile": False, "run": False}, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_analyze_says_where_the_kernels_are(tmp_path: Path):
    (tmp_path / "k.cuh").write_text("template <typename T> __global__ void fill(T* a) { a[threadIdx.x] = T(1); }\n")
    (tmp_path / "k.cu").write_text('#include "k.cuh"\ntemplate __global__ void fill<float>(float*);\n')
    (event,) = events(tmp_path / "k.cu")
    assert event["code"] == "PRT001" and "1 kernel in its headers, such as fill" in event["message"]


@pytest.mark.parametrize(
    ("launch", "guessed"),
    [
        ("", True),
        ("template __global__ void k<float>(float*);", False),
        ("void go(float* a) { k<<<1, 32>>>(a); }", False),
    ],
)
def test_analyze_says_whether_instances_are_guessed(launch: str, guessed: bool, tmp_path: Path):
    file = tmp_path / "k.cu"
    file.write_text(f"template <typename T> __global__ void k(T* a) {{ a[threadIdx.x] = T(1); }}\n{launch}\n")
    result = next(e for e in events(file) if e["event"] == "result")
    assert result["guessed"] is guessed and result["instances"]


def test_the_table_is_followed_by_what_stopped_each_kernel():
    from porter.batch.analysis import Analysis

    out = io.StringIO()
    k = KernelAnalysis("k.cu", "k", 3, code="PRT004", error="unknown type name 'T'")
    print_analysis(Analysis((k,), 1), Console(file=out, width=200))
    assert "k.cu:3: k: PRT004 unknown type name 'T'" in out.getvalue()


SPECIALISED = """
template <typename T, typename U> __device__ T cast(U v) { return T(v); }
template <> __device__ float cast<float, short>(short v) { return from_short(v); }
template <> __device__ int cast<int, short>(short v) { return 2 * v; }
template <typename T, typename U> __global__ void k(T* x, const U* y) { x[threadIdx.x] = cast<T>(y[threadIdx.x]); }
"""


@pytest.mark.parametrize(("instance", "fits"), [("float, int", True), ("int, short", True), ("float, short", False)])
def test_a_specialisation_that_does_not_parse_stops_the_instances_that_call_it(
    instance: str, fits: bool, tmp_path: Path
):
    file = tmp_path / "k.cu"
    file.write_text(f"{SPECIALISED}template __global__ void k<{instance}>({instance.replace(', ', '*, const ')}*);\n")
    result = next(e for e in events(file) if e["event"] == "result")
    assert result["emitted"] is fits and (fits or "from_short" in result["error"]), result
