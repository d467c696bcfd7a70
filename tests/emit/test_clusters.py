"""A kernel of clusters, original and port, on the same bytes: the cluster barrier and other blocks' shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from porter.config import PortConfig
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance, PorterError
from porter.pipeline.stages import Run, translate
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import require_nvrtc

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

TEXT = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4, 1, 1) rotate(int* i) {
  __shared__ int mine[64];
  __shared__ int count;
  auto cluster = cg::this_cluster();
  int t = threadIdx.x;
  unsigned rank = cluster.block_rank();
  mine[t] = i[blockIdx.x * 64 + t];
  if (t == 0) count = (int)rank * 10;
  cluster.sync();
  int* next = cluster.map_shared_rank(mine, (rank + 1) % cluster.num_blocks());
  int other = next[t];
  int far = *cluster.map_shared_rank(&count, 3);
  cluster.sync();
  i[blockIdx.x * 64 + t] = other + far + (int)cluster.thread_rank() * 1000;
}
"""


def test_clusters(tmp_path):
    path = tmp_path / "rotate.cu"
    path.write_text(TEXT)
    source = Source.read(path)
    unit = parse_source(source, ParseOptions())
    (info,) = unit.kernels
    module = translate(unit, info, None, PortConfig(), Run(info.name), (Instance(),)).module
    assert not module.holes
    assert "cluster=(4, 1, 1)" in module.text
    port = tmp_path / "rotate.py"
    port.write_text(module.text)
    original = build_original(source, ParseOptions(), "rotate")[0]
    made = compile_port(port, [CompileRequest({}, "sm_90a")])[0]
    assert made.ok, made.error
    results = []
    for text, entry in ((original.ptx, original.entry), (made.ptx, made.entry)):
        values = np.arange(512, dtype=np.int32) * 7
        buffer = ptx.Buffer(values, name="i", initialised=True)
        shape = {"grid": (8, 1, 1), "block": (64, 1, 1), "cluster": (4, 1, 1)}
        result = ptx.launch(ptx.load(text), entry, args=[buffer], **shape)
        assert not result.violations, result.violations[:3]
        results.append(values)
    assert np.array_equal(*results)
    block, thread = np.divmod(np.arange(512), 64)
    rank = block % 4
    source_block = block - rank + (rank + 1) % 4
    expected = (source_block * 64 + thread) * 7 + 30 + (rank * 64 + thread) * 1000
    assert np.array_equal(results[0], expected)
