"""The port of another source is never replaced unasked; a source that moved is itself."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from porter.cli import main
from porter.provenance.store import read_record

from .test_bad_input import CASE, SCALE

OTHER = SCALE.replace("* factor", "* factor * factor")
TWO = SCALE + SCALE.replace("scale_kernel", "{name}_kernel")


def kernel(folder: Path, text: str = SCALE, name: str = "scale.cu") -> Path:
    """A source with its case, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).with_suffix(".case.toml").write_text(CASE)
    return folder / name


def kept(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.glob("*") if p.is_file()}


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`porter port ... -o out --no-verify` in this process, in an empty folder or in `cwd`."""

    def run(*arguments: str, cwd: Path = tmp_path, out: str = "out") -> Done:
        monkeypatch.chdir(cwd)
        code = main(["port", *arguments, *(["-o", out, "--no-verify"] if out else [])])
        return Done(code, *capsys.readouterr())

    return run


def refused(done: Done, *names: str) -> None:
    assert done.returncode != 0 and "PRT957" in done.stderr and "-o" in done.stderr, done.stdout + done.stderr
    assert all(name in done.stderr for name in names), done.stderr


def test_a_source_of_the_same_name_in_another_folder(port, tmp_path: Path) -> None:
    kernel(tmp_path / "a")
    kernel(tmp_path / "b", OTHER)
    assert port("a/scale.cu").returncode == 0
    before = kept(tmp_path / "out")
    refused(port("b/scale.cu"), "a/scale.cu", "b/scale.cu", "--force")
    assert kept(tmp_path / "out") == before
    assert port("a/scale.cu").returncode == 0  # its own port as ever
    assert port("b/scale.cu", "--force").returncode == 0
    record = read_record(tmp_path / "out/scale.py")
    assert record is not None and record.source == "../b/scale.cu"


def test_what_was_decided_about_the_other_port_does_not_stay_with_the_new_one(port, tmp_path: Path) -> None:
    kernel(tmp_path / "a")
    kernel(tmp_path / "b", OTHER)
    port("a/scale.cu")
    path = tmp_path / "out/scale.port.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"review": {"schema": 1, "decisions": []}}))
    assert port("a/scale.cu", "--force").returncode == 0 and "review" in json.loads(path.read_text())
    assert port("b/scale.cu", "--force").returncode == 0 and "review" not in json.loads(path.read_text())


def test_kernels_of_one_name_in_files_of_other_names(port, tmp_path: Path) -> None:
    kernel(tmp_path, TWO.replace("{name}", "first"), "first.cu")
    kernel(tmp_path, TWO.replace("{name}", "second").replace("* factor", "* 3.0f * factor"), "second.cu")
    only = ("--kernel", "scale_kernel")
    assert port("first.cu", *only, "--case", "first.case.toml").returncode == 0
    before = kept(tmp_path / "out")
    refused(port("second.cu", *only, "--case", "second.case.toml"), "first.cu", "second.cu")
    assert kept(tmp_path / "out") == before


def test_the_same_text_with_another_header_is_another_source(port, tmp_path: Path) -> None:
    text = '#include "factor.h"\n' + SCALE.replace("* factor", "* FACTOR")
    for folder, factor in (("a", "2.0f"), ("b", "3.0f"), ("c", "2.0f")):
        kernel(tmp_path / folder, text)
        (tmp_path / folder / "factor.h").write_text(f"#define FACTOR {factor}\n")
    assert port("a/scale.cu").returncode == 0
    refused(port("b/scale.cu"), "a/scale.cu", "b/scale.cu")
    assert port("c/scale.cu").returncode == 0  # all the same: a copy


def test_a_record_whose_port_was_deleted_is_not_overwritten_either(port, tmp_path: Path) -> None:
    kernel(tmp_path / "a")
    kernel(tmp_path / "b", OTHER)
    port("a/scale.cu")
    (tmp_path / "out/scale.py").unlink()
    before = kept(tmp_path / "out")
    refused(port("b/scale.cu"), "a/scale.cu")
    assert kept(tmp_path / "out") == before


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_two_files_of_one_name_in_one_command(port, tmp_path: Path, jobs: str) -> None:
    kernel(tmp_path / "a")
    kernel(tmp_path / "b", OTHER)
    refused(port("a/scale.cu", "b/scale.cu", "--jobs", jobs), "a/scale.cu", "b/scale.cu")
    assert "* factor * factor" not in (tmp_path / "out/scale.py").read_text()


def test_a_source_that_moved_is_the_same_and_one_that_changed_on_the_way_is_not(port, tmp_path: Path) -> None:
    source = kernel(tmp_path / "a")
    assert port("a/scale.cu").returncode == 0
    source.parent.rename(tmp_path / "moved")
    assert port("moved/scale.cu").returncode == 0
    kernel(tmp_path / "moved", OTHER)
    assert port("moved/scale.cu").returncode == 0  # edited in place
    (tmp_path / "moved").rename(tmp_path / "again")
    kernel(tmp_path / "again", SCALE)
    refused(port("again/scale.cu"), "moved/scale.cu (which no longer exists)", "again/scale.cu", "--force")


def test_a_checkout_that_was_copied_or_renamed_works_on(port, tmp_path: Path) -> None:
    kernel(tmp_path / "one/csrc")
    assert port("csrc/scale.cu", cwd=tmp_path / "one").returncode == 0
    (tmp_path / "one").rename(tmp_path / "two")
    kernel(tmp_path / "two/csrc", OTHER)
    assert port("csrc/scale.cu", cwd=tmp_path / "two").returncode == 0


def test_one_file_by_two_names_is_one_file(port, tmp_path: Path) -> None:
    kernel(tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    done = port("a/scale.cu", "b/scale.cu", "a/../a/scale.cu")
    assert done.returncode == 0 and "1 kernel," in done.stdout
    kernel(tmp_path / "a", OTHER)
    assert port("b/scale.cu").returncode == 0


def test_only_a_record_says_verified(port, tmp_path: Path) -> None:
    """A port's text is written before anybody verified it, and by `--emit` and `--no-verify` without."""
    text = SCALE.replace("__global__", "template <int N>\n__global__").replace("* factor", "* factor * float(N)")
    kernel(tmp_path, text)
    (tmp_path / "scale.case.toml").write_text(CASE.replace("\n\n", "\ninstances = [{args = [1]}, {args = [2]}]\n", 1))
    emitted = port("scale.cu", "--emit", "py", out="")
    assert emitted.returncode == 0 and "Template arguments:\n    N=1\n    N=2\n" in emitted.stdout
    assert port("scale.cu").returncode == 0
    shown = port("scale.cu", "--standalone", out="other")
    assert shown.returncode == 0
    for told in (emitted.stdout, *((tmp_path / f / "scale.py").read_text() for f in ("out", "other"))):
        assert "verified" not in told.lower()
