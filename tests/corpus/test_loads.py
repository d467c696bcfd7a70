"""Loads of every op stay behind `griddepcontrol.wait`, which those that ptxas takes for read-only (`.nc`) do not."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("cutlass")
pytest.importorskip("torch")

import torch

from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import compiled


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_no_load_may_move_ahead_of_the_wait(name):
    workload = WORKLOADS[name]
    arguments = workload.make(16, torch.bfloat16, "meta", **workload.dims[0])
    kernel, _ = OPS[name].plan(Device("sm_90a", 132), *arguments)
    ptx = compiled(kernel, "sm_90a", "ptx").ptx
    assert "griddepcontrol.wait" in ptx and not re.search(r"ld\.global(\.\w+)*\.nc", ptx)
