"""The gated activation of batched experts: what each expert has is as the operations alone have it, the rest stays."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter.corpus import ops
from tests.corpus.emulated import run

COUNTS = (3, 0, 5, 9)  # of 5 places: none, all, and more than there are


def operands(d, dtype, columns, places=5):
    new = torch.Generator().manual_seed(7)
    x = torch.randn(len(COUNTS), places, 2 * d, generator=new).to(dtype)
    x[0, 0, :128] = 0
    x[0, 1, 5], x[0, 1, 200], x[0, 2, 130] = float("nan"), float("inf"), 3e4
    counts = torch.tensor(COUNTS, dtype=torch.int32)
    codes = torch.full((len(COUNTS), places, d), 7.0).to(torch.float8_e4m3fn)
    shape = (len(COUNTS), d // 128, places) if columns else (len(COUNTS), places, d // 128)
    scales = torch.full(shape, -1.0)
    return x, counts, codes, scales.transpose(1, 2) if columns else scales


@pytest.mark.parametrize(
    ("arch", "dtype", "d", "columns", "power"),
    [
        ("sm_90a", torch.bfloat16, 384, True, False), ("sm_100a", torch.bfloat16, 128, True, True),
        ("sm_90a", torch.float16, 256, False, True), ("sm_100a", torch.float32, 384, False, False),
    ],
)  # fmt: skip
def test_rows_of_experts(arch, dtype, d, columns, power):
    x, counts, codes, scales = operands(d, dtype, columns)
    run(ops.persistent_masked_m_silu_mul_quant, x, counts, codes, scales, power, arch=arch)
    _, _, codes_there, scales_there = operands(d, dtype, columns)
    ops.persistent_masked_m_silu_mul_quant(x, counts, codes_there, scales_there, power)
    # a product may round the other way where the exponential does
    assert torch.allclose(scales, scales_there, rtol=2e-6, atol=0)
    bits, want = (t.view(torch.uint8).int() for t in (codes, codes_there))
    assert (bits != want).float().mean() < 1e-2 and ((bits - want).abs() <= 1).all()
    for e, count in enumerate(COUNTS):
        assert (codes[e, count:].float() == 7.0).all() and (scales[e, count:] == -1.0).all()
        assert not (scales[e, :count] == -1.0).any()


def test_rows_that_are_none_are_not_read():
    x, counts, codes, scales = operands(128, torch.bfloat16, True)
    results = run(ops.persistent_masked_m_silu_mul_quant, x, counts, codes, scales, False)
    once = codes.view(torch.uint8).clone()
    for e, count in enumerate(COUNTS):
        x[e, count:] = float("nan")
    run(ops.persistent_masked_m_silu_mul_quant, x, counts, codes, scales, False)
    assert len(results) == 1 and torch.equal(codes.view(torch.uint8), once)


def test_no_experts_launch_nothing():
    x, counts, codes, scales = operands(128, torch.bfloat16, True)
    assert run(ops.persistent_masked_m_silu_mul_quant, x[:0], counts[:0], codes[:0], scales[:0], False) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, c, q, s: (x[..., :200], c, q, s), "input must be"),
        (lambda x, c, q, s: (x, c.long(), q, s), "counts"),
        (lambda x, c, q, s: (x, c[:2], q, s), "counts must have shape"),
        (lambda x, c, q, s: (x, c, q[:, :4], s), "y_q must have shape"),
        (lambda x, c, q, s: (x, c, q, s.half()), "y_s"),
    ],
)
def test_wrong_operands_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        run(ops.persistent_masked_m_silu_mul_quant, *change(*operands(256, torch.bfloat16, True)), False)


def test_codes_over_the_input_are_refused():
    x, counts, _, scales = operands(256, torch.bfloat16, True)
    with pytest.raises(ValueError, match=r"y_q.*input|input.*y_q"):
        ops.persistent_masked_m_silu_mul_quant(x, counts, x.view(torch.float8_e4m3fn)[..., :256], scales, False)
