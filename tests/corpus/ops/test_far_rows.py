"""Rows more than 2^30 elements apart: every op reaches them, inputs and outputs alike (memory that is never touched is
never committed)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.embedding import reference
from tests.corpus import sweep
from tests.corpus.inputs import Inputs
from tests.corpus.numerics import ulps

FAR = (1 << 30) + 64  # elements; the third row is past 2^31
NEAR = {  # scales of one a row are contiguous, as vLLM has them; packed ones are columns
    "rms_norm_dynamic_per_token_quant": {3}, "dynamic_per_token_scaled_fp8_quant": {2},
    "dynamic_scaled_int8_quant": {2, 3}, "per_token_group_fp8_quant_packed": {2},
}  # fmt: skip


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
    reference.embedding(want, indices, weight)
    assert torch.equal(out, want)


def heads_far_apart(t):
    """(T, heads, D) as a transpose of (heads, T, D), the heads that far apart."""
    return far(t.transpose(0, 1).contiguous()).transpose(0, 1)


def heads(count, seed, dtype=torch.bfloat16):
    return torch.randn(2, count, 64, generator=torch.Generator().manual_seed(seed)).to(dtype)


TABLE, POSITIONS, WEIGHT = torch.randn(9, 64).bfloat16(), torch.tensor([3, 8]), torch.randn(64).bfloat16()
CODES = torch.float8_e4m3fn
WITH_HEADS = {
    "qk_norm": (lambda q, k: (q, k, WEIGHT, WEIGHT, 1e-6), 1),
    "rotary_embedding": (lambda q, k: (POSITIONS, q, k, 64, TABLE, True), 0),
    "rotary_embedding_fp8": (
        lambda q, k: (heads_like(q), heads_like(k), POSITIONS, q, k, 64, TABLE, True), 0,
    ),
    "rope_quantize_fp8": (
        lambda q, k: (q, k, q, k, TABLE, POSITIONS, True, 1.0, 1.0, *(heads_like(t) for t in (q, k, q, k))), 0,
    ),
}  # fmt: skip


def heads_like(t):
    """e4m3 zeros laid out as t is."""
    zeros = torch.zeros(t.shape, dtype=CODES)
    return heads_far_apart(zeros) if t.stride(1) == FAR else zeros


@pytest.mark.parametrize("name", WITH_HEADS)
def test_heads_far_apart(name):
    """Offsets of heads, as of rows, are 64-bit."""
    make, units = WITH_HEADS[name]
    q, k = heads(3, 1), heads(4, 2)
    op, got, want = getattr(corpus, name), make(heads_far_apart(q), heads_far_apart(k)), make(q, k)
    assert sweep.emulated("sm_90a")(op, *got)
    op.op.fallback(*op.op.bind(want, {}))
    for a, b in zip(got, want, strict=True):
        if isinstance(a, torch.Tensor) and a.stride() != b.stride():
            assert ulps(a.contiguous(), b).max() <= units
