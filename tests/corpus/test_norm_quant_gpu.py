"""Quantised, gated and layer norms and qk_norm_rope of the corpus on a GPU: dtypes, sizes, layouts of scales."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops import norm_reference as reference
from tests.corpus.test_norm_quant import E4M3
from tests.corpus.test_norms import EPS, ulps

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
TOKENS = (0, 1, 2, 7, 64, 129, 1024)
HIDDEN = (64, 128, 768, 769, 2880, 4096, 5120, 7168, 8192, 16384)


def rows(tokens, hidden, dtype):
    return torch.randn(tokens, hidden, device="cuda").to(dtype)


def mostly_equal(got, want, exact=0.999):
    """Codes at most one apart, equal but for a thousandth (sums associate differently)."""
    if got.numel() == 0:
        return
    distance = (got.int() - want.int()).abs() if got.dtype == torch.int8 else ulps(got, want)
    assert distance.max() <= 1
    if got.numel() >= 10_000:
        assert (distance == 0).double().mean() >= exact


def close(got, want):
    """Scales: a norm may be one unit of its type away, which moves the largest of a row by that much at most."""
    torch.testing.assert_close(got, want, rtol=2**-7, atol=0)
    if got.numel() >= 1000:
        assert (got == want).double().mean() >= 0.99


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_static_fp8(dtype, hidden):
    torch.manual_seed(hidden)
    w, scale = rows(1, hidden, dtype)[0], torch.tensor([0.017], device="cuda")
    for tokens in TOKENS:
        x, r = rows(tokens, hidden, dtype), rows(tokens, hidden, dtype)
        for profile in ("vllm", "flashinfer"):
            out, want = (torch.empty(tokens, hidden, dtype=E4M3, device="cuda") for _ in range(2))
            corpus.rms_norm_static_fp8_quant(out, x, w, scale, EPS, profile)
            reference.rms_norm_static_fp8_quant(want, x, w, scale, EPS, profile)
            mostly_equal(out, want)
            a, b = r.clone(), r.clone()
            corpus.fused_add_rms_norm_static_fp8_quant(out, x, a, w, scale, EPS, profile)
            reference.fused_add_rms_norm_static_fp8_quant(want, x, b, w, scale, EPS, profile)
            assert torch.equal(a, b)
            mostly_equal(out, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("codes", [E4M3, torch.int8])
def test_per_token(dtype, hidden, codes):
    torch.manual_seed(hidden)
    w, bound = rows(1, hidden, dtype)[0], torch.tensor([2.5], device="cuda")
    for tokens in TOKENS:
        x, r = rows(tokens, hidden, dtype), rows(tokens, hidden, dtype)
        for residual, upper in ((None, None), (r, None), (None, bound if codes == E4M3 else None)):
            out, want = (torch.empty(tokens, hidden, dtype=codes, device="cuda") for _ in range(2))
            scale, want_scale = (torch.empty(tokens, 1, device="cuda") for _ in range(2))
            a, b = (None if residual is None else residual.clone() for _ in range(2))
            corpus.rms_norm_dynamic_per_token_quant(out, x, w, scale, EPS, upper, a)
            reference.rms_norm_dynamic_per_token_quant(want, x, w, want_scale, EPS, upper, b)
            assert a is None or torch.equal(a, b)
            close(scale, want_scale)
            same = (scale == want_scale).view(-1)
            mostly_equal(out[same], want[same])


@pytest.mark.parametrize("codes", [E4M3, torch.int8])
@pytest.mark.parametrize("group", [64, 128])
@pytest.mark.parametrize("transposed", [False, True])
def test_per_block(codes, group, transposed):
    for hidden in (128, 1536, 4096, 7168):
        torch.manual_seed(hidden)
        w, groups = rows(1, hidden, torch.bfloat16)[0], hidden // group
        for tokens in TOKENS:
            x, r = rows(tokens, hidden, torch.bfloat16), rows(tokens, hidden, torch.bfloat16)
            out, want = (torch.empty(tokens, hidden, dtype=codes, device="cuda") for _ in range(2))
            padded = -(-tokens // 4) * 4
            scale = (
                torch.empty(groups, padded, device="cuda").t()[:tokens]
                if transposed
                else torch.empty(tokens, groups, device="cuda")
            )
            want_scale, a, b = torch.empty(tokens, groups, device="cuda"), r.clone(), r.clone()
            corpus.rms_norm_per_block_quant(out, x, w, scale, EPS, None, a, group, transposed)
            reference.rms_norm_per_block_quant(want, x, w, want_scale, EPS, None, b, group, False)
            assert torch.equal(a, b)
            close(scale, want_scale)
            same = scale == want_scale
            mostly_equal(out.view(tokens, groups, group)[same], want.view(tokens, groups, group)[same])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_layer_gated_and_silu_norms(dtype, hidden):
    torch.manual_seed(hidden)
    w, b = rows(2, hidden, dtype)
    tolerance = {torch.bfloat16: 2**-7, torch.float16: 2**-10, torch.float32: 4e-6}[dtype]
    for tokens in TOKENS:
        x, z = rows(tokens, hidden, dtype), rows(tokens, hidden, dtype)
        out, want = torch.empty_like(x), torch.empty_like(x)
        for name, rest in (
            ("layer_norm", (w, b, EPS)), ("layer_norm", (w.float(), None, EPS)), ("rms_norm_silu", (w, EPS)),
            ("rms_norm_gated", (z, w, EPS, True, "silu")), ("rms_norm_gated", (z, w, EPS, False, "sigmoid")),
        ):  # fmt: skip
            getattr(corpus, name)(out, x, *rest)
            getattr(reference, name)(want, x, *rest)
            torch.testing.assert_close(out, want, rtol=tolerance, atol=tolerance)
            if dtype != torch.float32 and out.numel() >= 10_000:
                assert (out == want).double().mean() >= 0.995


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("head", "rot", "neox"), [(128, 128, True), (128, 64, False), (64, 64, True), (256, 128, True)]
)
def test_qk_norm_rope(dtype, head, rot, neox):
    torch.manual_seed(head + rot)
    wq, wk = rows(2, head, dtype)
    angles = torch.rand(512, rot // 2, device="cuda") * 6.28
    for cache in {dtype, torch.float32}:
        table = torch.cat([angles.cos(), angles.sin()], -1).to(cache)
        for tokens in TOKENS:
            qkv = rows(tokens, 48 * head, dtype)
            want, positions = qkv.clone(), torch.randint(0, 512, (tokens,), device="cuda")
            corpus.qk_norm_rope(qkv, 32, 8, 8, head, EPS, wq, wk, table, neox, positions)
            reference.qk_norm_rope(want, 32, 8, 8, head, EPS, wq, wk, table, neox, positions)
            bound = {torch.bfloat16: 2**-7, torch.float16: 2**-10, torch.float32: 4e-6}[dtype]
            torch.testing.assert_close(qkv, want, rtol=bound, atol=bound)
            if dtype != torch.float32 and tokens >= 7:
                assert (qkv == want).double().mean() >= 0.998
