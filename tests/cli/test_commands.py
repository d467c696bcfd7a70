"""The commands around porting: usage, doctor, explain, patterns, corpus, new, configuration."""

from __future__ import annotations

import ast
import json
import re
import time
from pathlib import Path

import pytest

from porter import codes
from porter.cli import build_parser, main
from porter.commands.installation import Requirement, examine
from porter.config import FILE_KEYS, PortConfig, load_config
from porter.model import PorterError
from porter.report.code_pages import pages, titles

ROOT = Path(__file__).resolve().parents[2]


def test_no_command_prints_the_help_and_is_2(porter) -> None:
    done = porter()
    assert done.returncode == 2 and "commands:" in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["port"],
        ["port", "--emit", "exe", "a.cu"],
        ["fly"],
        ["port", "a.cu", "--frobnicate"],
        ["corpus"],
        ["port", "-std=c++3"],
    ],
)
def test_wrong_usage_is_2(porter, arguments: list[str]) -> None:
    done = porter(*arguments)
    assert done.returncode == 2 and "usage:" in done.stderr and done.stdout == ""


def test_flags_are_spelled_as_compilers_spell_them() -> None:
    args = build_parser().parse_args(["port", "k.cu", "-Iinc", "-I", "b", "-DX=1", "-D", "Y", "-std=c++20"])
    assert (args.include, args.define, args.std) == (["inc", "b"], ["X=1", "Y"], "c++20")


def test_an_unknown_arch_is_one_message(porter) -> None:
    done = porter("port", "k.cu", "--arch", "sm_70")
    assert (
        done.returncode == 2
        and done.stderr.startswith("PRT952 `arch` is 'sm_70'")
        and "help: give one of" in done.stderr
    )


def test_the_command_starts_fast(porter) -> None:
    start = time.perf_counter()
    assert porter("--version").stdout.startswith("porter ")
    assert time.perf_counter() - start < 2.0  # 0.1 s on an idle machine: nothing heavy is imported


def test_heavy_packages_are_not_imported_at_start(porter, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "import sys, porter.cli\n"
        "print([m for m in ('clang', 'cutlass', 'torch', 'rich', 'numpy', 'llvmlite') if m in sys.modules])\n"
    )
    import subprocess
    import sys

    assert subprocess.run([sys.executable, "t.py"], cwd=tmp_path, capture_output=True, text=True).stdout == "[]\n"


# ---------------------------------------------------------------- doctor


def test_doctor_tells_what_is_there(porter) -> None:
    done = porter("doctor", "--output-format", "json")
    value = json.loads(done.stdout)
    assert value["schema"] == 1
    names = [f["name"] for f in value["findings"]]
    known = ["python", "numpy", "libclang", "llvmlite", "CuTeDSL", "NVRTC", "torch", "anthropic", "textual"]
    known += ["nvdisasm", "GPU", "fence", "cache", "folder"]
    assert names == known
    assert done.returncode == (0 if value["ok"] else 2)


def test_doctor_is_2_and_gives_the_command_when_something_required_is_missing(monkeypatch, capsys) -> None:
    from porter.commands import installation

    monkeypatch.setattr(installation, "version_of", lambda package: None)
    assert main(["doctor"]) == 2
    out = capsys.readouterr().out
    assert "CuTeDSL   missing" in out and "fix: pip install 'nvidia-cutlass-dsl[cu13]>=4.8.1,<4.9'" in out
    assert "missing: numpy" in out


def test_a_missing_gpu_is_not_an_error() -> None:
    found = {f.name: f for f in examine()}
    assert isinstance(found["GPU"], Requirement) and not found["GPU"].required


# ---------------------------------------------------------------- explain


def test_explain_prints_a_page_and_lists_them(porter) -> None:
    for code in ("PRT954", "prt954", "954"):
        assert porter("explain", code).stdout == (ROOT / "porter/codes/PRT954.md").read_text()
    listing = porter("explain").stdout.splitlines()
    assert "PRT954  the port was edited" in listing
    assert listing == sorted(listing)


def test_explain_an_unknown_code(porter) -> None:
    done = porter("explain", "PRT999")
    assert done.returncode == 2 and "there is no diagnostic code `PRT999`" in done.stderr


def _written_codes() -> list[tuple[str, str]]:
    """(code, module) of each string in porter that is a code."""
    found = []
    for path in (ROOT / "porter").rglob("*.py"):
        text = path.read_text("utf-8")
        strings = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)) if "PRT" in text else ()
        found += [
            (value, path.relative_to(ROOT).as_posix())
            for value in strings
            if isinstance(value, str) and re.fullmatch(r"PRT\d{3}", value)
        ]
    return found


def test_each_code_is_written_once_and_has_a_page_and_each_page_a_code() -> None:
    written = _written_codes()
    assert sorted(code for code, _ in written) == sorted(pages())
    elsewhere = {module for _, module in written if module != "porter/codes/__init__.py"}
    assert elsewhere == {"porter/corpus/models/config.py", "porter/corpus/models/calls.py"}  # they import nothing of it


def test_each_named_code_is_used() -> None:
    texts = [p.read_text("utf-8") for p in (ROOT / "porter").rglob("*.py") if p.parent.name != "codes"]
    used = {name for text in texts for name in re.findall(r"\bcodes\.([A-Z0-9_]+)\b", text)}
    assert used == {name for name in vars(codes) if name.isupper()}


def test_every_page_has_its_title_and_a_body() -> None:
    for code, text in pages().items():
        assert text.startswith(f"# {code} ") and titles()[code], code
        assert len(text.splitlines()) >= 5, code


# ---------------------------------------------------------------- corpus and patterns


def test_the_corpus_is_listed_and_shown(porter) -> None:
    listing = porter("corpus", "list").stdout
    assert "porter.corpus.lib.memory" in listing
    shown = porter("corpus", "show", "dyn_shared")
    assert shown.returncode == 0 and shown.stdout.startswith("def dyn_shared(")
    wrong = porter("corpus", "show", "dyn_sharde")
    assert wrong.returncode == 2 and "did you mean dyn_shared" in wrong.stderr


def test_patterns_are_listed_and_shown(porter) -> None:
    listing = porter("patterns").stdout
    assert "guard" in listing and "(exact)" in listing
    page = porter("patterns", "guard").stdout
    assert "if (i >= n) return;" in page and "if i < n:" in page
    assert "__expf" in porter("patterns", "--functions").stdout
    assert "did you mean guard" in porter("patterns", "gaurd").stderr


# ---------------------------------------------------------------- new


def test_new_kernel_creates_files_and_never_overwrites(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "porter" / "patterns").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "kernel", "norm/group_norm"]) == 0
    cu = tmp_path / "reference_kernels/norm/group_norm.cu"
    assert "group_norm_kernel" in cu.read_text()
    cu.write_text("mine")
    assert main(["new", "kernel", "norm/group_norm"]) == 2
    assert cu.read_text() == "mine" and "PRT954" in capsys.readouterr().err


def test_a_new_kernel_parses_and_its_case_loads(tmp_path: Path, monkeypatch) -> None:
    from porter.case.fit import check_case
    from porter.case.reader import load_case
    from porter.config import PortConfig
    from porter.pipeline.inputs import choose_kernels, parse

    (tmp_path / "porter" / "patterns").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "kernel", "scale"]) == 0
    unit = parse(Path("reference_kernels/misc/scale.cu"), PortConfig())
    (info,) = choose_kernels(unit, PortConfig())
    assert not info.errors and not unit.diagnostics
    check_case(load_case("reference_kernels/misc/scale.case.toml"), info)


def test_new_pattern_creates_a_module_and_its_test(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "porter" / "patterns").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "pattern", "warp_vote"]) == 0
    compile((tmp_path / "porter/patterns/warp_vote.py").read_text(), "warp_vote.py", "exec")
    compile((tmp_path / "tests/patterns/test_warp_vote.py").read_text(), "test_warp_vote.py", "exec")


@pytest.mark.parametrize("name", ["", "Norm", "a b", "../x", "a/b/c", "1x"])
def test_new_refuses_names_that_cannot_be(tmp_path: Path, monkeypatch, name: str) -> None:
    (tmp_path / "porter" / "patterns").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "kernel", name]) == 2
    assert not (tmp_path / "reference_kernels").exists()


# ---------------------------------------------------------------- configuration


def write_config(folder: Path, body: str) -> None:
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'x'\n\n[tool.porter]\n{body}\n")


def test_configuration_is_read_from_the_nearest_pyproject(tmp_path: Path, monkeypatch) -> None:
    write_config(tmp_path, "arch = 'sm_90a'\nstd = 'c++20'\ninclude = ['inc']\noutput = 'out'\njobs = 1")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    config = load_config(tmp_path / "a" / "b")
    assert (config.arch, config.std, config.jobs) == (("sm_90a",), "c++20", 1)
    assert (config.include, config.output) == (("../inc",), Path("../out"))


def test_flags_win_over_configuration() -> None:
    from porter.config import merge

    config = PortConfig(std="c++20", standalone=True, arch=("sm_80",))
    changed = merge(config, std="c++14", standalone=None, arch=(), include=("x",))
    assert (changed.std, changed.standalone, changed.arch, changed.include) == ("c++14", True, ("sm_80",), ("x",))


@pytest.mark.parametrize(
    "body, line, says",
    [
        ("std = 'c++20'\narhc = ['sm_90a']", 6, "unknown key `arhc`"),
        ("arch = 90", 5, "`arch` must be a list of strings"),
        ("verify = 'yes'", 5, "`verify` must be true or false"),
        ("jobs = true", 5, "`jobs` must be a whole number"),
        ("arch = ['sm_12']", 5, "`arch` is 'sm_12'"),
        ("arch = [", 5, "does not parse"),
    ],
)
def test_a_wrong_key_is_named_with_its_line(tmp_path: Path, body: str, line: int, says: str) -> None:
    write_config(tmp_path, body)
    with pytest.raises(PorterError) as caught:
        load_config(tmp_path)
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.code, diagnostic.span.line) == ("PRT951", line) and says in diagnostic.message


def test_every_configuration_key_is_a_setting() -> None:
    from dataclasses import fields

    from porter.config import FILE_KEYS

    assert set(FILE_KEYS) <= {f.name for f in fields(PortConfig)}


def test_the_page_of_a_wrong_key_names_every_key() -> None:
    named = re.search(r"^Keys: (.*?)\. Flags", pages()["PRT951"], re.MULTILINE | re.DOTALL)
    assert named and set(re.findall(r"`(\w+)`", named[1])) == {*FILE_KEYS, "agent"}
