"""Two small ports in a folder of their own, verified once, and the command as a user runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import porter  # noqa: F401 (a fixture)
from tests.cli.test_bad_input import CASE, SCALE

NAMES = ("first", "second")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two .cu files, their cases, and their ports in out/, verified for sm_90a with seed 7."""
    folder = tmp_path_factory.mktemp("made")
    for name in NAMES:
        (folder / f"{name}.cu").write_text(SCALE.replace("scale_kernel", f"{name}_kernel"))
        (folder / f"{name}.case.toml").write_text(CASE.replace("scale_kernel", f"{name}_kernel"))
    (folder / "pyproject.toml").write_text('[tool.porter]\narch = ["sm_90a"]\n')
    files = [f"{name}.cu" for name in NAMES]
    command = [sys.executable, "-m", "porter.cli", "port", *files, "-o", "out", "--seed", "7"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def ports(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `made` as the working folder; returns its out/."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def edit(port: Path, old: str, new: str) -> None:
    """Replace text of a port; fails when it is not there."""
    text = port.read_text()
    assert old in text
    port.write_text(text.replace(old, new))
