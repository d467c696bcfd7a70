"""Originals of public kernels executed in the emulator; see tools/emulator_sweep.py for what is run on what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real.port_public import VARIABLE, sources_folder
from tools.emulator_sweep import RESULT, ROOT, paths, record, sweep

LEAST = 0.97  # of the kernels that NVRTC compiles
SOME = (
    "reference_kernels/moe/moe_align_block_size.cu",
    "llm.c/dev/cuda/gelu_forward.cu",
    "llm.c/dev/cuda/softmax_forward.cu",
    "flashinfer/include/flashinfer/quantization.cuh",
    "vllm/csrc/moe/moe_align_sum_kernels.cu",
)


def test_the_record_holds_what_it_says() -> None:
    found = json.loads(RESULT.read_text())
    assert found["kernels_executed"] >= LEAST * found["kernels"] >= 150
    assert found["executed"] + len(found["not_executed"]) == found["instances"]
    assert found["executed"] == len(found["clean_runs"]) + len(found["reported_runs"])
    missed = {(r["file"], r["kernel"]) for r in found["not_executed"]}
    assert found["kernels"] - found["kernels_executed"] == len(missed)
    assert all(r["opcode"] or r["detail"] for r in found["not_executed"])
    assert sum(found["refused_by_opcode"].values()) == sum(r["outcome"] == "refused" for r in found["not_executed"])
    page = (ROOT / "docs/emulator.md").read_text()
    for name, counts in found["by_repository"].items():
        assert f"| {name} | {counts['kernels']} | {counts['executed']} |" in page


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("file", SOME)
def test_a_few_files_execute_what_the_record_says(file: str, tmp_path: Path) -> None:
    sources = sources_folder()
    if sources is None or not paths(sources, file):
        pytest.skip(f"{VARIABLE} does not hold {file}")
    now = record(*sweep(sources, tmp_path, file))
    then = json.loads(RESULT.read_text())
    assert now["kernels"] and now["kernels_executed"] == now["kernels"], now["not_executed"]
    assert {tuple(r[:3]) for r in now["clean_runs"]} == {tuple(r[:3]) for r in then["clean_runs"] if r[0] == file}
    assert not [r for r in now["reported_runs"] if r["how"] == "case"]
