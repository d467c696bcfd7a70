"""verify_port from end to end, original by NVRTC, port by CuTeDSL, both on the emulator: one true port, wrong ones."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from porter.case.reader import parse_case
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import PorterError, Status
from porter.source import Source
from porter.verify.original.nvrtc import require_nvrtc
from porter.verify.run import CHECKS, VerifyRequest, verify_port

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

CUDA = """#include <cuda_bf16.h>
#include <cuda_runtime.h>
template <typename T, int VEC>
__global__ void scale_kernel(T* __restrict__ out, const T* __restrict__ inp, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T(float(inp[i]) * factor * float(VEC));
}
"""
CASE = """kernel = "scale_kernel"
[[instances]]
args = ["__nv_bfloat16", 2]
[[instances]]
args = ["float", 3]
[sizes]
n = [0, 1, 100, 128, 129, 1000]
[[buffers]]
name = "out"
dtype = "T"
shape = ["n"]
role = "out"
[[buffers]]
name = "inp"
dtype = "T"
shape = ["n"]
[scalars]
factor = [0.5, -3.0]
n = "n"
[launch]
grid = ["ceil_div(n, 128)"]
block = [128]
[reference]
function = "scale_reference.py:scale"
"""
REFERENCE = (
    "def scale(inputs, scalars, sizes, args):\n    return {'out': inputs['inp'] * scalars['factor'] * args['VEC']}\n"
)
PORT = (Path(__file__).parents[1] / "corpus" / "port_scale.py").read_text()
LINE = "out[i] = T(Float32(inp[i]) * factor * Float32(VEC))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    before = os.environ.get("PORTER_CACHE")
    os.environ["PORTER_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    path = tmp_path_factory.mktemp("scale")
    (path / "scale.cu").write_text(CUDA)
    (path / "scale_reference.py").write_text(REFERENCE)
    yield path
    os.environ.pop("PORTER_CACHE")
    if before is not None:
        os.environ["PORTER_CACHE"] = before


@pytest.fixture(scope="module")
def base(folder):
    unit = parse_source(Source.read(folder / "scale.cu"), ParseOptions())
    case = parse_case(CASE, folder / "scale.case.toml")
    return VerifyRequest(folder / "port.py", unit.source, unit.kernels[0], case, unit=unit, seed=11)


def verdicts(base, text=PORT, **changes):
    base.port_path.write_text(text)
    return {v.check: v for v in verify_port(replace(base, **changes))}


def changed(old, new):
    assert old in PORT
    return PORT.replace(old, new, 1)


def test_a_true_port_passes_every_check(base):
    seen = []
    found = verdicts(base, arches=("sm_90a", "sm_100a"), on_progress=lambda *event: seen.append(event))
    assert tuple(found) == CHECKS
    assert {c: v.status for c, v in found.items() if v.status is not Status.PASS} == {"performance": Status.SKIP}
    assert found["numerics"].detail.startswith("bit-equal in ") and "seed 11" in found["numerics"].detail
    assert found["numerics"].facts.seed == 11 and found["numerics"].facts.launches >= 16
    assert set(found["resources"].facts.instances) >= {"<__nv_bfloat16, 2>", "<float, 3>"}
    assert seen[-1][0] == "determinism" and ("compile", 4, 4) in seen
    assert all(v.seconds is not None for c, v in found.items() if c != "performance")


def test_a_fresh_seed_is_taken_and_can_be_replayed(base):
    first, second = (verdicts(base, seed=None)["numerics"] for _ in range(2))
    assert first.facts.seed != second.facts.seed
    assert first.status is second.status is Status.PASS
    wrong = changed(LINE, LINE.replace("* factor", ""))
    again, once_more = (verdicts(base, wrong, seed=first.facts.seed)["numerics"] for _ in range(2))
    assert again.status is Status.FAIL
    assert [d.message for d in again.diagnostics] == [d.message for d in once_more.diagnostics]


WRONG = {
    "factor dropped": (LINE, "out[i] = T(Float32(inp[i]) * Float32(VEC))", "numerics", "PRT801"),
    "zeros": (LINE, "out[i] = T(Float32(0.0))", "numerics", "PRT801"),
    "input returned": (LINE, "out[i] = inp[i]", "numerics", "PRT801"),
    "sign lost": (
        LINE,
        LINE.replace("Float32(VEC)", "Float32(VEC)").replace("factor", "cute.arch.fmax(factor, 0.0)"),
        "numerics",
        "PRT801",
    ),
    "last element": ("if i < n:", "if i < n - 1:", "numerics", "PRT801"),
    "neighbour": ("inp[i])", "inp[i ^ 1])", "sanitizer", "PRT840"),
    "one past the end": ("if i < n:", "if i <= n:", "sanitizer", "PRT840"),
    "in place": (LINE, LINE.replace("out[i] =", "inp[i] ="), "numerics", "PRT801"),
    "reads what it writes": (LINE, "out[i] = T(Float32(out[i]) * Float32(0.0))", "sanitizer", "PRT840"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ports_fail_the_check_that_is_meant_for_them(base, name):
    old, new, check, code = WRONG[name]
    verdict = verdicts(base, changed(old, new))[check]
    assert verdict.status is Status.FAIL, verdict
    assert any(d.code == code for d in verdict.diagnostics), verdict.diagnostics
    if check == "sanitizer":
        assert verdict.diagnostics[0].span.file.endswith("port.py") and verdict.diagnostics[0].span.line > 10


def test_a_launch_of_its_own_that_is_too_small_is_found(base):
    found = verdicts(base, changed("(n + 127) // 128", "n // 128"))
    assert found["numerics"].status is Status.FAIL
    assert {"PRT801", "PRT807"} & {d.code for d in found["numerics"].diagnostics}
    broken = verdicts(base, changed("return ((n + 127)", "return ((m + 127)"))["numerics"]
    assert broken.status is Status.ERROR and broken.diagnostics[0].code == "PRT807"


def test_what_is_not_run_says_why(base):
    dishonest = verdicts(base, changed("import cutlass\n", "import subprocess\nimport cutlass\n"))
    assert dishonest["honesty"].status is Status.FAIL and dishonest["compile"].status is Status.SKIP
    assert "see honesty" in dishonest["numerics"].detail
    unknown = verdicts(base, changed("cute.arch.thread_idx()", "cute.arch.thread_index()"))
    assert unknown["names"].status is Status.FAIL and "`thread_idx`" in unknown["names"].diagnostics[0].help
    assert unknown["names"].diagnostics[0].span.line == 1 + PORT[: PORT.index("cute.arch.thread_idx")].count("\n")
    broken = verdicts(
        base, changed("if i < n:\n", "for j in range(n):\n        if j > 3:\n            break\n    if i < n:\n")
    )
    assert broken["compile"].status is Status.FAIL and "UNSUP_EARLY_EXIT" in broken["compile"].diagnostics[0].message
    assert broken["numerics"].status is Status.SKIP and "see compile" in broken["numerics"].detail


def test_a_case_that_does_not_fit_is_an_error_not_a_pass(base):
    small = parse_case(CASE.replace('shape = ["n"]\nrole', 'shape = ["max(n, 1) - 1"]\nrole'), base.case.path)
    found = verdicts(base, case=small)
    assert found["sanitizer"].status is Status.ERROR and found["sanitizer"].diagnostics[0].code == "PRT841"
    wrong = parse_case(CASE.replace(":scale", ":nothing"), base.case.path)
    found = verdicts(base, case=wrong)
    assert found["numerics"].status is Status.ERROR and found["numerics"].diagnostics[0].code == "PRT907"
    (base.port_path.parent / "scale_reference.py").write_text(REFERENCE.replace("* scalars", "/ scalars"))
    found = verdicts(base)
    (base.port_path.parent / "scale_reference.py").write_text(REFERENCE)
    assert found["numerics"].status is Status.ERROR and found["numerics"].diagnostics[0].code == "PRT806"


def test_an_original_that_does_not_compile_is_an_error(base):
    source = Source(base.source.path, CUDA.replace("float(inp[i])", "flaot(inp[i])"))
    found = verdicts(base, source=source, unit=None)
    assert found["numerics"].status is Status.ERROR and "could not be compiled" in found["numerics"].detail
    assert found["compile"].status is Status.PASS


def test_time_that_runs_out_is_no_pass(base):
    found = verdicts(base, budget=0.0)
    assert found["numerics"].status is Status.ERROR and found["numerics"].diagnostics[0].code == "PRT808"


def test_a_port_that_changes_meanwhile_is_no_pass(base, monkeypatch):
    from porter.verify import run

    compile_port = run.compile_port

    def edit_and_compile(path, *arguments, **options):
        path.write_text(path.read_text().replace("* factor", "* factor * factor"))
        return compile_port(path, *arguments, **options)

    monkeypatch.setattr(run, "compile_port", edit_and_compile)
    found = verdicts(base)
    assert found["compile"].status is Status.ERROR and "changed while" in found["compile"].detail
    assert found["numerics"].status is not Status.PASS
