"""What only `.port.json` says of the original is named and fails `contract`; nothing is run or recorded."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from porter.cli import main
from porter.config import PortConfig, load_config
from porter.model import KernelReport, Status
from porter.pipeline.stages import Run
from porter.provenance.record import record_path
from porter.provenance.store import read_record
from porter.regression.contract import contract_verdict, flag_doubts
from porter.regression.dsl_matrix import cell_of
from porter.regression.one_port import doubts_about, verify_file
from porter.regression.open_port import OpenPort, open_port
from porter.regression.revision import another_original, port_at
from porter.regression.run_record import fingerprint
from porter.review.plain import check
from porter.review.port.reviewed_port import load
from tests.cli.test_bad_input import CASE

KERNEL = """\
#include "factor.h"

template <int N>
__global__ void scale_kernel(float* __restrict__ out, const float* __restrict__ in, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = sqrtf(in[i]) * factor * FACTOR * float(N * LANES);
  }
}

template <int N>
__global__ void other_kernel(float* __restrict__ out, const float* __restrict__ in, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = in[i] * factor;
  }
}
"""
CASED = (
    CASE.replace("\n\n", "\ninstances = [{args = [1]}, {args = [2]}]\n", 1) + '[reference]\nfunction = "ref.py:scale"\n'
)
FLAGS = ("-D", "LANES=2", "-D", "FAST", "-I", "inc", "-I", "more", "-std", "c++20", "--arch", "sm_90a")
GIVEN = PortConfig(
    define=("LANES=2", "FAST"), include=("inc", "more"), std="c++20", arch=("sm_90a",), jobs=1
)  # what FLAGS say
REFERENCE = "def scale(**given):\n    return {}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a port that needs flags, emitted and not verified."""
    folder = tmp_path_factory.mktemp("flags")
    (folder / "LICENSE").write_text("includes are not looked for above this folder")
    for name, factor in (("inc", 1), ("more", 1), ("evil", 3)):
        (folder / name).mkdir()
        (folder / name / "factor.h").write_text(f"#define FACTOR {factor}.0f\n")
    (folder / "scale.cu").write_text(KERNEL)
    (folder / "scale.scale_kernel.case.toml").write_text(CASED)
    (folder / "scale.other_kernel.case.toml").write_text(CASED.replace("scale_kernel", "other_kernel"))
    (folder / "ref.py").write_text(REFERENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["port", "scale.cu", "-o", "out", "--no-verify", *FLAGS]) == 0
    return folder


@pytest.fixture
def port(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import shutil

    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("out/scale_kernel.py")


def opened(port: Path, config: PortConfig = GIVEN) -> OpenPort:
    return open_port(port, config, Run("scale_kernel"))


def doubts(port: Path, config: PortConfig = GIVEN) -> list[str]:
    """The messages of PRT966 that a verification would begin with; none where it would go on."""
    record = read_record(port)
    assert record is not None
    found = flag_doubts(record, port, config)
    found = found or tuple(d for v in doubts_about(opened(port, config)) for d in v.diagnostics)
    assert all(d.code == "PRT966" and d.help and d.span.file == str(port) for d in found)
    return [d.message for d in found]


def doctored(port: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(record_path(port).read_text())
    change(value)
    record_path(port).write_text(json.dumps(value))


def test_what_the_run_was_given_too_counts(port: Path) -> None:
    assert doubts(port) == []
    assert doubts(port, replace(GIVEN, define=("FAST=1", "LANES=2"))) == []  # as the preprocessor takes them
    Path("link").symlink_to("inc")
    assert doubts(port, replace(GIVEN, include=("link", str(Path("more").resolve())))) == []


def test_the_table_of_the_project_counts_as_the_command_line_does(port: Path) -> None:
    assert doubts(port, load_config()) != []
    Path("pyproject.toml").write_text(
        '[tool.porter]\ndefine = ["LANES=2", "FAST"]\ninclude = ["inc", "more"]\nstd = "c++20"\narch = "sm_90a"\n'
    )
    assert doubts(port, load_config()) == []


def test_a_port_made_with_flags_is_not_verified_without_them(port: Path) -> None:
    report = verify_file(port, PortConfig(jobs=1))
    (verdict,) = report.verdicts
    assert (verdict.check, verdict.status, report.ok) == ("contract", Status.FAIL, False)
    help_ = verdict.diagnostics[0].help
    assert f"porter verify {port} -D FAST -D LANES=2 -I inc -I more -std c++20 --arch sm_90a" in help_
    assert "[tool.porter]" in help_


OPTIONS: dict[str, tuple[str, Any]] = {
    "macro": ("define", ["LANES=2", "FAST", "sqrtf(x)=(x)"]),
    "value": ("define", ["LANES=1", "FAST"]),
    "undefined": ("define", ["FAST"]),
    "undefined all": ("define", []),
    "header": ("include", ["../evil", "../more"]),
    "header first": ("include", ["../evil", "../inc", "../more"]),
    "order of folders": ("include", ["../more", "../inc"]),
    "standard": ("std", "c++17"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_flags_of_the_record_alone(port: Path, name: str) -> None:
    key, value = OPTIONS[name]
    doctored(port, lambda r: r["options"].__setitem__(key, value))
    (message,) = doubts(port)
    assert {"define": "-D", "include": "-I", "std": "-std"}[key] in message and "given: " in message
    before = record_path(port).read_bytes()
    assert [v.check for v in verify_file(port, GIVEN).verdicts] == ["contract"]
    assert record_path(port).read_bytes() == before


def test_fewer_architectures(port: Path) -> None:
    doctored(port, lambda r: r.__setitem__("arches", ["sm_80"]))
    assert "--arch sm_80 (given: --arch sm_90a)" in doubts(port)[0]


@pytest.mark.parametrize(
    "instances, says",
    [([["1"]], "leaves out <2>"), ([["1"], ["2"], ["0"]], "adds <0>"), ([["0"]], "leaves out <1>, <2>")],
)
def test_other_instances(port: Path, instances: list[list[str]], says: str) -> None:
    doctored(port, lambda r: r.__setitem__("instances", instances))
    (message,) = doubts(port)
    assert says in message
    asked = tuple(f"scale_kernel<{i[0]}>" for i in instances)
    assert doubts(port, replace(GIVEN, instantiate=asked)) == []


def test_another_case(port: Path) -> None:
    mild = CASED.replace("[1, 100]", "[1]")
    Path("mild.case.toml").write_text(mild)
    doctored(port, lambda r: r["case"].update(path="../mild.case.toml"))
    assert (
        "names the case mild.case.toml; the case of `scale_kernel` is scale.scale_kernel.case.toml" in doubts(port)[0]
    )
    assert doubts(port, replace(GIVEN, case=Path("mild.case.toml"))) == []
    Path("mild.case.toml").rename("out/scale.scale_kernel.case.toml")  # where a draft is, but there is a case already
    doctored(port, lambda r: r["case"].update(path="scale.scale_kernel.case.toml"))
    assert doubts(port) != []
    Path("scale.scale_kernel.case.toml").unlink()
    assert doubts(port) == []


def test_another_kernel_of_the_file(port: Path) -> None:
    doctored(
        port, lambda r: (r.update(kernel="other_kernel"), r["case"].update(path="../scale.other_kernel.case.toml"))
    )
    says = "the port of `other_kernel` in scale.cu, the port says that it is of `scale_kernel` in scale.cu"
    assert says in doubts(port)[0]


def test_another_source(port: Path) -> None:
    Path("other.cu").write_text(KERNEL)
    doctored(port, lambda r: r["source"].update(path="../other.cu"))
    messages = doubts(port)
    assert "in other.cu, the port says that it is of `scale_kernel` in scale.cu" in messages[0]
    assert "names the case" in messages[1]  # which is beside scale.cu
    Path("evil/scale.cu").write_text(KERNEL.replace("sqrtf", ""))
    doctored(port, lambda r: r["source"].update(path="../evil/scale.cu"))
    assert "only scale_kernel.port.json names the case scale.scale_kernel.case.toml" in doubts(port)[0]
    Path("evil/scale.scale_kernel.case.toml").write_text('source = "../scale.cu"\n' + CASED)
    doctored(port, lambda r: r["case"].update(path="../evil/scale.scale_kernel.case.toml"))
    assert "the case evil/scale.scale_kernel.case.toml is for evil/../scale.cu" in doubts(port)[0]


def test_the_verdict_shows_what_the_original_is(port: Path) -> None:
    found = opened(port)
    assert found.record is not None
    verdict = contract_verdict(found.record, port, False, found.unit, found.info, found.case, found.config)
    assert verdict.status is Status.PASS
    for part in (
        "scale_kernel of scale.cu",
        "1 header",
        "-D LANES=2",
        "-I inc",
        "c++20",
        "scale.scale_kernel.case.toml",
    ):
        assert part in verdict.detail
    assert found.unit.source.sha256[:12] in verdict.detail and list(verdict.facts.headers) == ["inc/factor.h"]


def test_a_header_and_a_reference_that_changed_are_told(port: Path) -> None:
    before = fingerprint(port)
    Path("inc/factor.h").write_text("#define FACTOR 3.0f\n")
    run = Run("scale_kernel")
    found = open_port(port, GIVEN, run)
    assert [(d.code, d.span.file) for d in run.diagnostics] == [("PRT958", "inc/factor.h")]
    after = fingerprint(port)
    assert after != before  # an interrupted run does not go on with the answer about the header before
    Path("ref.py").write_text(REFERENCE + "# milder\n")
    assert fingerprint(port) != after
    verdict = contract_verdict(found.record, port, False, found.unit, found.info, found.case, found.config)
    assert verdict.status is Status.FAIL and "the reference ref.py:scale" in verdict.detail
    assert contract_verdict(found.record, port, True, found.unit, found.info, found.case, found.config).facts
    doctored(port, lambda r: r.__setitem__("instances", [["1"]]))
    assert fingerprint(port) != after


def test_a_matrix_of_versions_does_not_pass_what_was_not_run(port: Path) -> None:
    report: KernelReport = verify_file(port, PortConfig(jobs=1))
    cell = cell_of(report, "4.8.1")
    assert (cell.ok, cell.check) == (False, "contract")


def test_a_review_says_so_and_is_not_complete(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(d.code == "PRT966" for d in load(port, GIVEN).faults)
    loaded = load(port)
    assert [d.code for d in loaded.faults] == ["PRT966"] and "porter review" in loaded.faults[0].help
    accepted = replace(loaded, regions=())
    assert not replace(accepted, faults=()).complete and not accepted.complete
    assert main(["review", "out/scale_kernel.py", "--check"]) == 1
    assert "PRT966" in capsys.readouterr().out
    assert main(["review", "out/scale_kernel.py", "--check", *FLAGS]) == 1  # nothing is accepted yet
    assert "PRT966" not in capsys.readouterr().out
    said: list[str] = []
    assert check([load(port)], said.append) == 1 and any("PRT966" in line for line in said)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the flags": lambda r: r["options"].__setitem__("define", []),
    "instances left out": lambda r: r.__setitem__("instances", [["1"]]),
    "architectures left out": lambda r: r.__setitem__("arches", []),
    "the kernel": lambda r: r.__setitem__("kernel", "other_kernel"),
    "the source": lambda r: r["source"].update(path="../evil/scale.cu"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_revision_knows_what_its_port_was_compared_with(port: Path, what: str) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    Path("evil/scale.cu").write_text(KERNEL.replace("sqrtf", ""))
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "ports")
    *_, then = port_at(port, "HEAD")
    was = opened(port)
    assert then is not None and list(another_original(was, then)) == []
    doctored(port, CHANGES[what])
    config = replace(GIVEN, define=() if what == "the flags" else GIVEN.define)
    record = read_record(port)
    assert record is not None
    now = replace(was, record=record, config=config)
    if what == "the source":
        now = open_port(port, replace(GIVEN, case=Path("scale.scale_kernel.case.toml")), Run("scale_kernel"))
    found = [w for w in another_original(now, then) if w.what == what]
    assert [w.kind for w in found] == ["revision"]
