"""Kernels that come without a case: what is derived, what a person has to complete, and what the port is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter.case.reader import load_case
from porter.cli import main
from porter.config import PortConfig
from porter.model import PorterError
from porter.pipeline.inputs import find_case, parse
from porter.pipeline.outputs import drafted_case_path

ROWS = """\
__global__ void add_bias(float* out, const float* x, const float* bias, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[(long)blockIdx.x * cols + c] = x[(long)blockIdx.x * cols + c] + bias[c];
}
void launch(float* out, const float* x, const float* bias, int rows, int cols) {
  add_bias<<<rows, 128>>>(out, x, bias, rows, cols);
}
"""
UNSEEN = """\
__global__ void negate(float* out, const float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = -x[i];
}
"""
FOURS = """\
__global__ void twice(float4* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; v.x *= 2.f; v.y *= 2.f; v.z *= 2.f; v.w *= 2.f; x[i] = v; }
}
void launch(float4* x, int n) { twice<<<(n + 63) / 64, 64>>>(x, n); }
"""
STRUCT = """\
struct Params { float* x; int n; };
__global__ void fill(Params p) { if (threadIdx.x < p.n) p.x[threadIdx.x] = 1.f; }
void launch(Params p) { fill<<<1, 64>>>(p); }
"""


def port(folder: Path, text: str, *arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    source = folder / "k.cu"
    source.write_text(text)
    given = ["port", str(source), "-o", str(folder / "out"), "--arch", "sm_90a", "--output-format", "json"]
    code = main([*given, *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_what_raw_pointers_hold_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = port(tmp_path, ROWS, capsys=capsys)
    (kernel,) = report["kernels"]
    assert code == 1 and kernel["state"] == "agrees" and not kernel["verified"] and not kernel["ok"]
    assert kernel["case_derived_from"] == "k.cu:6"
    case = load_case(tmp_path / "out" / "k.add_bias.case.toml")
    shapes = {b.name: b.shape for b in case.buffers}
    assert shapes == {"out": ("rows", "cols"), "x": ("rows", "cols"), "bias": ("cols",)}
    assert case.derived == "k.cu:6" and case.source_path.resolve() == (tmp_path / "k.cu").resolve()
    message = next(d for d in kernel["diagnostics"] if d["code"] == "PRT914")
    assert any("bias is [cols]" in note for note in message["notes"])


def test_a_case_that_somebody_confirms_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert port(tmp_path, ROWS, capsys=capsys)[0] == 1
    code, report = port(tmp_path, ROWS, "--confirm-cases", capsys=capsys)
    assert code == 0 and report["kernels"][0]["state"] == "verified"
    assert "derived" not in (tmp_path / "out" / "k.add_bias.case.toml").read_text()
    assert port(tmp_path, ROWS, capsys=capsys)[0] == 0, "it stays confirmed"


def test_an_agreeing_port_stays_so_when_it_is_verified_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port(tmp_path, ROWS, capsys=capsys)
    assert main(["verify", str(tmp_path / "out"), "--arch", "sm_90a", "--output-format", "json"]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["state"] == "agrees" and not kernel["verified"]


def test_a_launch_that_is_not_in_the_file_is_a_guess_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = port(tmp_path, UNSEEN, capsys=capsys)
    (kernel,) = report["kernels"]
    assert code == 1 and kernel["state"] == "agrees"
    message = next(d for d in kernel["diagnostics"] if d["code"] == "PRT914")
    assert any("no launch was found" in note for note in message["notes"])
    case = load_case(tmp_path / "out" / "k.negate.case.toml")
    assert case.buffer("x").shape == ("n",) and "grid_blocks" in case.base_sizes


def test_a_derived_case_does_not_let_a_wrong_port_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port(tmp_path, ROWS, capsys=capsys)
    made = tmp_path / "out" / "k.py"
    text = made.read_text()
    assert text.count("+ bias[c]") == 1
    made.write_text(text.replace("+ bias[c]", "- bias[c]"))
    assert main(["verify", str(tmp_path / "out"), "--arch", "sm_90a", "--output-format", "json"]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["state"] == "failed"
    assert any(v["check"] == "numerics" and v["status"] == "FAIL" for v in kernel["verdicts"])


def test_without_a_case_the_port_is_written_and_says_that_it_is_not_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = port(tmp_path, STRUCT, capsys=capsys)
    (kernel,) = report["kernels"]
    assert code == 1 and kernel["state"] == "unverified" and kernel["verdicts"] == []
    assert "Not verified" in (tmp_path / "out" / "k.py").read_text()
    record = json.loads((tmp_path / "out" / "k.port.json").read_text())
    assert record["verdicts"] == [] and record["verified_sha256"] == ""
    message = next(d for d in kernel["diagnostics"] if d["code"] == "PRT910")
    assert message["severity"] == "warning" and "k.fill.case.toml" in message["help"]


@pytest.mark.parametrize("text", [ROWS, UNSEEN, STRUCT])
def test_no_verify_needs_no_case(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = port(tmp_path, text, "--no-verify", capsys=capsys)
    assert code == 0 and (tmp_path / "out" / "k.py").is_file()
    assert report["kernels"][0]["state"] == "unverified"


def test_a_draft_is_never_overwritten_and_used_once_it_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert port(tmp_path, FOURS, capsys=capsys)[0] == 1
    draft = tmp_path / "out" / "k.twice.case.toml"
    mine = """\
schema = 1
kernel = "twice"
source = "../k.cu"
[sizes]
n = [1, 63, 64, 200]
[[buffers]]
name = "x"
dtype = "f32"
shape = ["n", 4]
role = "inout"
[scalars]
n = "n"
[launch]
grid = ["ceil_div(n, 64)"]
block = [64]
"""
    draft.write_text(mine.replace('role = "inout"', 'role = "TODO"'))
    code, report = port(tmp_path, FOURS, capsys=capsys)
    assert code == 1 and report["kernels"][0]["state"] == "unverified" and "TODO" in draft.read_text()
    draft.write_text(mine)
    code, report = port(tmp_path, FOURS, capsys=capsys)
    assert code == 0 and report["kernels"][0]["state"] == "verified" and draft.read_text() == mine


@pytest.mark.parametrize("drafted", [True, False])
def test_verify_writes_no_draft(
    tmp_path: Path, drafted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port(tmp_path, STRUCT, "--no-verify", capsys=capsys)
    draft = tmp_path / "out/k.fill.case.toml"
    if not drafted:
        draft.unlink()
    monkeypatch.chdir(tmp_path)  # where drafts go by default
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert main(["verify", str(tmp_path / "out/k.py"), "--arch", "sm_90a"]) == 2
    assert "PRT910" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("drafted", [True, False])
def test_find_case_says_what_to_do_and_writes_nothing(tmp_path: Path, drafted: bool) -> None:
    source, out = tmp_path / "k.cu", tmp_path / "out"
    source.write_text(STRUCT)
    unit = parse(source, PortConfig())
    if drafted:
        out.mkdir()
        (out / "k.fill.case.toml").write_text("TODO\n")
    with pytest.raises(PorterError) as caught:
        find_case(unit, unit.kernels[0], PortConfig(output=out))
    (found,) = caught.value.diagnostics
    assert found.code == "PRT910" and ("complete" if drafted else "`porter port ") in found.help
    assert out.exists() == drafted


def test_kernels_of_one_name_have_cases_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(
        "namespace a { __global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; } }\n"
        "namespace b { __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; } }\n"
        "__global__ void scale(int* x) { x[threadIdx.x] *= 2; }\n"
    )
    unit = parse(file, PortConfig(output=tmp_path / "out"))
    names = [drafted_case_path(unit, k, PortConfig(output=tmp_path / "out")).name for k in unit.kernels]
    assert names == ["k.scale.case.toml", "k.scale_2.case.toml", "k.scale_3.case.toml"]
