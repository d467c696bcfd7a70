"""What the emitter asks of a launch is what the allow-list lets a port ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.verify.checks.honesty import check_honesty
from tests.emit.stages import emitted

BOUNDS = "__global__ void __launch_bounds__(256, 4) k(float* p) { p[threadIdx.x] += 1.0f; }\n"
CLUSTER = "__global__ void __cluster_dims__(2, 1, 1) k(float* p) { p[threadIdx.x] += 1.0f; }\n"
GRID = """#include <cooperative_groups.h>
__global__ void k(float* p) {
  p[blockIdx.x] += 1.0f;
  cooperative_groups::this_grid().sync();
  p[gridDim.x + blockIdx.x] = p[gridDim.x - 1 - blockIdx.x];
}
"""
SHARED = "extern __shared__ float tile[];\n__global__ void k(float* p) { tile[threadIdx.x] = *p; *p = tile[0]; }\n"


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        (BOUNDS, ("max_number_threads=", "min_blocks_per_mp=", "preferred_smem_carveout=")),
        (CLUSTER, ("cluster=",)),
        (GRID, ("cooperative=True",)),
        (SHARED, ("smem=",)),
    ],
    ids=["launch bounds", "cluster", "cooperative", "shared memory"],
)
def test_a_port_may_ask_for_it(source: str, asked: tuple[str, ...], tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", source)
    assert all(a in text for a in asked), text
    assert [d.message for d in check_honesty(text, Path("k.py"))] == []
