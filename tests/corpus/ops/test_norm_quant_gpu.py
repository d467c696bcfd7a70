"""Norms of the corpus with fp8 and int8 outputs on a GPU: dtypes, sizes, kinds of numbers, layouts of scales."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.norm import reference
from tests.corpus.inputs import E4M3
from tests.corpus.norm_cases import EPS, NORMS
from tests.corpus.numerics import ulps
from tests.corpus.on_gpu import grid, label, sweep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
QUANT = tuple(op for op in NORMS if op.name.endswith("_quant"))


@pytest.mark.parametrize(("op", "dtype", "length"), grid(QUANT), ids=label)
def test_norms_to_codes(op, dtype, length, found):
    found(sweep(op, dtype, length))


@pytest.mark.parametrize("codes", [E4M3, torch.int8])
@pytest.mark.parametrize("group", [64, 128])
@pytest.mark.parametrize("layout", ["transposed view", "padded view", "groups by tokens"])
def test_layouts_of_block_scales(codes, group, layout):
    """The scales of every layout are those of rows, and nothing else is written."""
    for hidden in (128, 1536, 7168):
        for tokens in (1, 7, 129, 1024):
            torch.manual_seed(hidden + tokens)
            x = torch.randn(tokens, hidden, device="cuda").bfloat16()
            w, groups = torch.randn(hidden, device="cuda").bfloat16(), hidden // group
            out, plain = (torch.empty(tokens, hidden, dtype=codes, device="cuda") for _ in range(2))
            wide = tokens if layout != "padded view" else -(-tokens // 4) * 4 + 4
            memory = torch.full((groups, wide), -7.0, device="cuda")
            scale = memory if layout == "groups by tokens" else memory.t()[:tokens]
            by_row = torch.empty(tokens, groups, device="cuda")
            corpus.rms_norm_per_block_quant(out, x, w, scale, EPS, None, None, group, True)
            corpus.rms_norm_per_block_quant(plain, x, w, by_row, EPS, None, None, group, False)
            assert torch.equal(memory[:, :tokens].t(), by_row) and (memory[:, tokens:] == -7.0).all()
            assert torch.equal(out.view(torch.int8), plain.view(torch.int8))


def test_a_residual_stays_apart_from_the_input():
    x, r = (torch.randn(33, 2880, device="cuda").bfloat16() for _ in range(2))
    w, scale, before = torch.randn(2880, device="cuda").bfloat16(), torch.tensor([0.02], device="cuda"), x.clone()
    out, want_r = torch.empty(33, 2880, dtype=E4M3, device="cuda"), r.clone()
    want = torch.empty_like(out)
    corpus.fused_add_rms_norm_static_fp8_quant(out, x, r, w, scale, EPS)
    reference.fused_add_rms_norm_static_fp8_quant(want, x, want_r, w, scale, EPS)
    assert torch.equal(x, before) and torch.equal(r, want_r)
    assert ulps(out, want).max() <= 1
