"""Rows more than 2^30 elements apart: every op reaches them, inputs and outputs alike (memory that is never touched is
never committed)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops import embedding_reference
from tests.corpus import sweep
from tests.corpus.numerics import Inputs, ulps

FAR = (1 << 30) + 64  # elements; the third row is past 2^31
NEAR = {"rms_norm_dynamic_per_token_quant": {3}}  # scales of one a row are contiguous, as vLLM has them


def far(t):
    """The same tensor with its first dimension that far apart."""
    row = 1 + sum((n - 1) * s for n, s in zip(t.shape[1:], t.stride()[1:], strict=True))
    store = torch.empty(FAR * (t.shape[0] - 1) + row, dtype=t.dtype)
    return torch.as_strided(store, t.shape, (FAR, *t.stride()[1:])).copy_(t)


@pytest.mark.parametrize("op", [op for op in sweep.OPS if op.name != "embedding"], ids=lambda op: op.name)
def test_rows_far_apart(op):
    length = op.lengths[1]
    got, want = (list(op.make(Inputs(5, torch.bfloat16), 3, length, op.variants[0])) for _ in range(2))
    for i, t in enumerate(got):
        if isinstance(t, torch.Tensor) and t.dim() > 1 and t.shape[0] == 3 and i not in NEAR.get(op.name, ()):
            got[i] = far(t)
    assert sum(isinstance(t, torch.Tensor) and t.stride(0) == FAR for t in got) >= 1
    assert sweep.emulated("sm_90a")(op.call, *got)
    op.call.op.fallback(*op.call.op.bind(tuple(want), {}))
    for output in op.outputs:
        if got[output.arg] is not None:
            assert ulps(got[output.arg], want[output.arg]).max() <= max(op.units[0], output.role == "scale")


def test_a_vocabulary_of_more_than_2_to_the_31_elements():
    weight = far(torch.randn(4, 96).bfloat16())
    indices = torch.tensor([3, -1, 2])
    out, want = far(torch.zeros(3, 96).bfloat16()), torch.zeros(3, 96).bfloat16()
    assert sweep.emulated("sm_90a")(corpus.embedding, out, indices, weight)
    embedding_reference.embedding(want, indices, weight)
    assert torch.equal(out, want)
