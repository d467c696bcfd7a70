"""Right ports that are written differently are not refused; some in CI, all with `-m slow`."""

from __future__ import annotations

import pytest

from porter.model import PorterError, Status
from porter.verify.original.nvrtc import require_nvrtc
from tests.verify.right_ports import RIGHT, written
from tools.edit_sweep import subject_of
from tools.mutation.subjects import judge

QUICK = ("tensors", "a-larger-block-for-copies", "columns-by-a-difference")


@pytest.fixture(scope="module", autouse=True)
def _compilers():
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))


def passes(name: str, tmp_path, seed: int, **options: object) -> None:
    subject = subject_of(RIGHT[name][0])
    text = written(subject.text, name)
    assert text != subject.text
    found = judge(subject, text, tmp_path, seed, explain=False, **options)
    assert {v.status for v in found} <= {Status.PASS, Status.SKIP}, found


def test_there_are_fifteen_of_several_kernels():
    assert len(RIGHT) >= 15 and len({kernel for kernel, _ in RIGHT.values()}) >= 6


@pytest.mark.parametrize("name", QUICK)
def test_right_ports(tmp_path, name):
    passes(name, tmp_path, 5, only=(0,), launches=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_all_right_ports(tmp_path, name):
    for seed in (1, 2):
        passes(name, tmp_path, seed)
