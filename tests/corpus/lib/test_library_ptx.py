"""The instructions that functions of porter.corpus.lib promise in their docstrings are the ones in the PTX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("cutlass")
from porter.verify.compile.worker import CompileRequest, compile_port

PORT = Path(__file__).with_name("port_library.py")

PROMISED = {
    "floats": [
        r"ex2\.approx\.f32", r"lg2\.approx\.f32", r"sin\.approx\.f32", r"cos\.approx\.f32", r"tanh\.approx\.f32",
        r"div\.approx\.f32", r"rcp\.approx\.ftz\.f32", r"rsqrt\.approx\.f32", r"rcp\.rn\.f32", r"sqrt\.rn\.f32",
        r"mul\.rn\.f32", r"add\.rn\.f32", r"sub\.rn\.f32", r"fma\.rn\.f32", r"max\.f32", r"min\.NaN\.f32",
        r"cvt\.sat\.f32\.f32", r"cvt\.rni\.f32\.f32", r"cvt\.rmi\.s32\.f32", r"cvt\.rni\.sat\.s8\.f32",
        r"cvt\.rz\.f32\.s32",
    ],
    "integers": [
        r"div\.s32", r"rem\.s32", r"popc\.b32", r"clz\.b32", r"brev\.b32", r"prmt\.b32", r"shf\.l\.wrap\.b32",
        r"dp4a\.s32\.s32",
    ],
    "memory": [
        r"ld\.global\.v4\.b32", r"st\.global\.v4\.b32", r"ld\.global\.nc\.v2\.b32", r"st\.global\.v2\.b32",
        r"ld\.global\.nc\.b32", r"st\.shared\.b32", r"bar\.sync", r"ld\.shared\.b32",
    ],
    "warps": [
        r"shfl\.sync\.bfly\.b32", r"shfl\.sync\.down\.b32", r"shfl\.sync\.up\.b32", r"shfl\.sync\.idx\.b32",
        r"vote\.sync\.ballot\.b32", r"match\.any\.sync\.b32", r"redux\.sync\.add\.s32", r"bar\.warp\.sync",
        r"activemask\.b32", r"bar\.red\.popc\.u32",
    ],
    "order": [
        r"(?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*\.add\.f32", r"(?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*\.max\.s32",
        r"atom\.global\.inc\.u32", r"fence\.acq_rel\.gpu", r"st\.release\.gpu\.global\.b32",
        r"ld\.acquire\.gpu\.global\.b32", r"ld\.volatile\.global\.b32", r"griddepcontrol\.wait",
        r"griddepcontrol\.launch_dependents", r"%envreg1", r"atom\.add\.release\.gpu\.global\.u32",
    ],
    "packed": [
        r"ld\.relaxed\.gpu\.global\.b32", r"prefetch\.global\.L2", r"ld\.global\.L1::no_allocate\.v4\.b32",
        r"ld\.global\.v4\.b32", r"cp\.async\.bulk\.prefetch\.L2\.global",
        r"@p ld\.global\.L1::no_allocate\.v2\.b32", r"mul\.rn\.bf16x2", r"mul\.rn\.f16x2", r"st\.global\.v4\.b32",
        r"cvt\.f32\.f16", r"cvt\.rn\.bf16x2\.f32", r"shl\.b32", r"cvt\.rn\.f16x2\.f32",
        r"cvt\.rn\.satfinite\.e4m3x2\.f32", r"max\.bf16x2",
    ],
    "activations": [r"ex2\.approx\.ftz\.f32", r"rcp\.approx\.ftz\.f32", r"fma\.rn\.f32", r"min\.f32", r"max\.f32"],
    "exact_silu": [r"ex2\.approx\.ftz\.f32", r"div\.rn\.f32"],
    "selections": [r"redux\.sync\.max\.u32", r"redux\.sync\.min\.u32", r"selp\.b32"],
    "cluster_softmax": [
        r"barrier\.cluster\.arrive\.relaxed\.aligned", r"barrier\.cluster\.wait\.aligned", r"%cluster_ctarank",
        r"mapa\.shared::cluster\.u32", r"mbarrier\.arrive\.expect_tx", r"ex2\.approx\.ftz\.f32",
        r"st\.async\.shared::cluster\.mbarrier::complete_tx::bytes\.v2\.f32",
        r"mbarrier\.try_wait\.parity\.acquire\.cluster",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def bodies():
    made = compile_port(PORT, [CompileRequest({}, "sm_90a")])[0]
    assert made.ok, made.error
    parts = re.split(r"\.visible \.entry ", made.ptx)[1:]
    return {name: next(p for p in parts if f"_{name}_" in p.split("(")[0]) for name in PROMISED}


@pytest.mark.parametrize(("kernel", "instruction"), [(k, i) for k, rows in PROMISED.items() for i in rows])
def test_instruction_is_there(bodies, kernel, instruction):
    assert re.search(instruction, bodies[kernel]), instruction


@pytest.mark.parametrize("kernel", list(PROMISED))
def test_nothing_goes_to_local_memory(bodies, kernel):
    assert not re.search(r"\b(ld|st)\.local|__local_depot", bodies[kernel])


def test_activations_take_no_slow_path(bodies):
    assert not re.search(r"div\.rn|rcp\.rn|\bbra\b|\bcall\b", bodies["activations"])
