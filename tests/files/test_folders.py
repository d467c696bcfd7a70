"""What a named folder stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.agents.runs.session import find_files
from porter.batch.analysis import find_sources
from porter.files.folders import files_below
from porter.pipeline.open_ports import find_ports


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project in which a candidate's place was left by kill -9, beside other hidden folders."""
    for folder in (".", ".porter/runs/r/work/candidate-1", ".git/x", ".venv"):
        for name, text in {"csrc/k.cu": "__global__", "ported/k.py": "", "ported/k.port.json": "{}"}.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (tmp_path / "gone.cu").symlink_to("nowhere")
    (tmp_path / "folder.cu").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("find", "expected"), [(find_files, "csrc/k.cu"), (find_sources, "csrc/k.cu"), (find_ports, "ported/k.py")]
)
def test_hidden_folders_are_no_part_of_a_project(tree, find, expected):
    assert find([Path(".")]) == [Path(expected)]


def test_a_hidden_folder_that_is_named_is_looked_into(tree):
    place = Path(".porter/runs/r/work/candidate-1")
    assert files_below(place, ".cu", ".py") == [place / "csrc/k.cu", place / "ported/k.py"]
