"""Whatever a user gets wrong is one clear message and the right exit code; what was there before stays."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from porter.cli import main
from porter.provenance.store import is_edited, read_record

from .conftest import default_sigint

ROOT = Path(__file__).resolve().parents[2]

SCALE = """\
__global__ void scale_kernel(float* __restrict__ out, const float* __restrict__ in, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = in[i] * factor;
  }
}
"""
CASE = """\
schema = 1
kernel = "scale_kernel"

[sizes]
n = [1, 100]

[[buffers]]
name = "out"
dtype = "f32"
shape = ["n"]
role = "out"

[[buffers]]
name = "in"
dtype = "f32"
shape = ["n"]
role = "in"

[scalars]
factor = 2.0
n = "n"

[launch]
grid = ["ceil_div(n, 128)", 1, 1]
block = [128, 1, 1]
"""


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A folder with a kernel that ports, and its case."""
    (tmp_path / "scale.cu").write_text(SCALE)
    (tmp_path / "scale.case.toml").write_text(CASE)
    (tmp_path / "LICENSE").write_text("this folder is a project: includes are not looked for above it")
    return tmp_path


def port_it(porter, *more: str):
    return porter("port", "scale.cu", "-o", "out", "--arch", "sm_90a", *more)


# ---------------------------------------------------------------- files


def test_a_missing_file(porter, scale: Path) -> None:
    done = porter("port", "scael.cu")
    assert done.returncode == 2
    assert "PRT010 there is no file scael.cu" in done.stderr and "scale.cu" in done.stderr
    assert not (scale / "ported").exists()


def test_a_missing_file_does_not_stop_the_others(porter, scale: Path) -> None:
    done = porter("port", "gone.cu", "scale.cu", "-o", "out", "--no-verify")
    assert done.returncode == 2 and (scale / "out/scale.py").exists()


def test_a_folder_stands_for_the_files_below_it(porter, scale: Path) -> None:
    done = porter("port", ".", "-o", "out", "--no-verify")
    assert done.returncode == 0 and (scale / "out/scale.py").exists()
    (scale / "empty").mkdir()
    done = porter("port", "empty")
    assert done.returncode == 2 and "there is no .cu file below empty" in done.stderr
    done = porter("port", ".", "--emit", "py")
    assert done.returncode == 2 and "is a folder" in done.stderr


def test_a_binary_file(porter, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"\xff\xfe\x00\x81")
    done = porter("port", "a.cu")
    assert done.returncode == 2 and "PRT010 a.cu is not UTF-8 text" in done.stderr


def test_a_file_without_a_kernel(porter, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int main() { return 0; }\n")
    done = porter("port", "a.cu")
    assert done.returncode == 2 and "PRT001 no kernel in a.cu" in done.stderr


def test_a_file_that_is_not_cuda(porter, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("Dear diary,\n")
    done = porter("port", "a.cu")
    assert done.returncode == 2 and "PRT001 no kernel in a.cu" in done.stderr


def test_an_empty_file(porter, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("")
    done = porter("port", "a.cu")
    assert done.returncode == 2 and "PRT001" in done.stderr


# ---------------------------------------------------------------- C++ that does not parse


def test_a_syntax_error_inside_the_only_kernel(porter, scale: Path) -> None:
    (scale / "scale.cu").write_text(SCALE.replace("* factor;", "* fcator;"))
    done = port_it(porter)
    assert done.returncode == 2
    assert "PRT004" in done.stderr and "scale.cu:4:22" in done.stderr
    assert "4 |     out[i] = in[i] * fcator;\n  |                      ^^^^^^" in done.stderr
    assert not (scale / "out/scale.py").exists()


def test_a_syntax_error_outside_the_kernel_is_a_warning(porter, scale: Path) -> None:
    (scale / "scale.cu").write_text(SCALE + "\nvoid host() { undeclared(3); }\n")
    done = port_it(porter, "--no-verify")
    assert done.returncode == 0, done.stderr
    assert "PRT004" in done.stderr and "scale.cu:8:15" in done.stderr
    assert (scale / "out/scale.py").exists()


def test_one_bad_kernel_does_not_stop_the_good_one(porter, scale: Path) -> None:
    (scale / "scale.cu").write_text(SCALE + "\n__global__ void bad(float* x) { x[0] = y; }\n")
    done = porter("port", "scale.cu", "-o", "out", "--no-verify", "--output-format", "json")
    value = json.loads(done.stdout)
    assert done.returncode == 2 == value["exit_code"]
    assert [(k["kernel"], bool(k["port"])) for k in value["kernels"]] == [("scale_kernel", True), ("bad", False)]


def test_a_missing_include_that_the_kernel_needs(porter, scale: Path, tmp_path_factory) -> None:
    (scale / "scale.cu").write_text('#include "factors.cuh"\n' + SCALE.replace("* factor;", "* FACTOR;"))
    done = port_it(porter)
    assert done.returncode == 2
    assert "PRT003 include 'factors.cuh' was not found" in done.stderr and "-I" in done.stderr
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "factors.cuh").write_text("#define FACTOR 3.0f\n")
    assert port_it(porter, f"-I{elsewhere}", "--no-verify").returncode == 0


def test_a_missing_include_that_the_kernel_does_not_need(porter, scale: Path) -> None:
    (scale / "scale.cu").write_text('#include "logging.h"\n' + SCALE)
    done = port_it(porter, "--no-verify")
    assert done.returncode == 0 and "PRT003" in done.stderr


# ---------------------------------------------------------------- names and arguments


def test_a_kernel_that_is_not_there(porter, scale: Path) -> None:
    done = port_it(porter, "--kernel", "scale_kernal")
    assert done.returncode == 2 and "did you mean scale_kernel" in done.stderr


def test_template_arguments_that_do_not_fit(porter, scale: Path) -> None:
    done = port_it(porter, "--instantiate", "scale_kernel<float, 8>")
    assert done.returncode == 2 and "PRT006" in done.stderr


def test_template_arguments_for_another_kernel(porter, scale: Path) -> None:
    done = port_it(porter, "--no-verify", "--instantiate", "scael_kernel<float>")
    assert done.returncode == 2 and "did you mean scale_kernel" in done.stderr


def test_template_arguments_that_cannot_be_read(porter, scale: Path) -> None:
    done = port_it(porter, "--instantiate", "scale_kernel<float")
    assert done.returncode == 2 and "PRT007" in done.stderr


# ---------------------------------------------------------------- cases


def test_no_case_and_no_launcher_drafts_one(porter, scale: Path) -> None:
    (scale / "scale.case.toml").unlink()
    pair = "struct Pair { float* a; int n; };\n__global__ void pair(Pair p) { p.a[0] = p.n; }\n"
    (scale / "scale.cu").write_text(pair)
    done = port_it(porter)
    drafts = list((scale / "out").glob("*.case.toml"))
    assert done.returncode == 1 and len(drafts) == 1
    assert "PRT910" in done.stderr and f"complete out/{drafts[0].name}" in done.stderr
    drafts[0].write_text("# my work\n" + drafts[0].read_text())
    again = port_it(porter)
    assert again.returncode == 1 and drafts[0].read_text().startswith("# my work")


@pytest.mark.parametrize(
    "old, new, line, says",
    [
        ('role = "out"', 'role = "output"', 11, "role"),
        ("factor = 2.0", 'factor = "facter"', 20, "facter"),
        ("factor = 2.0\n", "", 19, "factor"),
        ("n = [1, 100]", "n = [1, ", 7, "not TOML"),
        ("ceil_div(n, 128)", "ceil_div(m, 128)", 24, "grid"),
        ('kernel = "scale_kernel"', 'kernle = "scale_kernel"', 2, "kernle"),
    ],
)
def test_a_broken_case_is_refused_with_line_and_key(
    porter, scale: Path, old: str, new: str, line: int, says: str
) -> None:
    case = scale / "scale.case.toml"
    assert old in CASE
    case.write_text(CASE.replace(old, new))
    done = port_it(porter)
    assert done.returncode == 2
    assert f"scale.case.toml:{line}:" in done.stderr and says in done.stderr
    assert not (scale / "out/scale.py").exists()


def test_a_case_file_that_is_not_there(porter, scale: Path) -> None:
    done = port_it(porter, "--case", "other.case.toml")
    assert done.returncode == 2 and "other.case.toml" in done.stderr


# ---------------------------------------------------------------- what cannot be translated


def test_wmma_is_a_hole_with_a_code_and_exit_1(porter, tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "data/wmma.cu", tmp_path)
    shutil.copy(Path(__file__).parent / "data/wmma.case.toml", tmp_path)
    done = porter("port", "wmma.cu", "-o", "out")
    assert done.returncode == 1, done.stderr
    record = read_record(tmp_path / "out/wmma.py")
    assert record is not None and record.holes
    hole = record.holes[0]
    assert hole.cuda and f"{hole.code} " in done.stderr
    assert "= port: out/wmma.py:" in done.stderr and "(hole 1)" in done.stderr
    compile((tmp_path / "out/wmma.py").read_text(), "wmma.py", "exec")


# ---------------------------------------------------------------- outputs


def test_an_edited_port_is_kept_and_force_overwrites_it(porter, scale: Path) -> None:
    port = scale / "out/scale.py"
    assert port_it(porter, "--no-verify").returncode == 0
    first = port.read_text()
    port.write_text(first + "# tuned by hand\n")
    done = port_it(porter, "--no-verify")
    assert done.returncode == 2
    assert "PRT954" in done.stderr and "+# tuned by hand" in done.stderr
    assert is_edited(port)
    assert port_it(porter, "--no-verify", "--force").returncode == 0
    assert port.read_text() == first


def test_a_file_where_the_output_folder_should_be(porter, scale: Path) -> None:
    (scale / "out").write_text("in the way")
    done = port_it(porter)
    assert done.returncode == 2 and "PRT953" in done.stderr
    assert (scale / "out").read_text() == "in the way"


def test_a_read_only_output_folder(scale: Path, monkeypatch, capsys) -> None:
    import os

    monkeypatch.chdir(scale)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # tests may run as root, who may write anywhere
    assert main(["port", "scale.cu", "-o", "out"]) == 2
    assert "PRT953 no permission to write out" in capsys.readouterr().err


def test_a_full_disk(scale: Path, monkeypatch, capsys) -> None:
    import os

    monkeypatch.chdir(scale)
    assert main(["port", "scale.cu", "-o", "out", "--no-verify"]) == 0
    before = (scale / "out/scale.py").read_text()
    (scale / "scale.cu").write_text(SCALE.replace("* factor", "+ factor"))

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    capsys.readouterr()
    assert main(["port", "scale.cu", "-o", "out", "--no-verify"]) == 2
    assert "PRT953 no space left to write" in capsys.readouterr().err
    assert (scale / "out/scale.py").read_text() == before


def test_two_files_that_want_one_output(porter, scale: Path) -> None:
    (scale / "b").mkdir()
    (scale / "b/scale.cu").write_text(SCALE)
    (scale / "b/scale.case.toml").write_text(CASE)
    done = porter("port", "scale.cu", "b/scale.cu", "-o", "out", "--no-verify")
    assert done.returncode == 2 and "PRT957" in done.stderr
    record = read_record(scale / "out/scale.py")
    assert record is not None and record.source == "../scale.cu"


def test_emit_prints_the_stage_alone_and_writes_nothing(porter, scale: Path) -> None:
    before = sorted(p.name for p in scale.iterdir())
    for stage in ("ir", "plan", "py"):
        done = port_it(porter, "--emit", stage)
        assert done.returncode == 0 and done.stdout.strip(), (stage, done.stderr)
    compile(done.stdout, "scale.py", "exec")
    assert sorted(p.name for p in scale.iterdir()) == before


# ---------------------------------------------------------------- interruptions and crashes


def test_ctrl_c_leaves_the_previous_port(porter, scale: Path) -> None:
    assert port_it(porter, "--no-verify").returncode == 0
    before = {p: p.read_bytes() for p in (scale / "out").glob("scale*")}
    (scale / "scale.cu").write_text(SCALE.replace("* factor", "+ factor"))
    run = subprocess.Popen(
        [sys.executable, "-m", "porter.cli", "port", "scale.cu", "-o", "out", "--thorough"],
        cwd=scale,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_sigint,
    )
    assert run.stderr
    for line in run.stderr:
        if "emit ok" in line:  # it has a new port in hand and is verifying it
            break
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == 130
    assert {p: p.read_bytes() for p in (scale / "out").glob("scale*")} == before


# An interpreter whose compile worker dies of a segmentation fault when it is to compile.
CRASHING_PYTHON = """#!{python}
import os, signal, sys
if "porter.verify.compile.child" not in sys.argv:
    os.execv("{python}", ["{python}", *sys.argv[1:]])
from porter.verify.compile import child as compile_child
compile_child._compile = lambda request: os.kill(os.getpid(), signal.SIGSEGV)
compile_child.main()
"""


def test_a_compiler_that_crashes_is_reported_and_the_run_goes_on(scale: Path, monkeypatch, capsys) -> None:
    from porter.verify.compile import worker

    crash = scale / "crash.py"
    crash.write_text(CRASHING_PYTHON.format(python=sys.executable))
    crash.chmod(0o755)
    (scale / "add.cu").write_text(SCALE.replace("scale_kernel", "add_kernel").replace("* factor", "+ factor"))
    (scale / "add.case.toml").write_text(CASE.replace("scale_kernel", "add_kernel"))
    monkeypatch.chdir(scale)
    monkeypatch.setenv("PORTER_CACHE", str(scale / "cache"))
    monkeypatch.setattr(worker, "_shared", worker.CompileWorkers())
    monkeypatch.setattr(sys, "executable", str(crash))
    assert main(["port", "scale.cu", "add.cu", "-o", "out", "--jobs", "1", "--output-format", "json"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert [k["kernel"] for k in value["kernels"]] == ["scale_kernel", "add_kernel"]
    for kernel in value["kernels"]:
        compiled = next(v for v in kernel["verdicts"] if v["check"] == "compile")
        assert compiled["status"] in ("ERROR", "FAIL") and "SIGSEGV" in json.dumps(compiled)
        assert Path(kernel["port"]).exists()


def test_a_defect_in_one_kernel_is_reported_and_the_others_are_ported(scale: Path, monkeypatch, capsys) -> None:
    from porter.pipeline import stages

    (scale / "scale.cu").write_text(SCALE + SCALE.replace("scale_kernel", "other_kernel"))
    real = stages.lower

    def broken(unit, info, *rest, **named):
        if info.name == "other_kernel":
            raise KeyError("surprise")
        return real(unit, info, *rest, **named)

    (scale / "scale.other_kernel.case.toml").write_text(CASE.replace("scale_kernel", "other_kernel"))
    monkeypatch.chdir(scale)
    monkeypatch.setattr(stages, "lower", broken)
    assert main(["port", "scale.cu", "-o", "out", "--no-verify"]) == 2
    err = capsys.readouterr().err
    assert "PRT950 internal error while porting other_kernel: KeyError: 'surprise'" in err
    assert (scale / "out/scale_kernel.py").exists()
    place = err.split("the traceback is in ")[1].split()[0]
    assert "surprise" in Path(place).read_text()


def test_two_runs_at_once_on_one_output(scale: Path) -> None:
    other = scale / "other"
    other.mkdir()
    (other / "scale.cu").write_text(SCALE.replace("* factor", "+ factor"))
    (other / "scale.case.toml").write_text(CASE)
    commands = [["port", f, "-o", "out", "--no-verify"] for f in ("scale.cu", "other/scale.cu") for _ in range(2)]
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "porter.cli", *c], cwd=scale, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        for c in commands
    ]
    codes = [r.wait(timeout=240) for r in runs]  # whoever was first has the name, the other source is refused
    assert codes in ([0, 0, 2, 2], [2, 2, 0, 0])
    assert not is_edited(scale / "out/scale.py")
    record = read_record(scale / "out/scale.py")
    first = codes[0] == 0
    assert record is not None and record.source == ("../scale.cu" if first else "../other/scale.cu")
    assert ("* factor" in (scale / "out/scale.py").read_text()) is first
    assert sorted(p.name for p in (scale / "out").iterdir()) == [".porter", "scale.port.json", "scale.py"]
