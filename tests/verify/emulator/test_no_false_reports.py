"""Correct kernels under many schedules: the sanitizer says nothing, of originals and of ports."""

from __future__ import annotations

import json
import os

import pytest

from porter.model import PorterError
from porter.verify.original.nvrtc import require_nvrtc
from tests.emit.test_ports import ALL
from tools.false_reports import RESULT, SCHEDULES, measure

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

SEED = int(os.environ.get("PORTER_TEST_SEED", "11"))


def no_report(name: str, schedules: int, launches: int, usual: int) -> None:
    found = measure(name, schedules, SEED, launches, usual)
    assert found["verdicts"]["sanitizer"] == "PASS", found
    assert not found["reports"]
    assert found["instances_repeated"] == {"original": found["instances"], "port": found["instances"]}
    assert found["launches"] >= 2 * schedules * found["instances"]


@pytest.mark.parametrize("name", ["norm/rms_norm", "softmax/softmax", "moe/moe_dispatch"])
def test_a_few_kernels_under_two_schedules(name: str) -> None:
    no_report(name, 2, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_reference_kernels_under_twenty_schedules(name: str) -> None:
    no_report(name, 20, 2, 4)


def test_the_record_is_of_all_kernels() -> None:
    kernels = json.loads(RESULT.read_text())["kernels"]
    assert [k["kernel"] for k in kernels] == ALL
    for k in kernels:
        assert k["schedules"] >= SCHEDULES and k["launches"] >= 2 * SCHEDULES * k["instances"], k
        assert k["instances_repeated"] == {"original": k["instances"], "port": k["instances"]}, k
        assert k["verdicts"]["sanitizer"] == "PASS" and not k["reports"], k
