"""Originals of public kernels executed in the emulator; see tools/emulator_sweep.py for what is run on what."""

from __future__ import annotations

import json

import pytest

from tests.real.port_public import VARIABLE, sources_folder
from tools.emulator_sweep import RESULT, paths, record, sweep

LEAST = 0.97  # of the instances that NVRTC compiles
SOME = (
    "llm.c/dev/cuda/gelu_forward.cu",
    "llm.c/dev/cuda/residual_forward.cu",
    "vllm/csrc/moe/moe_align_sum_kernels.cu",
)

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_the_record_says_what_was_refused() -> None:
    found = json.loads(RESULT.read_text())
    assert found["share"] >= LEAST and found["executed"] + len(found["not_executed"]) == found["instances"]
    assert sum(found["refused_by_opcode"].values()) == sum(r["outcome"] == "refused" for r in found["not_executed"])


@pytest.mark.parametrize("file", SOME)
def test_a_few_files(file: str) -> None:
    sources = sources_folder()
    if sources is None or not paths(sources, file):
        pytest.skip(f"{VARIABLE} does not hold {file}")
    found = record(sweep(sources, file))
    assert found["instances"] and found["share"] == 1.0, found["not_executed"]
    assert not [r for r in found["astray_runs"] if r["how"] == "case"]
