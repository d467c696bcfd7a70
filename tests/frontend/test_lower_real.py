"""Lowering over public CUDA sources (PORTER_REAL_SOURCES): no exception, normal form everywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from porter import ir
from porter.frontend.instances.choice import default_instances, instances_from_launches, try_specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source
from tests.frontend.ir_invariants import validate

ROOT = os.environ.get("PORTER_REAL_SOURCES", "")
FILES = (
    "llm.c/dev/cuda/layernorm_forward.cu", "llm.c/dev/cuda/softmax_forward.cu", "llm.c/llmc/fused_classifier.cuh",
    "vllm/csrc/layernorm_kernels.cu", "vllm/csrc/activation_kernels.cu", "vllm/csrc/moe/topk_softmax_kernels.cu",
    "flashinfer/include/flashinfer/norm.cuh", "DeepSpeed/csrc/transformer/inference/csrc/rms_norm.cu",
    "LeetCUDA/kernels/rms-norm/rms_norm.cu", "apex/csrc/megatron/scaled_masked_softmax.h",
)  # fmt: skip


@pytest.mark.real
@pytest.mark.skipif(not ROOT, reason="PORTER_REAL_SOURCES names no folder of public sources")
@pytest.mark.parametrize("name", FILES)
def test_public_kernels_lower_to_normal_form(name: str) -> None:
    path = Path(ROOT) / name
    if not path.is_file():
        pytest.skip(f"no {name}")
    source = Source.read(path)
    unit = parse_source(source)
    assert unit.kernels
    requests = []
    for kernel in unit.kernels:
        found = instances_from_launches(unit, kernel)[:2] or default_instances(kernel, unit)
        requests += [(kernel, instance) for instance in found]
    full, cursors, _ = try_specialise(source, ParseOptions(), requests, stand_ins=unit.stand_ins)
    lowered = 0
    for kernel, instance in requests:
        cursor = cursors.get((kernel.qualified_name, instance))
        if cursor is None:
            continue
        k = lower_kernel(full, cursor, kernel, instance, strict=True)
        assert validate(k) == []
        lowered += not any(isinstance(n, (ir.HoleStmt, ir.HoleExpr)) for n in ir.walk(k.body))
    assert lowered >= 0.8 * len(cursors), "most kernels of these files have no hole"
