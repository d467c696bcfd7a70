"""Cheats on paper: a case or a `.port.json` that was edited so that a wrong port passes, or looks as if it had."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from .test_verify import ported as ported

WRONG = ("* factor", "* (factor if n == 100 else Float32(0.0))")


def edited(folder: Path, old: str, new: str, file: str = "scale.case.toml") -> None:
    path = folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_an_edited_case_is_an_error_whatever_the_checks_say(porter, ported: Path) -> None:
    edited(ported, "n = [1, 100]", "n = [100]")
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1 and "PRT959" in done.stderr + done.stdout
    assert "scale.case.toml" in done.stderr + done.stdout and "--case" in done.stderr + done.stdout
    assert "contract" in done.stdout
    named = porter("verify", "out/scale.py", "--case", "scale.case.toml")
    assert named.returncode == 0, named.stderr
    assert porter("verify", "out/scale.py").returncode == 0  # it is the contract now


def test_a_case_that_is_gone_or_replaced_is_an_error(porter, ported: Path) -> None:
    record = json.loads((ported / "out/scale.port.json").read_text())
    (ported / "mild.case.toml").write_text((ported / "scale.case.toml").read_text().replace("[1, 100]", "[100]"))
    record["case"]["path"] = "../mild.case.toml"
    (ported / "out/scale.port.json").write_text(json.dumps(record))
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1 and "PRT966" in done.stderr and "mild.case.toml" in done.stderr
    assert "--case mild.case.toml" in done.stderr and "numerics" not in done.stdout
    (ported / "scale.case.toml").unlink()
    done = porter("verify", "out/scale.py", "--case", "mild.case.toml")
    assert done.returncode == 0, done.stderr


def test_a_macro_that_only_the_record_has_is_no_original(porter, ported: Path) -> None:
    """The original was made to agree with a wrong port, by its macros."""
    edited(ported, "* factor", "+ factor", file="out/scale.py")
    record = json.loads((ported / "out/scale.port.json").read_text())
    record["options"]["define"] = ["factor=2.0f)+factor*(0.0f"]
    (ported / "out/scale.port.json").write_text(json.dumps(record))
    before = (ported / "out/scale.port.json").read_bytes()
    for more in ((), ("--update",), ("--against", "original"), ("-D", "factor=3")):
        done = porter("verify", "out", *more)
        assert done.returncode == 1 and "PRT966" in done.stderr and "contract    FAIL" in done.stdout, more
        assert "PASS" not in done.stdout and "0 verified" in done.stdout
    assert (ported / "out/scale.port.json").read_bytes() == before


def test_verdicts_that_were_written_by_hand_are_not_believed(porter, ported: Path) -> None:
    assert porter("verify", "out/scale.py").returncode == 0
    good = json.loads((ported / "out/scale.port.json").read_text())
    edited(ported, *WRONG, file="out/scale.py")
    text = (ported / "out/scale.py").read_text()
    good["verified_sha256"] = good["port"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (ported / "out/scale.port.json").write_text(json.dumps(good))
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1
    statuses = {v["check"]: v["status"] for v in json.loads((ported / "out/scale.port.json").read_text())["verdicts"]}
    assert statuses["numerics"] == "FAIL"


TEMPLATE = """\
template <int VEC>
__global__ void scale_kernel(float* __restrict__ out, const float* __restrict__ in, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = in[i] * factor * float(VEC);
  }
}
"""


def test_an_instance_taken_out_of_the_record_is_missed(porter, tmp_path: Path) -> None:
    from .test_bad_input import CASE

    (tmp_path / "scale.cu").write_text(TEMPLATE)
    instances = 'kernel = "scale_kernel"\n[[instances]]\nargs = [1]\n[[instances]]\nargs = [2]\n'
    (tmp_path / "scale.case.toml").write_text(CASE.replace('kernel = "scale_kernel"\n', instances))
    assert porter("port", "scale.cu", "-o", "out", "--no-verify").returncode == 0
    record = json.loads((tmp_path / "out/scale.port.json").read_text())
    record["instances"] = record["instances"][:1]
    (tmp_path / "out/scale.port.json").write_text(json.dumps(record))
    done = porter("verify", "out/scale.py")
    assert done.returncode == 1 and "PRT966" in done.stderr and "it leaves out <2>" in done.stderr
    assert "--instantiate 'scale_kernel<1>'" in done.stderr
