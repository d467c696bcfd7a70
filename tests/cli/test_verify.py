"""`porter port` with verification, and `porter verify`: true ports pass, edits are judged, records are kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from porter.provenance.record import sha256_text
from porter.provenance.store import is_edited, read_record

from .test_bad_input import CASE, SCALE

REFERENCE = Path(__file__).resolve().parents[2] / "reference_kernels"


@pytest.fixture
def ported(porter, tmp_path: Path) -> Path:
    """A folder with scale.cu, its case, and out/scale.py, which nobody has verified yet."""
    (tmp_path / "scale.cu").write_text(SCALE)
    (tmp_path / "scale.case.toml").write_text(CASE)
    (tmp_path / "pyproject.toml").write_text('[tool.porter]\narch = ["sm_90a"]\n')
    done = porter("port", "scale.cu", "-o", "out", "--no-verify")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_port_is_verified_in_one_go_and_the_answers_are_kept(porter, tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(SCALE)
    (tmp_path / "scale.case.toml").write_text(CASE)
    done = porter("port", "scale.cu", "-o", "out", "--arch", "sm_90a", "--seed", "7", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["verified"] and kernel["port"] == "out/scale.py"
    statuses = {v["check"]: v["status"] for v in kernel["verdicts"]}
    assert statuses["numerics"] == statuses["sanitizer"] == statuses["compile"] == "PASS"
    assert statuses["performance"] == "SKIP"
    assert {"parse", "plan", "emit", "compile", "numerics", "total"} <= set(kernel["seconds"])
    record = read_record(tmp_path / "out/scale.py")
    assert record is not None
    assert [v.check for v in record.verdicts] == list(statuses)
    assert record.verified_sha256 == sha256_text((tmp_path / "out/scale.py").read_text())
    assert "seed 7" in next(v.detail for v in record.verdicts if v.check == "numerics")
    assert (record.source, record.case) == ("../scale.cu", "../scale.case.toml")


def test_no_verify_never_says_verified(porter, ported: Path) -> None:
    record = read_record(ported / "out/scale.py")
    assert record is not None and record.verdicts == () and record.verified_sha256 == ""


def test_verify_judges_an_edit_and_leaves_it(porter, ported: Path) -> None:
    port = ported / "out/scale.py"
    port.write_text(port.read_text() + "\n# tuned by hand\n")
    done = porter("verify", "out")
    assert done.returncode == 0, done.stderr
    record = read_record(port)
    assert record is not None and record.verified_sha256 == sha256_text(port.read_text())
    assert is_edited(port) and port.read_text().endswith("# tuned by hand\n")


def test_verify_finds_a_wrong_edit_and_names_the_cuda_line(porter, ported: Path) -> None:
    port = ported / "out/scale.py"
    text = port.read_text()
    line = next(n for n in text.splitlines() if "* factor" in n)
    port.write_text(text.replace(line, line.replace("* factor", "+ factor")))
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1
    assert "numerics    FAIL" in done.stdout and "1 check failed" in done.stdout


def test_a_compile_error_after_an_edit_points_to_the_source_and_the_port(porter, ported: Path) -> None:
    port = ported / "out/scale.py"
    lines = port.read_text().splitlines()
    at = next(n for n, row in enumerate(lines) if "* factor" in row)
    lines[at] = lines[at].replace("factor", "undefined_name")
    port.write_text("\n".join(lines) + "\n")
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1
    assert "scale.cu:4:" in done.stderr and f"= port: out/scale.py:{at + 1}" in done.stderr


def test_a_changed_source_is_said(porter, ported: Path) -> None:
    (ported / "scale.cu").write_text(SCALE.replace("* factor", "* factor * 2.0f"))
    done = porter("verify", "out")
    assert done.returncode == 1 and "PRT958" in done.stderr


def test_what_porter_did_not_make_is_2(porter, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    for arguments in (["mine.py"], ["."], ["gone.py"]):
        assert porter("verify", *arguments).returncode == 2


def test_instances_can_be_chosen(porter, tmp_path: Path) -> None:
    for name in ("rms_norm.cu", "rms_norm.case.toml"):
        shutil.copy(REFERENCE / "norm" / name, tmp_path)
    done = porter("port", "rms_norm.cu", "--arch", "sm_90a", "--instantiate", "rms_norm_kernel<__half, 8>")
    assert done.returncode == 0, done.stdout + done.stderr
    record = read_record(tmp_path / "ported/rms_norm.py")
    assert record is not None and [i.args for i in record.instances] == [("__half", "8")]
    other = porter("port", "rms_norm.cu", "--no-verify", "--instantiate", "rms_norm_kernel<float, 4>")
    assert other.returncode == 0 and "PRT911" in other.stderr


def test_several_kernels_of_one_file_are_a_file_each(porter, tmp_path: Path) -> None:
    (tmp_path / "two.cu").write_text(
        SCALE + SCALE.replace("scale_kernel", "add_kernel").replace("* factor", "+ factor")
    )
    for name in ("scale", "add"):
        (tmp_path / f"two.{name}_kernel.case.toml").write_text(CASE.replace("scale_kernel", f"{name}_kernel"))
    done = porter("port", "two.cu", "-o", "out", "--arch", "sm_90a", "--kernel", "add_kernel")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [p.name for p in (tmp_path / "out").glob("*.py")] == ["add_kernel.py"]
