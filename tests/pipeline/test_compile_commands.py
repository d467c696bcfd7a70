"""Flags from a project's build: what is read, what wins, and that the original is compiled as the build does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from porter.cli import main
from porter.config import PortConfig
from porter.model import PorterError
from porter.pipeline.compile_commands import files_of, flags_of_command, with_build_flags

SCALE = """\
#include "factor.h"
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * FACTOR / DIVISOR;
}
void launch(float* x, int n) { scale<<<(n + 127) / 128, 128>>>(x, n); }
"""


def build(folder: Path, **commands: str) -> Path:
    """A database with a command for each source; returns its folder."""
    (folder / "build").mkdir(exist_ok=True)
    rows = [
        {"directory": str(folder / "build"), "file": str(folder / f"{name}.cu"), "command": command}
        for name, command in commands.items()
    ]
    (folder / "build" / "compile_commands.json").write_text(json.dumps(rows))
    return folder / "build"


def flags(command: str, folder: Path = Path("/project")):
    return flags_of_command(shlex.split(f"nvcc {command}"), folder, folder / "compile_commands.json")


@pytest.mark.parametrize(
    "command",
    [
        "-Iinc -isystem sys -DA -DB=2 -c k.cu -o k.o",
        "-I inc -isystem=sys -D A -D B=2 k.cu",
        "--include-path inc --system-include sys --define-macro A --define-macro=B=2 -x cu k.cu",
        "-DC -UC -Iinc -isystem sys -DA -DB=1 -DB=2 -Xcompiler -DHOST -ccbin g++ k.cu",
    ],
)
def test_folders_and_macros_in_every_spelling(command: str) -> None:
    found = flags(command)
    assert found.include == ("/project/inc", "/project/sys") and found.define == ("A", "B=2")


@pytest.mark.parametrize(
    "command, math",
    [
        ("--use_fast_math", ("use_fast_math",)),
        ("-use_fast_math", ("use_fast_math",)),
        ("-ftz=true -prec-div=false", ("ftz=true", "prec-div=false")),
        ("--prec-sqrt false --fmad=false", ("prec-sqrt=false", "fmad=false")),
        ("-ftz=false --prec-div=true -fmad true", ()),
    ],
)
def test_options_that_round(command: str, math: tuple[str, ...]) -> None:
    assert flags(command).math == math


def test_standard_architectures_and_what_is_included_first() -> None:
    target = "-gencode arch=compute_90a,code=[sm_90a,compute_90a] -arch sm_80"
    found = flags(f"-std=gnu++17 {target} -include pre.h --expt-relaxed-constexpr")
    assert (found.std, found.arch, found.pre_include) == ("c++17", ("sm_90a", "sm_80"), ("/project/pre.h",))
    assert flags("--std c++11").std == flags("--std c++03").std == "c++11"


def test_response_files(tmp_path: Path) -> None:
    (tmp_path / "one.rsp").write_text("-Iinc @two.rsp")
    (tmp_path / "two.rsp").write_text("-DX=1 --use_fast_math")
    found = flags("--options-file one.rsp k.cu", tmp_path)
    assert (found.include, found.define, found.math) == ((f"{tmp_path}/inc",), ("X=1",), ("use_fast_math",))
    with pytest.raises(PorterError, match=r"missing\.rsp") as error:
        flags("@missing.rsp", tmp_path)
    assert error.value.diagnostics[0].code == "PRT969"


def test_the_command_line_wins(tmp_path: Path) -> None:
    folder = build(tmp_path, k="nvcc -DA=1 -DB=1 -std=c++20 -c k.cu")
    config = PortConfig(build=folder, define=("A=2",), std="c++23")
    found = with_build_flags(config, tmp_path / "k.cu")
    assert found.define == ("A=2", "B=1") and found.std == "c++23"
    assert with_build_flags(config, tmp_path / "other.cu") == config


def test_folders_and_whole_builds(tmp_path: Path) -> None:
    for name in ("a.cu", "sub/b.cu", "sub/c.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    named = files_of([tmp_path], PortConfig())
    assert [p.name for p in named] == ["a.cu", "b.cu"]
    folder = build(tmp_path, a="nvcc -c a.cu")
    assert [p.resolve() for p in files_of([], PortConfig(build=folder))] == [tmp_path / "a.cu"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(PorterError, match="cu file below"):
        files_of([tmp_path / "empty"], PortConfig())


UNBALANCED = '[{"directory": "/", "file": "k.cu", "command": "\'"}]'


@pytest.mark.parametrize("text", ["", "{}", '[{"directory": "/"}]', "[1]", UNBALANCED])
def test_a_broken_database_is_one_message(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").write_text(SCALE)
    (tmp_path / "compile_commands.json").write_text(text)
    code = main(["port", str(tmp_path / "k.cu"), "-p", str(tmp_path), "-o", str(tmp_path / "out")])
    said = capsys.readouterr().err
    if text == "{}":  # nothing in it: the file is ported without flags
        assert "factor.h" in said or code in (1, 2)
        return
    assert code == 2 and "PRT969" in said and not (tmp_path / "out").exists()


def test_a_project_is_ported_and_verified_with_its_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "factor.h").write_text("#pragma once\n#define FACTOR 3.0f\n")
    (tmp_path / "pre.h").write_text("#pragma once\n#define DIVISOR 7.0f\n")
    (tmp_path / "scale.cu").write_text(SCALE)
    folder = build(tmp_path, scale="nvcc -I../inc -include ../pre.h -prec-div=false -c ../scale.cu -o scale.o")
    out = tmp_path / "out"
    given = ["-p", str(folder), "--arch", "sm_90a", "--output-format", "json"]
    assert main(["port", str(tmp_path), "-o", str(out), *given, "--confirm-cases"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["state"] == "verified"
    record = json.loads((out / "scale.port.json").read_text())
    assert record["options"]["math"] == ["prec-div=false"] and record["options"]["pre_include"] == ["../pre.h"]
    assert main(["verify", str(out), *given]) == 0
    capsys.readouterr()
    assert main(["verify", str(out), *given[2:]]) == 1, "without -p only the record says how the original is compiled"
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert [d["code"] for v in kernel["verdicts"] for d in v["diagnostics"]] == ["PRT966"]


def test_the_original_is_rounded_as_the_build_does(tmp_path: Path) -> None:
    from porter.pipeline.inputs import parse
    from porter.verify.original.build import build_original

    (tmp_path / "k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = x[threadIdx.x] / 3.7f; }\n")
    texts = []
    for math in ((), ("prec-div=false",), ("use_fast_math",)):
        unit = parse(tmp_path / "k.cu", PortConfig(math=math))
        (made,) = build_original(unit.source, unit.options, unit.kernels[0], unit=unit)
        texts.append(made.ptx)
    assert "div.rn.f32" in texts[0] and "div.full.f32" in texts[1] and "div.approx.ftz.f32" in texts[2]
