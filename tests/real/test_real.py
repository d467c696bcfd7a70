"""Public kernels of other projects, ported and verified against themselves; their sources are found, never copied.

PORTER_REAL_SOURCES names the folder (see tools/real_sources.py). With PORTER_REAL_RECORD set, what a run finds is kept
in results.json beside this file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.case.reader import load_case
from porter.model import PorterError, Status
from tests.real.port_public import CASES, VARIABLE, described, one_line, port_public, sources_folder
from tests.real.record import record, recording

pytestmark = pytest.mark.real

SOURCES = sources_folder()
EVERY = sorted(CASES.glob("*.case.toml"))
NEEDED = ("honesty", "names", "compile", "resources", "numerics", "sanitizer", "determinism")
KNOWN_TO_FAIL: dict[str, str] = {}  # case -> what is missing; a test fails when one of them passes


def label(path: Path) -> str:
    return path.name.removesuffix(".case.toml")


@pytest.mark.parametrize("path", EVERY, ids=label)
def test_case_is_well_formed(path: Path) -> None:
    case = load_case(path)
    assert path.name.endswith(f".{case.kernel}.case.toml")
    assert case.source.split("/")[0].replace(".", "_") == path.name.split(".")[0]
    args = [i.args for i in case.instances]
    assert len(set(args)) == len(args)


def with_known(path: Path) -> object:
    reason = KNOWN_TO_FAIL.get(label(path))
    return pytest.param(path, marks=pytest.mark.xfail(reason=reason, strict=True)) if reason else path


@pytest.mark.parametrize("path", [with_known(p) for p in EVERY], ids=[label(p) for p in EVERY])
def test_ported_and_verified(path: Path, tmp_path: Path) -> None:
    if SOURCES is None:
        pytest.skip(f"{VARIABLE} is not set to a folder of public sources: see tools/real_sources.py")
    source = SOURCES / described(path)["source"]
    if not source.is_file():
        pytest.skip(f"there is no {source}")
    try:
        report, seconds = port_public(path, SOURCES, tmp_path)
    except PorterError as error:
        if recording():
            record(label(path), described(path), None, 0.0, str(error), SOURCES)
        raise
    if recording():
        record(label(path), described(path), report, seconds, one_line(report), SOURCES)
    assert not report.holes, one_line(report)
    verdicts = {v.check: v for v in report.verdicts}
    wrong = [f"{c}: {verdicts[c].detail}" for c in NEEDED if c in verdicts and verdicts[c].status is not Status.PASS]
    assert set(NEEDED) <= set(verdicts) and not wrong, wrong or one_line(report)
