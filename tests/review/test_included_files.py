"""Lines of a port that came from a file which the source includes: that file is beside them, not the source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textual")
from textual.pilot import Pilot

from porter.config import PortConfig
from porter.model import PorterError
from porter.provenance.store import read_record
from porter.review.page import page
from porter.review.plain import region_text
from porter.review.port.actions import accept, reject
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort, load
from porter.review.port.why import why
from tests.cli.test_bad_input import CASE

from .conftest import KERNEL
from .drive import app_of, at, drive, press
from .screens import screen_text

DEVICE, _, KERNEL_ONLY = KERNEL.partition("__global__")
HEADER = "#pragma once\n\n" + DEVICE  # lines 5 and 6, the body, are lines of the source as well


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("included")
    (folder / "twice.cuh").write_text(HEADER)
    (folder / "scale.cu").write_text(f'#include "twice.cuh"\n\n// one\n// two\n\n__global__{KERNEL_ONLY}')
    (folder / "scale.case.toml").write_text(CASE)
    command = [sys.executable, "-m", "porter.cli", "port", "scale.cu", "-o", "out", "--no-verify"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def port(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("porter.review.port.decisions.reviewer", lambda folder: "Ada")
    monkeypatch.setattr("porter.review.port.actions.reviewer", lambda folder: "Ada")
    return Path("out/scale.py")


def body(loaded: ReviewedPort) -> Region:
    return next(r for r in loaded.regions if "w = v" in loaded.port_text(r))


def test_a_region_has_the_lines_of_the_file_that_it_came_from(port: Path):
    loaded = load(port)
    region = body(loaded)
    assert region.cuda == () and region.elsewhere == (("../twice.cuh", (5, 6)),)
    assert loaded.cuda_text(region) == "  const float w = v * 2.0f;\n  return w;"
    text = region_text(loaded, region)
    assert "port 14-15 <- twice.cuh 5-6" in text and "twice.cuh     5 |   const float w = v * 2.0f;" in text
    assert "twice.cuh</div><pre>" in page([loaded])
    kernel = next(r for r in loaded.regions if "if i < n" in loaded.port_text(r))
    assert kernel.elsewhere == () and "if (i < n)" in loaded.cuda_text(kernel)


def test_a_change_there_makes_a_decision_stale(port: Path):
    loaded = accept(load(port), body(load(port)))
    assert loaded.state(body(loaded)) == "accepted"
    Path("twice.cuh").write_text(HEADER.replace("* 2.0f", "* 3.0f"))
    changed = load(port)
    assert not changed.faults and changed.state(body(changed)) == "stale"
    Path("twice.cuh").write_text("// moved\n" + HEADER)
    assert load(port).state(body(load(port))) == "stale", "the record has no copy of included files"


def test_a_rejected_region_is_a_hole_with_the_text_from_there(port: Path):
    loaded = reject(load(port), body(load(port)))
    record = read_record(port)
    assert record is not None
    (hole,) = record.holes
    assert hole.cuda == "  const float w = v * 2.0f;\n  return w;" and hole.span.file == "../twice.cuh"
    assert "# CUDA: const float w = v * 2.0f;" in loaded.text


def test_a_file_that_is_gone_is_said(port: Path):
    Path("twice.cuh").unlink()
    loaded = load(port)
    assert [d.code for d in loaded.faults] == ["PRT961"] and "twice.cuh" in loaded.faults[0].message
    with pytest.raises(PorterError, match=r"twice\.cuh behind it cannot be read"):
        accept(loaded, body(loaded))
    kernel = next(r for r in loaded.regions if "if i < n" in loaded.port_text(r))
    assert accept(loaded, kernel).accepted == 1


def test_why_finds_its_statements(port: Path):
    parts = why(load(port), body(load(port)), PortConfig())
    assert next(parts).startswith("CUDA\ntwice.cuh:    5   const float w") and "w = v * 2" in next(parts)


def test_the_left_pane_shows_that_file(port: Path):
    """With the cursor in `twice`, the left pane is twice.cuh its line marked; in the kernel it is scale.cu."""
    app = app_of(port)

    async def steps(pilot: Pilot[int]) -> None:
        screen = await at(pilot, "w = v")
        text = screen_text(app)
        assert "CUDA  twice.cuh" in text and ">  5 ·   const float w = v * 2.0f;" in text
        await press(pilot, "tab", "down")
        assert screen.port_pane.plain[screen.port_pane.cursor - 1].strip() == "return w"
        await press(pilot, "tab", "a")
        assert "▌  6 ✓" not in screen_text(app) and load(port).accepted == 1
        await at(pilot, "if i < n")
        text = screen_text(app)
        assert "CUDA  scale.cu" in text and "if (i < n) {" in text

    drive(app, steps)
