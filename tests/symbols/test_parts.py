"""Names of module variables, their memory in the emulator, drafted symbols, symbols in other commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

from porter.case.reader import load_case
from porter.config import PortConfig
from porter.frontend.case.draft import draft_case
from porter.model import PorterError, Status
from porter.pipeline.inputs import case_if_any, find_case, parse
from porter.pipeline.stages import JudgeOptions, Run, port, run_checks, show_stage, translate
from porter.provenance.store import read_record
from porter.verify import emulator as ptx
from porter.verify.emulate_case import choose_points, emulate, make_subject
from porter.verify.launches.symbols import components, means
from porter.verify.original.build import build_original
from tests.symbols.projects import ARRAY, COUNTER, HEAD, STRUCT, project


@pytest.mark.parametrize(
    ("mangled", "names"),
    [
        ("taps", "taps"),
        ("_ZN2ns4tapsE", "ns::taps"),
        ("_ZN31_INTERNAL_00000000_4_a_cu_count2ns33_GLOBAL__N__00000000_4_a_cu_count3hidE", "ns::hid"),
        ("_ZL4taps", "taps"),
        ("_Z5tableIfE", "table"),
        ("_ZN1a1b5tableI6__halfLi3EEE", "a::b::table"),
        ("_ZZ4scanPKfPfiE5calls", "scan::calls"),
        ("_ZZN2ns4scanI6__halfEEvPKT_PfiE5calls", "ns::scan::calls"),
        ("_ZZ4scanPfE5calls_0", "scan::calls"),
        ("_ZNSt5thingE", ""),
    ],
)
def test_names_of_module_variables(mangled, names):
    assert "::".join(components(mangled)) == names
    assert not names or (means(names, mangled) and not means(f"x{names}", mangled))


MODULE = """
.version 8.0
.target sm_90a
.address_size 64
.const .align 4 .b8 weights[8];
.global .align 4 .u32 count = 5;
.visible .entry k(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  ld.const.u32 %r1, [weights+4];
  st.global.u32 [%rd2], %r1;
  atom.global.add.u32 %r2, [count], 3;
  ret;
}
"""


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_emulator_takes_and_leaves_module_variables(backend):
    module = ptx.load(MODULE)
    out, weights, count = (np.array(v, np.uint32) for v in ([0], [7, 9], [100]))
    given = {"weights": ptx.Buffer(weights), "count": ptx.Buffer(count)}
    result = ptx.launch(module, "k", 1, 1, [ptx.Buffer(out)], variables=given, backend=backend)
    assert result.ok and list(out) == [9] and list(count) == [103] and list(weights) == [7, 9]
    result = ptx.launch(module, "k", 1, 1, [ptx.Buffer(out)], variables={"weights": given["weights"]}, backend=backend)
    assert result.ok and list(count) == [103], "a variable that is not given is the launch's own"
    fixed = {**given, "count": ptx.Buffer(count, writable=False)}
    result = ptx.launch(module, "k", 1, 1, [ptx.Buffer(out)], variables=fixed, backend=backend)
    assert [v.kind for v in result.violations] == ["read-only-write"]
    with pytest.raises(ptx.LaunchError, match="weights has 8 bytes, its values have 4"):
        ptx.launch(module, "k", 1, 1, [ptx.Buffer(out)], variables={"weights": ptx.Buffer(count)}, backend=backend)


def drafted(tmp_path, cuda: str) -> str:
    (tmp_path / "k.cu").write_text(cuda)
    unit = parse(tmp_path / "k.cu", PortConfig())
    return draft_case(unit, unit.kernels[0])


def test_drafts_ask_for_symbols(tmp_path):
    host = "\nvoid go(const float* x, float* y, int n, const float* w) {\n"
    host += "  cudaMemcpyToSymbolAsync(weights, w, 20, 0, cudaMemcpyDeviceToDevice, 0);\n"
    host += "  k<<<(n + 127) / 128, 128>>>(x, y, n);\n}\n"
    text = drafted(tmp_path, ARRAY[0] + host)
    assert "[[symbols]]  # __constant__, line 1: f32 [5]\n" in text
    assert 'dist = "normal"  # filled by cudaMemcpyToSymbolAsync in line 4\n' in text
    text = drafted(tmp_path, ARRAY[0])
    assert 'dist = "TODO"  # TODO what the host writes' in text
    text = drafted(tmp_path, STRUCT[0] + "\nvoid go(Curve c) { cudaMemcpyToSymbol(curve, &c, sizeof(c)); }\n")
    assert 'members = { gain = "TODO", order = "TODO", knots = "TODO" }  # TODO filled by cudaMemcpyToSymbol' in text
    text = drafted(tmp_path, COUNTER[0])
    assert 'name = "passed"\nrole = "inout"\ninitial = "declared"' in text
    text = drafted(tmp_path, ARRAY[0].replace("float weights", "unsigned weights") + "\n" + host)
    assert 'dist = "randint"  # filled by' in text and 'high = "TODO"' in text
    (tmp_path / "k.case.toml").write_text(HEAD + text[text.index("[[symbols]]") : text.index("[scalars]")])
    unit = parse(tmp_path / "k.cu", PortConfig())
    with pytest.raises(PorterError, match="TODO"):
        case_if_any(unit, unit.kernels[0], PortConfig())


def test_a_port_without_a_case_says_what_its_parameters_are(tmp_path):
    (tmp_path / "k.cu").write_text(STRUCT[0])
    text, messages, code = show_stage(tmp_path / "k.cu", PortConfig(arch=("sm_90a",)), "py")
    assert code == 0 and not messages
    assert "Variables of the source that are parameters here:" in text
    assert "byte 8: knots, i16[3]" in text
    assert "def run_k(x, y, n, curve, *, grid, block, smem_bytes=0):" in text
    assert text.count("curve: the __constant__ variable curve") == 2


def test_the_record_says_which_parameter_stands_for_which_variable(tmp_path):
    source = project(tmp_path, *ARRAY)
    report = port(source, PortConfig(arch=("sm_90a",), output=tmp_path / "out", verify=False))
    assert report.exit_code == 0, report
    record = read_record(tmp_path / "out" / "k.py")
    assert record is not None and record.symbols == {"weights": "__constant__ weights"}
    assert json.loads((tmp_path / "out" / "k.port.json").read_text())["symbols"] == record.symbols


def test_emulate_fills_the_variables_of_an_original(tmp_path):
    source = project(tmp_path, *COUNTER)
    unit = parse(source, PortConfig(arch=("sm_90a",)))
    (build,) = build_original(unit.source, unit.options, unit.kernels[0], want=("ptx",), unit=unit)
    case = load_case(tmp_path / "k.case.toml")
    subject = make_subject(ptx.load(build.ptx), build.entry, case, order=("x", "y", "n"))
    assert subject.variables == {"passed": "passed"}
    (point,) = choose_points(subject, {"n": "33"}, None, 0)
    made = emulate(subject, point)
    assert made is not None and made.result.ok
    (passed,) = [o for o in made.outputs if o.name == "passed"]
    assert 40 < passed.mean < 40 + 33  # starts as declared, and counts what is positive


def test_a_port_stands_in_for_the_original(tmp_path):
    """`porter verify --against`: both sides take the symbols as parameters."""
    source = project(
        tmp_path,
        ARRAY[0]
        .replace("__global__", "__device__ int calls = 3;\n__global__")
        .replace("if (i < n)", "if (i == 0) calls += 2; if (i < n)"),
        ARRAY[1] + COUNTER[1].replace("passed", "calls"),
    )
    config = PortConfig(arch=("sm_90a",), seed=5)
    unit = parse(source, config)
    info = unit.kernels[0]
    case = find_case(unit, info, config)
    text = translate(unit, info, case, config, Run("k")).module.text
    (tmp_path / "then.py").write_text(text)
    (tmp_path / "now.py").write_text(text.replace("calls[0] + 2", "calls[0] + 3"))
    options = JudgeOptions(oracle=tmp_path / "then.py", launches=4)
    same = run_checks(tmp_path / "then.py", unit, info, case, config, Run("k"), options)
    assert next(v for v in same if v.check == "numerics").status is Status.PASS
    other = run_checks(tmp_path / "now.py", unit, info, case, config, Run("k"), options)
    assert next(v for v in other if v.check == "numerics").status is Status.FAIL


@pytest.mark.parametrize(
    ("declaration", "use", "code", "words"),
    [
        ("__constant__ const float* rows[2];", "rows[0][i]", "PRT211", "holds an address"),
        ("struct S { int n; float* p; };\n__device__ S where;", "where.n", "PRT210", "holds an address"),
        ("extern __constant__ float open[];", "open[i]", "PRT211", "has no length here"),
        ("union U { int n; float f; };\n__constant__ U either;", "either.f", "PRT211", "is a union"),
    ],
)
def test_what_no_case_can_give_is_a_hole(tmp_path, declaration, use, code, words):
    body = "int i = threadIdx.x; if (i < n) y[i] = x[i] + " + use + ";"
    source = tmp_path / "k.cu"
    source.write_text(f"{declaration}\n__global__ void k(const float* x, float* y, int n) {{ {body} }}\n")
    _, messages, holes = show_stage(source, PortConfig(arch=("sm_90a",)), "py")
    found = [m for m in messages if m.code == code]
    assert holes == 1 and found and all(words in m.message for m in found), messages
