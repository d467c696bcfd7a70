"""`--style tensor`: what the reference kernels look like, and that a lift that is wrong is never written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from porter import lift as lifts
from porter.lift.style import pointers_left
from tests.cli.conftest import porter as porter
from tests.lift.ports import REFERENCE, SOURCES, kernel_of, pointer_form, tensor_form

#: kernels of which something stays a pointer, and what
LEFT = {
    "topk_softmax_general": "a structure in shared memory",
    "rms_norm_dynamic_fp8_quant": "dynamic shared memory of several types",
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_pointers_are_left_where_it_is_known_why(path: Path) -> None:
    left = pointers_left(tensor_form(path).module.text)
    assert bool(left) == (path.stem in LEFT), left


def test_rms_norm_reads_as_written_by_hand() -> None:
    text = kernel_of(tensor_form(REFERENCE / "norm/rms_norm.cu").module.text)
    for line in (
        "mInput = lib.tensor(input, (None, hidden_size), (input_stride, 1), vector=VEC)",
        "x_vec = cute.local_tile(mInput[row, None], (VEC,), (None,))",
        "x = lib.load(x_vec[None, i], readonly=True)",
        "sum_sq = lib.total(f * f, sum_sq)",
        "y = (f * w.to(Float32)).to(scalar_t)",
        "y_vec[None, i].store(y)",
    ):
        assert re.search(rf"^ +{re.escape(line)}$", text, re.M), line


def test_silu_and_mul_reads_as_written_by_hand() -> None:
    """The source moves four 32-bit words at once and looks at them as eight halves."""
    text = kernel_of(tensor_form(REFERENCE / "activation/silu_and_mul.cu").module.text)
    for line in (
        "mInput8 = lib.tensor(input, (None, 2 * d), vector=8)",
        "g = lib.load(cute.local_tile(mInput8[token, None], (8,), (i,)), readonly=True)",
        "u = lib.load(cute.local_tile(mInput8[token, None], (8,), (d // 8 + i,)), readonly=True)",
        "cute.local_tile(mOut8[token, None], (8,), (i,)).store(r.load())",
    ):
        assert re.search(rf"^ +{re.escape(line)}$", text, re.M), line
    assert "Uint32(" not in text.replace("Uint32(bidx)", "") and "lib.view" not in text


def test_a_column_that_may_be_wide_stays_wide() -> None:
    """A buffer of which the kernel does not know the length may have more than 2^31 elements."""
    text = kernel_of(tensor_form(REFERENCE / "quant/static_int8_quant.cu").module.text)
    assert "v = lib.load(x[None, Int64(i)], readonly=True)" in text


def test_a_number_of_elements_is_promised_where_the_source_relies_on_it() -> None:
    """layer_norm reads four floats at once where VEC is not 1: elsewhere its weights need no such alignment."""
    text = kernel_of(tensor_form(REFERENCE / "norm/layer_norm.cu").module.text)
    (whole,) = re.findall(r"^    mGamma = (.*)$", text, re.M)
    assert "vector" not in whole
    arm = text[text.index("if cutlass.const_expr(not (VEC == 1)):") :]
    assert arm.split("\n")[1].strip() == "mGamma4 = lib.tensor(gamma, (hidden_size,), vector=4)"


def test_nothing_unused_is_left() -> None:
    """A function object without members, its call operator, and the names that only they used are gone."""
    text = tensor_form(REFERENCE / "softmax/warp_log_softmax.cu").module.text
    assert "lib.warp_max(" in text and "operator" not in text and "Uint8" not in text and "op_" not in text


def test_lines_name_their_lifts() -> None:
    module = tensor_form(REFERENCE / "norm/rms_norm.cu").module
    rows = module.text.splitlines()
    authors = {rows[e.line - 1].strip(): e.author for e in module.line_map}
    assert "vector_arithmetic" in authors["sum_sq = lib.total(f * f, sum_sq)"]
    assert {"tensor", "tensor_access", "vector_arithmetic", "named_reduction"} <= set(module.patterns)


def test_the_pointer_form_is_untouched() -> None:
    made = pointer_form(REFERENCE / "norm/rms_norm.cu")
    text = made.module.text
    tensor_form(REFERENCE / "norm/rms_norm.cu")
    assert made.module.text == text and "lib.copy(" in text


def test_a_verified_tensor_form_is_written_and_recorded(porter, tmp_path: Path) -> None:
    done = porter("port", str(REFERENCE / "moe/permute_rows.cu"), "--style", "tensor", "-o", "out", "--arch", "sm_90a")
    assert done.returncode == 0, done.stderr
    assert "lib.tensor(" in (tmp_path / "out/permute_rows.py").read_text()
    record = json.loads((tmp_path / "out/permute_rows.port.json").read_text())
    assert record["options"]["style"] == "tensor"
    assert {v["status"] for v in record["verdicts"]} <= {"PASS", "SKIP"}


def test_a_lift_that_is_wrong_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier judges the form over tensors; the port over pointers is written in its place, and the report says
    what did not pass."""
    from dataclasses import replace

    from porter.config import PortConfig
    from porter.pipeline.stages import port

    lift = lifts.lift

    def wrong(module, plan):
        made = lift(module, plan)
        return replace(made, text=made.text.replace("[None, i].store(", "[None, i * 0].store("))

    monkeypatch.setattr(lifts, "lift", wrong)
    config = PortConfig(style="tensor", output=tmp_path / "out", arch=("sm_90a",))
    report = port(REFERENCE / "moe/permute_rows.cu", config)
    (kernel,) = report.kernels
    told = next(d for d in kernel.diagnostics if d.code == "PRT974")
    assert "does not pass" in told.message
    text = (tmp_path / "out/permute_rows.py").read_text()
    assert "lib.tensor(" not in text and "lib.copy(" in text
    assert all(v.status.value in ("PASS", "SKIP") for v in kernel.verdicts)
