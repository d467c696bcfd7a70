"""Template instances: as text, instantiated by clang, reached by launches, guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter import codes
from porter.case.instances import instance_values
from porter.frontend.instances.choice import (
    choose_few,
    default_instances,
    instances_from_launches,
    no_default_instance,
    parse_instantiation,
    resolved,
    specialise,
    split_arguments,
    try_specialise,
)
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import CursorKind
from porter.frontend.parse.source import ParsedUnit, ParseOptions, parse_source
from porter.model import Instance, KernelInfo, PorterError
from porter.source import Source

NORM = """\
namespace ops {
template <typename T> __device__ float load(const T* p) { return static_cast<float>(*p); }
template <typename T, int VEC, bool FLAG>
__global__ void norm(T* out, const T* in, int n) {
  static_assert(VEC > 0 && (VEC & (VEC - 1)) == 0, "VEC must be a power of two");
  constexpr int BYTES = VEC * sizeof(T);
  if constexpr (FLAG) out[0] = load(in) * BYTES; else out[1] = load(in + 1);
}
}
__global__ void plain(int* p) { *p = 1; }
"""


def unit_of(text: str) -> ParsedUnit:
    return parse_source(Source(Path("/nowhere/k.cu"), text))


def kernel(unit: ParsedUnit, name: str) -> KernelInfo:
    found = unit.kernel(name)
    assert found is not None
    return found


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("k", "k", ()),
        (" ns::k < float , 8 > ", "ns::k", ("float", "8")),
        ("k<std::array<int, 4>, true>", "k", ("std::array<int, 4>", "true")),
        ("k<a<b<int>>, (3 > 2), f(1, 2)>", "k", ("a<b<int>>", "(3 > 2)", "f(1, 2)")),
        ("k<>", "k", ()),
    ],
)
def test_instantiations_are_read(text: str, name: str, args: tuple[str, ...]) -> None:
    assert parse_instantiation(text) == (name, Instance(args))


@pytest.mark.parametrize("text", ["", "k<float", "k<float>>", "k<float,>", "<float>", "k<(1>", "8k<int>"])
def test_bad_instantiations_are_refused(text: str) -> None:
    with pytest.raises(PorterError) as e:
        parse_instantiation(text)
    assert e.value.diagnostics[0].code == codes.UNREADABLE_INSTANCE


def test_split_arguments_refuses_what_does_not_balance() -> None:
    assert split_arguments("") == ()
    with pytest.raises(ValueError, match="unbalanced"):
        split_arguments("a, b>")


# ---------------------------------------------------------------- instantiation


def test_bodies_are_fully_instantiated() -> None:
    unit = unit_of(NORM)
    norm, plain = kernel(unit, "norm"), kernel(unit, "plain")
    requests = [
        (norm, Instance(("__nv_bfloat16", "8", "true"))),
        (norm, Instance(("float", "4", "false"))),
        (plain, Instance()),
    ]
    whole, cursors = specialise(unit.source, unit.options, requests, stand_ins=unit.stand_ins)
    assert whole.diagnostics == ()
    assert set(cursors) == {(k.qualified_name, i) for k, i in requests}
    for wanted, size, taken in ((("__nv_bfloat16", "8", "true"), 16, True), (("float", "4", "false"), 16, False)):
        body = cursors["ops::norm", Instance(wanted)]
        nodes = list(cc.walk(body))
        assert body.kind == CursorKind.FUNCTION_DECL
        typed = [n for n in nodes if n.kind != CursorKind.STRING_LITERAL]  # the message of static_assert
        assert not any("dependent" in n.type.spelling or cc.is_invalid(n) for n in typed)
        bytes_ = next(n for n in nodes if n.kind == CursorKind.VAR_DECL and n.spelling == "BYTES")
        assert cc.evaluate(bytes_) == size
        condition = next(iter(next(n for n in nodes if n.kind == CursorKind.IF_STMT).get_children()))
        assert cc.evaluate(condition) is taken
        call = next(n for n in nodes if n.kind == CursorKind.CALL_EXPR and n.spelling == "load")
        assert call.referenced.get_template_argument_type(0).spelling == wanted[0]
    assert cursors["plain", Instance()].spelling == "plain"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("float",), ""),  # too few
        (("8", "float", "true"), ""),  # wrong kinds
        (("float", "8", "true", "1"), ""),  # too many
        (("no_such_type", "8", "true"), "no_such_type"),
        (("float", "3", "true"), "VEC must be a power of two"),  # the body rejects it
    ],
)
def test_arguments_that_do_not_fit_are_the_users_error(args: tuple[str, ...], reason: str) -> None:
    unit = unit_of(NORM)
    norm = kernel(unit, "norm")
    good, bad = Instance(("float", "8", "true")), Instance(args)
    _, cursors, failures = try_specialise(unit.source, unit.options, [(norm, good), (norm, bad)])
    assert ("ops::norm", good) in cursors and ("ops::norm", bad) not in cursors
    d = failures["ops::norm", bad]
    assert d.code == codes.INSTANCE_DOES_NOT_FIT and d.span == norm.span
    assert "template <typename T, int VEC, bool FLAG> ops::norm" in d.help
    assert reason in " ".join(d.notes)


def test_specialise_reports_failures_with_the_unit() -> None:
    unit = unit_of(NORM)
    whole, cursors = specialise(unit.source, unit.options, [(kernel(unit, "plain"), Instance(("int",)))])
    assert cursors == {}
    (d,) = whole.diagnostics
    assert d.code == codes.INSTANCE_DOES_NOT_FIT and "not a template" in d.help


def test_fault_in_a_called_function_belongs_to_the_single_request() -> None:
    unit = unit_of(
        "template <typename T> __device__ auto first(T v) { return v.x; }\n"
        "template <typename T> __global__ void k(T* p) { p[0] = T(); auto y = first(p[0]); }\n"
    )
    k = kernel(unit, "k")
    assert k.errors == ()
    good, bad = Instance(("float4",)), Instance(("int",))
    assert try_specialise(unit.source, unit.options, [(k, good)])[2] == {}
    failure = try_specialise(unit.source, unit.options, [(k, bad)])[2]["k", bad]
    assert any("/nowhere/k.cu:1:" in note for note in failure.notes)


def test_overloads_by_enable_if_are_told_apart() -> None:
    unit = unit_of(
        "template <typename T, int W> __global__ std::enable_if_t<(W > 0)> k(T* p) { *p = 1; }\n"
        "template <typename T, int W> __global__ std::enable_if_t<(W == 0)> k(T* p) { *p = 2; }\n"
    )
    wide, scalar = unit.kernels
    _, cursors, failures = try_specialise(
        unit.source, unit.options, [(wide, Instance(("float", "8"))), (scalar, Instance(("float", "0")))]
    )
    assert failures == {}
    assert [cc.span(c).line for c in cursors.values()] == [1, 2]


# ---------------------------------------------------------------- launches


def test_instances_reached_by_launches() -> None:
    unit = unit_of(
        NORM + "template <typename T> void launch(T* o, T* i, int n) {\n"
        "  if (n % 8) ops::norm<T, 8, true><<<n, 256>>>(o, i, n);\n"
        "  else ops::norm<T, 1, false><<<n, 256>>>(o, i, n);\n}\n"
        "void host(float* o, float* i, __half* h, int n) {\n"
        "  launch(o, i, n); launch<__half>(h, h, n);\n"
        "  auto f = ops::norm<double, 2, true>; f<<<1, 1>>>(nullptr, nullptr, 0); plain<<<1, 1>>>(nullptr);\n}\n"
        "void unused();\n"
    )
    found = instances_from_launches(unit, kernel(unit, "norm"))
    assert found == (
        Instance(("double", "2", "true")),
        Instance(("float", "8", "true")),
        Instance(("float", "1", "false")),
        Instance(("__half", "8", "true")),
        Instance(("__half", "1", "false")),
    )
    assert instances_from_launches(unit, kernel(unit, "plain")) == (Instance(),)


def test_dispatch_macros_are_expanded() -> None:
    unit = unit_of(
        NORM + "void host(at::Tensor t, int n) {\n"
        '  AT_DISPATCH_FLOATING_TYPES_AND_HALF(t.scalar_type(), "norm", [&] {\n'
        "    ops::norm<scalar_t, 4, true><<<n, 256>>>(t.data_ptr<scalar_t>(), t.data_ptr<scalar_t>(), n);\n  });\n}\n"
    )
    found = instances_from_launches(unit, kernel(unit, "norm"))
    assert [i.args[0] for i in found] == ["double", "float", "c10::Half"]


def test_explicit_instantiations_count() -> None:
    unit = unit_of(
        NORM + "template <typename T> void launch(T* o) { ops::norm<T, 2, false><<<1, 1>>>(o, o, 1); }\n"
        "template void launch<__nv_bfloat16>(__nv_bfloat16* o);\n"
        "template __global__ void ops::norm<float, 16, true>(float*, const float*, int);\n"
    )
    found = instances_from_launches(unit, kernel(unit, "norm"))
    assert set(found) == {Instance(("float", "16", "true")), Instance(("__nv_bfloat16", "2", "false"))}


def test_explicit_instantiations_of_launchers_name_what_stands_beside_them() -> None:
    """An enumerator, a type and a constant that have no name outside of the launcher's namespace."""
    unit = unit_of("""namespace ops {
template <typename T, int MODE> __global__ void k(T* p) { if (MODE == 1) p[0] = T{}; }
namespace detail {
enum Mode { kRow, kTensor };
struct Half { unsigned short x; };
constexpr int kBoth = 7;
template <typename T, int MODE> void launch(T* p) { k<T, MODE><<<1, 1>>>(p); }
template void launch<float, kTensor>(float*);
template void launch<Half, kBoth>(Half*);
}
struct Launcher { template <typename T> static void run(T* p) { k<T, 3><<<1, 1>>>(p); } };
template void Launcher::run<int>(int*);
}
""")
    found = {i.args for i in instances_from_launches(unit, kernel(unit, "k"))}
    assert found == {("float", "1"), ("ops::detail::Half", "7"), ("int", "3")}


@pytest.mark.parametrize(
    "body, values",
    [
        ("if (MODE == 0) p[0] = 1; else if (MODE == 1) p[0] = 2;", ["0", "1"]),
        ("switch (MODE) { case 2: p[0] = 1; break; case 5: p[0] = 2; break; }", ["2", "5"]),
        ("if (3 != MODE) p[0] = 1; if (MODE == 4) p[0] = MODE;", ["3", "4"]),
        ("if (MODE == 2 * 3) p[0] = 1; if (2 * 3 == MODE) p[1] = 1;", ["8", "4"]),
        ("p[0] = MODE;", ["8", "4"]),
    ],
)
def test_numbers_that_select_code_are_guessed_from_the_tests(body: str, values: list[str]) -> None:
    unit = unit_of(f"template <int MODE> __global__ void k(float* p) {{ {body} }}\n")
    assert [i.args[0] for i in default_instances(unit.kernels[0], unit)] == values


def test_functions_as_template_arguments() -> None:
    unit = unit_of(
        "template <typename T> __device__ T twice(const T& x) { return x + x; }\n"
        "template <typename T, T (*F)(const T&)> __global__ void map(T* p) { *p = F(*p); }\n"
        "void host(float* p) { map<float, twice<float>><<<1, 1>>>(p); }\n"
    )
    (found,) = instances_from_launches(unit, kernel(unit, "map"))
    assert found.args[0] == "float" and found.args[1].startswith("twice")
    assert try_specialise(unit.source, unit.options, [(kernel(unit, "map"), found)])[2] == {}


def test_choose_few_covers_values() -> None:
    instances = tuple(Instance((t, v)) for t in ("float", "__half", "__nv_bfloat16") for v in ("8", "4", "1"))
    few = choose_few(instances, 3)
    assert len(few) == 3
    assert {i.args[0] for i in few} == {"float", "__half", "__nv_bfloat16"}
    assert {i.args[1] for i in few} == {"8", "4", "1"}
    assert few[0].args[0] == "__half"


# ---------------------------------------------------------------- guesses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__global__ void k(int* p) { *p = 1; }", [()]),
        ("template <typename T> __global__ void k(T* p) { *p = T(); }", [("__nv_bfloat16",), ("__half",)]),
        (
            "template <typename T, typename AccT, int VEC, bool B, int BLOCK_SIZE, int D = 3>"
            "__global__ void k(T* p) { AccT a = 0; p[VEC + BLOCK_SIZE] = a; }",
            [("__nv_bfloat16", "float", "8", "true", "256"), ("__half", "float", "4", "false", "128")],
        ),
    ],
)
def test_default_instances(text: str, expected: list[tuple[str, ...]]) -> None:
    unit = unit_of(text)
    assert [i.args for i in default_instances(unit.kernels[0], unit)] == expected


def test_default_instances_follow_c10() -> None:
    unit = unit_of("using h = c10::Half;\ntemplate <typename T> __global__ void k(T* p) { *p = T(); }")
    assert [i.args for i in default_instances(unit.kernels[0], unit)] == [("c10::BFloat16",), ("c10::Half",)]


def test_guesses_that_do_not_instantiate_are_dropped() -> None:
    unit = unit_of(
        "template <typename T, int VEC> __global__ void k(T* p) {\n"
        '  static_assert(sizeof(T) == 4 && VEC <= 2, "only small vectors of 4 byte types"); *p = VEC;\n}\n'
    )
    found = default_instances(unit.kernels[0], unit)
    assert found and all(i.args[0] in ("float", "int") and i.args[1] in ("2", "1", "0") for i in found)


def test_enums_and_functions_are_guessed() -> None:
    unit = unit_of(
        "enum class Kind { A, B };\n"
        "__device__ float unary(float x) { return x; }\n__device__ float binary(float x, float y) { return x + y; }\n"
        "template <Kind K, float (*F)(float, float)> __global__ void k(float* p) { *p = F(*p, int(K)); }\n"
    )
    found = default_instances(unit.kernels[0], unit)
    assert [i.args for i in found] == [("Kind::A", "binary"), ("Kind::B", "binary")]


def test_no_guess_is_said_so() -> None:
    unit = unit_of("template <typename Traits> __global__ void k(typename Traits::type* p) { *p = Traits::value; }")
    k = unit.kernels[0]
    assert default_instances(k, unit) == ()
    d = no_default_instance(k)
    assert d.code == codes.NO_INSTANCE_KNOWN and "typename Traits" in d.help


def test_default_instances_read_the_file_again(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("template <typename T> __global__ void k(T* p) { *p = T(); }\n")
    unit = parse_source(Source.read(tmp_path / "k.cu"), ParseOptions())
    assert len(default_instances(unit.kernels[0])) == 2


def test_overloaded_kernel_templates_are_told_apart(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        "namespace a { struct S { int v; };\n"
        "template <class T> __global__ void both(T* f, S n) { f[0] = n.v; }\n"
        "template <class T> __global__ void both(T* f, S n, int m) { f[1] = n.v + m; } }\n"
    )
    unit = parse_source(Source.read(path), ParseOptions())
    for kernel in unit.kernels:
        instance = Instance(("float",))
        _, cursors, failures = try_specialise(unit.source, unit.options, [(kernel, instance)])
        assert not failures
        found = cursors[kernel.qualified_name, instance]
        assert len(list(found.get_arguments())) == len(kernel.params)


def test_enumerators_become_numbers(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        "typedef enum Optimizer { ADAM = 3, LION = 7 } Optimizer;\n"
        "namespace a { enum class Mode { off, on };\n"
        "template <Mode M> __global__ void scoped(int* i) { i[0] = (int)M; } }\n"
        "template <int O, bool B> __global__ void plain(int* i) { i[0] = O; }\n"
        "template __global__ void plain<LION, true>(int*);\n"
    )
    unit = parse_source(Source.read(path), ParseOptions())
    scoped, plain = unit.kernels
    assert resolved(unit, scoped, Instance(("a::Mode::on",))).args == ("(a::Mode)1",)
    assert resolved(unit, scoped, Instance(("Mode::off",))).args == ("(a::Mode)0",)
    assert resolved(unit, plain, Instance(("ADAM", "true"))).args == ("3", "true")
    assert resolved(unit, plain, Instance(("Optimizer::LION", "false"))).args == ("7", "false")
    assert resolved(unit, plain, Instance(("4", "false"))).args == ("4", "false")
    assert instance_values(scoped, Instance(("(a::Mode)1",))) == {"M": 1}


def test_names_for_scalar_types_become_the_types(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        "#include <cuda_bf16.h>\nnamespace a { using brain = __nv_bfloat16; struct S { typedef float real; }; }\n"
        "template <typename T> __global__ void k(T* x) { x[0] = x[1]; }\n"
    )
    unit = parse_source(Source.read(path), ParseOptions())
    (kernel,) = unit.kernels
    assert instance_values(kernel, resolved(unit, kernel, Instance(("a::brain",)))) == {"T": "bf16"}
    assert instance_values(kernel, resolved(unit, kernel, Instance(("S::real",)))) == {"T": "f32"}
    assert resolved(unit, kernel, Instance(("unknown",))).args == ("unknown",)


def test_explicit_instantiations_name_what_stands_in_the_kernels_namespace() -> None:
    unit = unit_of("""namespace ops { namespace detail {
constexpr int kTile = 32;
enum Mode { kFast, kExact };
struct Half { unsigned short x; };
template <typename T, int N, Mode M> __global__ void k(T* p) { p[0] = T{}; }
template __global__ void k<Half, kTile, kExact>(Half*);
} }
""")
    (instance,) = instances_from_launches(unit, kernel(unit, "k"))
    assert instance.args == ("ops::detail::Half", "32", "(ops::detail::Mode)1")
    _, cursors, failures = try_specialise(unit.source, unit.options, [(kernel(unit, "k"), instance)])
    assert len(cursors) == 1 and not failures


def test_a_class_template_of_a_header_is_guessed_by_a_word_of_the_parameters_name(tmp_path: Path) -> None:
    (tmp_path / "ops.h").write_text("""#pragma once
template <class T> struct Unrelated { __device__ static T apply(T x) { return x; } };
template <class T> struct GeluActivation { __device__ static T apply(T x) { return x * T(0.5f); } };
""")
    (tmp_path / "k.cu").write_text("""#include "ops.h"
template <int VEC, template <typename> class Activation, class T> __global__ void k(T* p) {
  for (int i = 0; i < VEC; ++i) p[i] = Activation<float>::apply(p[i]);
}
""")
    unit = parse_source(Source.read(tmp_path / "k.cu"), ParseOptions())
    first, *_ = default_instances(kernel(unit, "k"), unit)
    assert first.args[1] == "GeluActivation"


def test_an_explicit_specialisation_is_no_instance_of_its_template() -> None:
    text = """
#include <cuda_fp16.h>
template <typename T> __global__ void k(T* x, int n) { x[threadIdx.x] = T(n); }
template <> __global__ void k(half2* x, int count) { x[threadIdx.x] = half2(); }
#define FOR(T) template void go(T* x, int n)
template <typename T> void go(T* x, int n) { k<<<1, 32>>>(x, n); }
FOR(half2);
FOR(half);
FOR(float);
"""
    unit = parse_source(Source(Path("k.cu"), text))
    assert sorted(str(i) for i in instances_from_launches(unit, unit.kernels[0])) == ["<__half>", "<float>"]
