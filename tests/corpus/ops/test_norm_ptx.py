"""What the norms promise of their instructions: wide loads ahead of the reduction, one barrier, nothing spilled."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("cutlass")

from porter.corpus.kernels.norm.fused_add_rms_norm import FusedAddRmsNorm
from porter.corpus.kernels.norm.qk_norm import QkNorm
from porter.corpus.kernels.norm.rms_norm import RmsNorm
from porter.corpus.kernels.norm.rms_norm_static_fp8 import RmsNormStaticFp8
from porter.corpus.lib.rows import Rows
from porter.corpus.runtime.specialisation import Specialisation, compiled

LOAD = r"ld\.global\.v4\.b32"
KERNELS: dict[str, Specialisation] = {
    "rms_norm": RmsNorm("bf16", Rows(4096, 8, 256), "bf16", prefetch="all"),
    "rms_norm odd": RmsNorm("bf16", Rows(5120, 8, 512), "bf16"),
    "rms_norm early blocks": RmsNorm("f16", Rows(4096, 8, 256), "f16", prefetch="rows", prefetch_blocks=528),
    "fused_add_rms_norm": FusedAddRmsNorm("bf16", Rows(4096, 8, 256), "bf16"),
    "qk_norm": QkNorm("bf16", 32, 8, Rows(128, 8, 16, 8), "bf16", batch=2),
    "static_fp8": RmsNormStaticFp8("bf16", Rows(4096, 8, 256), "bf16"),
}


@pytest.fixture(scope="module", params=list(KERNELS))
def made(request):
    result = compiled(KERNELS[request.param], "sm_90a", "ptx")
    lines = [line.strip() for line in result.ptx.splitlines() if not line.strip().startswith(("//", ".loc"))]
    return request.param, result, lines


def where(lines, pattern):
    return [i for i, line in enumerate(lines) for _ in re.finditer(pattern, line)]


def test_loads_are_wide_and_ahead_of_the_reduction(made):
    name, _, lines = made
    kernel = KERNELS[name]
    tensors = {"fused_add_rms_norm": 2}.get(name, 1)
    loads = where(lines, LOAD)
    rows = tensors * kernel.rows.accesses * getattr(kernel, "batch", 1)
    assert len(loads) == rows + kernel.rows.accesses * (2 if name == "qk_norm" else 1)  # and weights
    assert max(loads) < min(where(lines, r"shfl\.sync"))


def test_no_load_may_move_ahead_of_the_wait(made):
    _, _, lines = made
    assert not where(lines, r"ld\.global(\.\w+)*\.nc")


def test_a_launch_waits_before_it_touches_memory(made):
    name, _, lines = made
    (go,), (wait,) = where(lines, r"griddepcontrol\.launch_dependents"), where(lines, r"griddepcontrol\.wait")
    assert go < wait < min(where(lines, r"(ld|st)\.global"))
    prefetches = where(lines, r"cp\.async\.bulk\.prefetch\.L2\.global")
    assert len(prefetches) == {"rms_norm": 2, "rms_norm early blocks": 1}.get(name, 0)  # weight and row, or the row
    assert all(go < p < wait for p in prefetches)
    assert bool(where(lines[:wait], r"setp\.lt\.u?s?32 .*, 528;")) == (name == "rms_norm early blocks")


def test_one_barrier_for_rows_of_several_warps(made):
    name, _, lines = made
    assert len(where(lines, r"bar\.sync")) == (0 if name == "qk_norm" else 1)


def test_stores_are_wide(made):
    name, _, lines = made
    stores = where(lines, r"st\.global\.v4\.b32")
    if name == "static_fp8":
        assert not stores and where(lines, r"st\.global\.v2\.b32") and where(lines, r"cvt\.rn\.satfinite\.e4m3x2\.f32")
    else:
        rows = {"fused_add_rms_norm": 2}.get(name, 1) * KERNELS[name].rows.accesses * getattr(KERNELS[name], "batch", 1)
        assert len(stores) == rows


def test_nothing_is_spilled(made):
    _, result, lines = made
    assert result.spill == result.local_bytes == 0 and not where(lines, r"\.local")
    assert result.registers <= 64


def test_powers_of_two_are_not_divided_by(made):
    name, _, lines = made
    assert bool(where(lines, r"div\.rn\.f32")) == (name == "rms_norm odd")
