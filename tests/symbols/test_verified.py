"""Ports of kernels that reach `__constant__` and `__device__` variables: verified with values, refused without."""

from __future__ import annotations

import re

import pytest

from porter.config import PortConfig
from porter.model import PorterError, Status
from porter.pipeline.inputs import find_case, parse
from porter.verify.launches.symbols import require_values
from porter.verify.original.build import build_original
from tests.symbols.projects import ALL, ARRAY, COUNTER, HEAD, NAMESPACE, SCALAR, STRUCT, passed, project, verified

IGNORES = {  # a port that takes the symbol and does not look at it: right where the symbol is zero
    "array": (r"lib\.ldg\(weights \+ [^)]*\)\)?", "Float32(0.0)"),
    "scalar": (r"bias\[0\]", "Float32(0.0)"),
    "counter": (r"lib\.atomic_add\(passed, Uint32\(1\)\)", "pass"),
}


SLOW = ("scalar", "half2", "static_local", "extern", "template")  # siblings of those that CI runs


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in ALL])
def test_a_symbol_is_a_parameter_whose_values_come_from_the_case(tmp_path, name):
    cuda, symbols = ALL[name]
    text, verdicts = verified(project(tmp_path, cuda, symbols))
    assert passed(verdicts), verdicts
    assert "bit-equal" in verdicts["numerics"].detail
    for declared in re.findall(r'name = "([\w:]+)"', symbols):
        parameter = declared.split("::")[-1]
        assert re.search(rf'runtime\.Ptr\("\w*{parameter}"', text), text
        assert re.search(rf"\w*{parameter}: the __(constant|device)__ variable {declared}\n", text), text


def without(symbols: str) -> str:
    return "".join(t for t in re.split(r"(?=\[\[)", symbols) if t.startswith("[[instances"))


@pytest.mark.parametrize("name", ALL)
def test_each_variable_without_values_is_found_in_the_original(tmp_path, name):
    cuda, symbols = ALL[name]
    config = PortConfig(arch=("sm_90a",))
    unit = parse(project(tmp_path, cuda, without(symbols)), config)
    info = unit.kernels[0]
    case = find_case(unit, info, config)
    instances = [i.instance for i in case.instances]
    builds = build_original(unit.source, unit.options, info, instances, ("ptx",), unit=unit)
    asked = [(i, b.ptx, b.entry) for i, b in zip(instances, builds, strict=True)]
    declared = set(re.findall(r'name = "([\w:]+)"', symbols))
    with pytest.raises(PorterError) as error:
        require_values(case, unit, info, asked)
    assert {d.code for d in error.value.diagnostics} == {"PRT845"}
    assert {re.search(r'name = "([\w:]+)"', d.help)[1] for d in error.value.diagnostics} == declared
    if name in ("array", "struct", "half2", "extern"):  # no initialiser: to be seen without the source
        with pytest.raises(PorterError):
            require_values(case, None, info, asked)


def test_without_values_nothing_is_verified(tmp_path):
    _, verdicts = verified(project(tmp_path, ARRAY[0], ""))
    for check in ("numerics", "sanitizer", "determinism"):
        assert verdicts[check].status is Status.ERROR
    assert [d.code for d in verdicts["numerics"].diagnostics] == ["PRT845"]


@pytest.mark.parametrize("name", ["array", pytest.param("scalar", marks=pytest.mark.slow), "counter"])
def test_a_port_that_ignores_a_symbol_is_refused(tmp_path, name):
    pattern, instead = IGNORES[name]

    def ignore(text: str) -> str:
        changed = re.sub(pattern, instead, text, count=1, flags=re.M)
        assert changed != text, text
        return changed

    _, verdicts = verified(project(tmp_path, *ALL[name]), ignore)
    assert verdicts["compile"].status is Status.PASS, verdicts["compile"]
    assert verdicts["numerics"].status is Status.FAIL


def test_what_the_host_fills_needs_values_even_with_an_initialiser(tmp_path):
    cuda = ARRAY[0].replace("[5];", "[5] = {1, 2, 3, 4, 5};")
    _, verdicts = verified(project(tmp_path, cuda, ""))
    assert passed(verdicts)  # nobody overwrites it: a table
    host = "\nvoid go(const float* w) { cudaMemcpyToSymbolAsync(weights, w, 20, 0, cudaMemcpyHostToDevice, 0); }\n"
    _, verdicts = verified(project(tmp_path, cuda + host, ""))
    assert verdicts["numerics"].status is Status.ERROR
    assert "cudaMemcpyToSymbolAsync in line 3" in verdicts["numerics"].detail
    _, verdicts = verified(project(tmp_path, cuda + host, ARRAY[1]))
    assert passed(verdicts)


def test_a_table_that_the_case_gives_is_a_parameter(tmp_path):
    cuda = ARRAY[0].replace("[5];", "[5] = {1, 2, 3, 4, 5};")
    text, verdicts = verified(project(tmp_path, cuda, '[[symbols]]\nname = "weights"\ninitial = "declared"\n'))
    assert passed(verdicts) and 'runtime.Ptr("weights"' in text

    def forgets(text: str) -> str:
        return text.replace("lib.ldg(weights", "lib.ldg(x", 1)

    _, verdicts = verified(tmp_path / "k.cu", forgets)
    assert verdicts["numerics"].status is Status.FAIL


def test_an_instance_that_does_not_reach_a_symbol_takes_it_all_the_same(tmp_path):
    cuda = (
        "__constant__ float weights[5];\ntemplate <bool W> __global__ void k(const float* x, float* y, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) { if constexpr (W) y[i] = weights[i % 5] * x[i]; else y[i] = x[i]; } }\n"
        "template __global__ void k<true>(const float*, float*, int);\n"
        "template __global__ void k<false>(const float*, float*, int);"
    )
    instances = "[[instances]]\nargs = [false]\n[[instances]]\nargs = [true]\n"
    source = project(tmp_path, cuda, instances + ARRAY[1])
    assert passed(verified(source)[1])
    text, verdicts = verified(source, instantiate=("k<false>",))
    assert passed(verdicts) and "weights" not in text


def test_a_parameter_or_local_of_the_same_name_is_another_thing(tmp_path):
    cuda = (
        "namespace f { __constant__ float x[4]; }\n__device__ float nth(int x) { return f::x[x]; }\n"
        "__global__ void k(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) { float f_x = f::x[i & 3]; y[i] = nth(i & 3) * x[i] + f_x; } }"
    )
    text, verdicts = verified(project(tmp_path, cuda, '[[symbols]]\nname = "f::x"\ndist = "normal"\n'))
    assert passed(verdicts) and 'runtime.Ptr("f_x"' in text


REFUSED = {
    "unknown": (ARRAY, '[[symbols]]\nname = "weight"\ndist = "normal"\n', "PRT905", "reaches no variable `weight`"),
    "out constant": (ARRAY, ARRAY[1] + 'role = "inout"\n', "PRT903", "only reads __constant__"),
    "nothing": (ARRAY, '[[symbols]]\nname = "weights"\n', "PRT902", "no values are given"),
    "two": (ARRAY, ARRAY[1] + "values = [1]\n", "PRT903", "both say"),
    "members": (ARRAY, '[[symbols]]\nname = "weights"\nmembers = { a = 1 }\n', "PRT903", "it is not a struct"),
    "no member": (STRUCT, STRUCT[1].replace("gain", "gian"), "PRT901", "no member `gian`"),
    "a member less": (STRUCT, STRUCT[1].replace("gain = 0.75, ", ""), "PRT902", "the member `gain`"),
    "struct by dist": (STRUCT, '[[symbols]]\nname = "curve"\ndist = "normal"\n', "PRT902", "several types"),
    "dtype": (SCALAR, SCALAR[1] + 'dtype = "f16"\n', "PRT905", "takes f32"),
    "name": (ARRAY, '[[symbols]]\nname = "weights<float>"\ndist = "normal"\n', "PRT903", "not the name of a variable"),
    "two of a name": (
        NAMESPACE,
        '[[symbols]]\nname = "level"\ndist = "normal"\n',
        "PRT905",
        "may be bands::level or other::level",
    ),
    "values": (ARRAY, '[[symbols]]\nname = "weights"\nvalues = [1, 2]\n', "PRT903", "2 values for the 5 elements"),
    "knots": (STRUCT, STRUCT[1].replace("[-7, 2, 11]", "[2]"), "PRT903", "1 value for the 3 elements of `knots`"),
    "overwritten": (
        (ARRAY[0] + "\nvoid go(float* w) { cudaMemcpyToSymbol(weights, w, 20); }\n", ""),
        '[[symbols]]\nname = "weights"\ninitial = "declared"\n',
        "PRT903",
        "cudaMemcpyToSymbol in line 3",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_the_declaration_is_refused_at_its_line(tmp_path, name):
    (cuda, _), symbols, code, words = REFUSED[name]
    with pytest.raises(PorterError) as error:
        verified(project(tmp_path, cuda, symbols))
    (found,) = error.value.diagnostics
    assert found.code.startswith(code) and words in found.message
    assert found.span.line > HEAD.count("\n")


def test_a_declaration_that_gives_nothing_is_an_error(tmp_path):
    _, verdicts = verified(project(tmp_path, ARRAY[0], '[[symbols]]\nname = "weights"\ninitial = "declared"\n'))
    numerics = verdicts["numerics"]
    assert (
        numerics.status is Status.ERROR and "nothing in the declaration of weights gives it values" in numerics.detail
    )


def test_a_counter_starts_where_it_is_declared(tmp_path):
    def starts_at_zero(text: str) -> str:
        changed = text.replace("lib.atomic_add(passed, Uint32(1))", "passed[0] = Uint32(0)", 1)
        assert changed != text
        return changed

    _, verdicts = verified(project(tmp_path, *COUNTER), starts_at_zero)
    assert verdicts["numerics"].status is Status.FAIL
