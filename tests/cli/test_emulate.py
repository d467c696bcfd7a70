"""`porter emulate`: PTX on a case's points; what it prints, what it returns, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

SAMPLE = Path(__file__).resolve().parents[1] / "verify/emulator/ptx_samples/kernels.ptx"

SOFTMAX = """
schema = 1
kernel = "softmax_f32"
[sizes]
rows = [3, 0]
n = [100, 256]
[[buffers]]
name = "out"
dtype = "f32"
shape = ["rows", "n"]
role = "out"
[[buffers]]
name = "x"
dtype = "f32"
shape = ["rows", "n"]
[scalars]
n_ = "n"
[launch]
grid = ["rows"]
block = [64]
smem = "4 * n"
"""
ARGS = ("--args", "out,x,n_")


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    shutil.copyfile(SAMPLE, tmp_path / "kernels.ptx")
    case = tmp_path / "softmax.case.toml"
    case.write_text(SOFTMAX)
    return case


def test_clean_kernel(porter, softmax: Path) -> None:
    done = porter("emulate", "kernels.ptx", "--case", softmax, *ARGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows=3 n=256" in done.stdout and "thread-instructions" in done.stdout
    assert "global.load: " in done.stdout and "of the ideal" in done.stdout
    assert "nothing wrong" in done.stdout and "2 points without a block to launch" in done.stdout


def test_json(porter, softmax: Path) -> None:
    done = porter("emulate", "kernels.ptx", "--case", softmax, *ARGS, "--point", "rows=2,n=128", "--output-format=json")
    found = json.loads(done.stdout)
    assert (found["schema"], found["exit_code"], found["entry"]) == (1, 0, "softmax_f32")
    (launch,) = found["launches"]
    assert launch["grid"] == [2, 1, 1] and launch["counts"]["traffic"]["global.load.sectors"] == 2 * 128 * 4 // 32
    (out,) = launch["outputs"]
    assert out["not_written"] == out["not_finite"] == 0 and abs(out["mean"] - 1 / 128) < 1e-6
    again = porter(
        "emulate", "kernels.ptx", "--case", softmax, *ARGS, "--point", "rows=2,n=128", "--output-format=json"
    )
    same = json.loads(again.stdout)["launches"][0]
    assert same["outputs"] == launch["outputs"] and same["counts"] == launch["counts"]


def test_violations_are_1_and_named(porter, softmax: Path) -> None:
    softmax.write_text(SOFTMAX.replace('n_ = "n"', 'n_ = "n + 1"').replace('"4 * n"', '"4 * n + 4"'))
    done = porter("emulate", "kernels.ptx", "--case", softmax, *ARGS, "--point", "rows=1", "--output-format", "json")
    assert done.returncode == 1
    found = json.loads(done.stdout)["launches"][0]["violations"]
    assert {v["kind"] for v in found} == {"out-of-bounds"} and {v["buffer"] for v in found} == {"x"}
    assert all(v["file"].endswith("kernels.cu") and v["line"] > 0 and v["ptx_line"] > 0 for v in found)
    text = porter("emulate", "kernels.ptx", "--case", softmax, *ARGS, "--point", "rows=1")
    assert text.returncode == 1 and "out-of-bounds" in text.stdout and "kernels.cu:" in text.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["kernels.ptx"], "PRT861", "the names of the parameters"),
        (["kernels.ptx", "--args", "out,x"], "PRT861", "has 3 parameters"),
        (["kernels.ptx", "--args", "out,x,m"], "PRT861", "no buffer or scalar `m`"),
        (["kernels.ptx", *ARGS, "--entry", "nothing"], "PRT860", "no entry"),
        (["kernels.ptx", *ARGS, "--point", "m=3"], "PRT861", "no size `m`"),
        (["kernels.ptx", *ARGS, "--point", "rows"], "PRT861", "NAME=VALUE"),
        (["kernels.ptx", *ARGS, "--checks", "all,most"], "PRT861", "no check"),
        (["kernels.ptx", *ARGS, "--scenario", "sunny"], "PRT861", "no scenario"),
        (["nothing.ptx", *ARGS], "PRT010", "nothing.ptx"),
        (["softmax.case.toml", *ARGS], "PRT860", ""),
    ],
)
def test_refusals_are_2(porter, softmax: Path, arguments: list[str], code: str, text: str) -> None:
    done = porter("emulate", *arguments, "--case", softmax)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert done.stderr.startswith(code) and text in done.stderr, done.stderr


def test_an_instruction_that_is_not_modelled_is_named(porter, softmax: Path, tmp_path: Path) -> None:
    ptx = ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 x, "
    ptx += ".param .u32 n_)\n{\nwgmma.fence.sync.aligned;\nret;\n}\n"
    (tmp_path / "k.ptx").write_text(ptx)
    done = porter("emulate", "k.ptx", "--case", softmax)  # its parameters are called as the case calls them
    assert done.returncode == 2 and "PRT860" in done.stderr and "wgmma.fence" in done.stderr and "line 6" in done.stderr


TEMPLATE = """
template <typename T, int N>
__global__ void scale(T* out, const T* x, float by) {
    int i = blockIdx.x * N + threadIdx.x;
    out[i] = T(float(x[i]) * by);
}
template __global__ void scale<float, 32>(float*, const float*, float);
"""
SCALE = """
schema = 1
kernel = "scale"
source = "scale.cu"
[[instances]]
args = ["int", 32]
[[instances]]
args = ["float", 32]
[sizes]
blocks = [2]
[[buffers]]
name = "out"
dtype = "T"
shape = ["blocks", "N"]
role = "out"
[[buffers]]
name = "x"
dtype = "T"
shape = ["blocks", "N"]
high = 100
[scalars]
by = 3.0
[launch]
grid = "blocks"
block = "N"
"""


def test_a_template_takes_the_instance_that_its_name_says(porter, tmp_path: Path) -> None:
    """Names and template values come from the source; without it they are given."""
    pytest.importorskip("clang")
    from porter.frontend.parse.source import ParseOptions
    from porter.model import Instance
    from porter.source import Source
    from porter.verify.original.build import build_original

    (tmp_path / "scale.cu").write_text(TEMPLATE)
    case = tmp_path / "scale.case.toml"
    case.write_text(SCALE)
    source = Source.read(tmp_path / "scale.cu")
    (built,) = build_original(source, ParseOptions(arch="sm_90a"), "scale", [Instance(("float", "32"))])
    (tmp_path / "scale.ptx").write_text(built.ptx)
    done = porter("emulate", "scale.ptx", "--case", case)
    assert done.returncode == 0 and "out: f32[2, 32]" in done.stdout, done.stdout + done.stderr
    (tmp_path / "scale.cu").unlink()
    assert "PRT861" in porter("emulate", "scale.ptx", "--case", case).stderr
    given = ("--args", "out,x,by", "--set", "T=f32", "--set", "N=32")
    done = porter("emulate", "scale.ptx", "--case", case, *given, "--backend", "llvm", "--checks", "none")
    assert done.returncode == 0 and "(llvm)" in done.stdout, done.stdout + done.stderr
