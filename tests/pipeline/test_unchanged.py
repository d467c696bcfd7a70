"""A second run of `porter port`: what has not changed is not done again, and anything that changed is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from porter.cli import main
from porter.pipeline import stages

SOURCE = """\
#include "factor.h"
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
void launch(float* x, int n) { scale<<<(n + 127) / 128, 128>>>(x, n); }
"""
Again = Callable[..., dict[str, Any]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "k.cu").write_text(SOURCE)
    (tmp_path / "factor.h").write_text("#pragma once\n#define FACTOR 3.0f\n")
    return tmp_path


@pytest.fixture
def again(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Again:
    """Port the project; the answer has `worked`, whether anything was parsed."""
    parsed: list[Path] = []
    real = stages.parse

    def spy(path: Path, *rest: Any) -> Any:
        parsed.append(path)
        return real(path, *rest)

    monkeypatch.setattr(stages, "parse", spy)

    def run(*arguments: str) -> dict[str, Any]:
        parsed.clear()
        given = ["port", str(project / "k.cu"), "-o", str(project / "out"), "--arch", "sm_90a"]
        code = main([*given, "--output-format", "json", *arguments])
        return json.loads(capsys.readouterr().out) | {"code": code, "worked": bool(parsed)}

    return run


def bytes_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_nothing_is_done_or_written_again(project: Path, again: Again) -> None:
    first = again()
    assert first["worked"] and first["kernels"][0]["state"] == "agrees"
    before = bytes_of(project)
    second = again()
    assert not second["worked"] and second["code"] == 1 and bytes_of(project) == before
    (kernel,) = second["kernels"]
    assert kernel["unchanged"] and kernel["state"] == "agrees" and kernel["verdicts"] == first["kernels"][0]["verdicts"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "source": lambda f: (f / "k.cu").write_text(SOURCE.replace("127) / 128, 128", "63) / 64, 64")),
    "header": lambda f: (f / "factor.h").write_text("#pragma once\n#define FACTOR 4.0f\n"),
    "record": lambda f: (f / "out" / "k.port.json").write_text((f / "out" / "k.port.json").read_text() + "\n"),
    "port is gone": lambda f: (f / "out" / "k.py").unlink(),
    "case": lambda f: (f / "out" / "k.scale.case.toml").write_text(
        (f / "out" / "k.scale.case.toml").read_text().replace("n = [64, ", "n = [32, ")
    ),
    "a case beside the source": lambda f: (f / "k.case.toml").write_text(
        (f / "out" / "k.scale.case.toml").read_text().replace('"../k.cu"', '"k.cu"')
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_done_again(project: Path, again: Again, change: str) -> None:
    again()
    CHANGES[change](project)
    answer = again()
    assert answer["worked"] and not answer["kernels"][0]["unchanged"]


ASKED = [("-D", "X"), ("--seed", "3"), ("--force",), ("--thorough",), ("--confirm-cases",)]


@pytest.mark.parametrize("arguments", ASKED)
def test_what_is_asked_for_otherwise_is_done(again: Again, arguments: tuple[str, ...]) -> None:
    again()
    assert again(*arguments)["worked"]


def test_an_edited_port_is_not_taken_for_the_one_that_passed(project: Path, again: Again) -> None:
    again()
    port = project / "out" / "k.py"
    port.write_text(port.read_text() + "# mine\n")
    answer = again()
    assert answer["worked"] and answer["code"] == 2
    assert any(d["code"] == "PRT954" for d in answer["kernels"][0]["diagnostics"])


def test_an_answer_that_somebody_else_wrote_does_not_count(
    project: Path, again: Again, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    again()
    (entry,) = (tmp_path / "cache" / "unchanged").rglob("answers.json")
    row = json.loads(entry.read_text())
    row["kernels"][0]["case_derived_from"] = ""
    entry.chmod(0o600)
    entry.write_text(json.dumps(row))
    answer = again()
    assert answer["worked"] and answer["kernels"][0]["state"] == "agrees"


def test_a_port_that_fails_is_tried_again(project: Path, again: Again) -> None:
    (project / "k.cu").write_text("struct P { float* x; };\n__global__ void k(P p) { p.x[0] = 1.f; }\n")
    again()
    assert again()["worked"]
